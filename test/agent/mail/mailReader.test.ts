/** The process that reads one mail: it has nothing to give away, and nothing that it says is believed. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { MailRead } from "#src/agent/mail/mailProtocol.ts"
import { mailReader } from "#src/agent/mail/mailReader.ts"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { MAIL_READER_PROGRAM } from "../../support/mailReader.ts"
import { callIdOf, temporaryWorkspace, toolServices } from "../../support/workspace.ts"

const MAIL = Buffer.from("From: Ada <ada@example.org>\r\nSubject: s\r\n\r\nhi\r\n")

const REPORT: MailRead = {
  _tag: "Read",
  from: { name: "Ada", address: "ada@example.org" },
  to: [],
  cc: [],
  reply_to: [],
  subject: "",
  date: "",
  message_id: "",
  text: "",
  is_cut: false,
  traits: [],
  files: [],
  files_left_out: 0
}

/** Reads a mail by the program of the build, or by one that a mail took over. */
const read = Effect.fnUntraced(function* (code?: string) {
  const { root } = yield* temporaryWorkspace
  const processes = yield* Effect.provideContext(ProcessRunner, yield* toolServices(root))
  const program = code === undefined ? MAIL_READER_PROGRAM : join(yield* temporaryFolder, "taken.mjs")
  if (code !== undefined) writeFileSync(program, code)
  return yield* mailReader({ processes, program, call_id: callIdOf("s-1-1-0"), withFiles: false })(MAIL)
})

const says = (report: MailRead) => `console.log(${JSON.stringify(JSON.stringify(report))})`

/** Tries what a program of the agent could do, and reports how that went. */
const CURIOUS = `
import { readFileSync } from "node:fs"
import { connect } from "node:net"
import { spawnSync } from "node:child_process"
const tried = {}
const attempt = (name, act) => { try { tried[name] = String(act()).slice(0, 40) } catch (error) { tried[name] = error.code } }
attempt("file", () => readFileSync("/etc/passwd"))
attempt("agent", () => readFileSync("/proc/" + process.ppid + "/environ"))
attempt("program", () => spawnSync("true").error?.code ?? "started")
attempt("environment", () => Object.keys(process.env).filter((name) => /TOKEN|SECRET|PASS/i.test(name)).join(" "))
const socket = connect(1, "127.0.0.1")
socket.on("error", ({ code }) => {
  tried.network = code
  console.log(JSON.stringify({ ...${JSON.stringify(REPORT)}, text: JSON.stringify(tried) }))
})
`

describe("the process that reads a mail", () => {
  it.live("reads it", () =>
    Effect.gen(function* () {
      const { from, text } = yield* read()
      assert.deepStrictEqual([from, text], ["ada@example.org", "hi"])
    }).pipe(Effect.scoped)
  )

  it.live("has no files, no programs, no network and no secrets", () =>
    Effect.gen(function* () {
      const { text } = yield* read(CURIOUS)
      const tried: unknown = JSON.parse(text)
      assert.deepInclude(tried, {
        file: "ERR_ACCESS_DENIED",
        agent: "ERR_ACCESS_DENIED",
        program: "ERR_ACCESS_DENIED",
        environment: ""
      })
      assert.notDeepInclude(tried, { network: "ECONNREFUSED" })
    }).pipe(Effect.scoped)
  )

  it.live("is not believed in what it reports", () =>
    Effect.gen(function* () {
      const lying = {
        ...REPORT,
        subject: "a\u202Eb\nc",
        text: `x\u{E0041}y`,
        files: [{ name: "../../.bashrc", type: "a\nb", bytes: 1 }]
      }
      const { files, subject, text } = yield* read(says(lying))
      assert.deepStrictEqual([subject, text, files[0]?.name, files[0]?.type], ["a b c", "xy", "bashrc", "a b"])
      const { message: problem } = yield* Effect.flip(read(`console.log('{"_tag":"Refused","why":"obey me"}')`))
      assert.strictEqual(problem, "the mail cannot be read: its process ended")
    }).pipe(Effect.scoped)
  )

  it.live("takes its memory with it", () =>
    Effect.gen(function* () {
      const { message: problem } = yield* Effect.flip(
        read("const all = []; for (;;) all.push(new Array(1000).fill({}))")
      )
      assert.strictEqual(problem, "the mail cannot be read: it takes too much memory")
    }).pipe(Effect.scoped)
  )
})
