/** Two calls of an agent side by side, in each runtime: one has a secret, the other looks for it. */
import { randomBytes } from "node:crypto"
import { readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { CallsApart } from "#schema/AgentApi.ts"
import { apartFrom } from "#src/shared/program/callsApart.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { APART, APART_PROGRAM } from "../support/apartProgram.ts"
import { HIDDEN, memoryAttacks, signalAttacks, VICTIM } from "../support/callAttacks.ts"
import { leaveOut } from "../support/packages.ts"
import { LIVE } from "../choird/runtime/rig.ts"
import { describeRuntimes } from "../choird/runtime/runtimes.ts"

const leftOut =
  APART.level === "full" ? undefined : leaveOut("calls apart", "the kernel has no Landlock with scopes (Linux 6.12)")

/** Root of a host looks into every process, so that there two calls are those of another user. */
const AS_USER = process.getuid?.() === 0 ? ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []

const START = `
  const { spawn } = require("child_process")
  const child = spawn(command[0], command.slice(1), { env: { PATH: "/usr/bin:/bin", HIDDEN: hidden }, stdio: ["pipe", "pipe", "inherit", "pipe"], detached: true })
  globalThis.said = ""
  child.stdio[3].end(hidden)
  globalThis.ended = new Promise((done) => child.once("close", () => done(globalThis.said)))
  globalThis.child = child
  return new Promise((done) => child.stdout.on("data", (text) => {
    globalThis.said += text
    const found = /ready (\\d+)/.exec(globalThis.said)
    if (found) done(Number(found[1]))
  }))`

/** All at once would hide which of them it was; the answers are those of a shell's standard output. */
const TRY = `
  const { spawnSync } = require("child_process")
  return attacks.map(([name, program, ...args]) => {
    const { stdout } = spawnSync(command[0], [...command.slice(1), program, ...args], { env: { PATH: "/usr/bin:/bin" }, encoding: "utf8", timeout: 60000 })
    return [name, stdout]
  })`

const given = (values: Readonly<Record<string, unknown>>, code: string) =>
  `${Object.entries(values)
    .map(([name, value]) => `const ${name} = ${JSON.stringify(value)};`)
    .join("\n")}\n${code}`

describeRuntimes("a call beside another one", ({ inside, rig, type }) => {
  /** Starts a call with a secret, lets another one try everything, and answers what it took and what the first says of it. */
  const sideBySide = Effect.fnUntraced(function* (level: CallsApart) {
    const made = yield* rig()
    yield* (yield* ContainerRuntime).start(made.spec)
    const agent = yield* made.connected
    const bytes = readFileSync(APART_PROGRAM).toString("base64")
    const copy =
      "const file = process.cwd() + '/apart'; require('fs').writeFileSync(file, Buffer.from(bytes, 'base64'), { mode: 0o755 }); return file"
    const program = type === "process" ? APART_PROGRAM : String(yield* agent.ask(given({ bytes }, copy)))
    const start = level === "none" ? [program, "0"] : apartFrom({ level, program }, { folders: false, offline: false })
    const command = type === "process" ? [...AS_USER, ...start] : start
    const name = `choir-call-${randomBytes(6).toString("hex")}`
    const victim = [...command, "/usr/bin/perl", "-e", VICTIM, name]
    const pid = Number(yield* agent.ask(given({ command: victim, hidden: HIDDEN }, START)))
    const attacks = [...memoryAttacks(pid), ...signalAttacks(pid, name)]
    const answers = (yield* agent.ask(given({ attacks, command }, TRY))) as ReadonlyArray<readonly [string, string]>
    const said = String(yield* agent.ask("child.stdin.end(); return ended"))
    return { attacks, said, taken: answers.filter(([, text]) => text.includes("TAKEN")).map(([name]) => name) }
  })

  it.live.skipIf(leftOut !== undefined)(
    "can neither look into it, nor signal it, nor reach its abstract sockets, in 50 ways",
    () =>
      Effect.gen(function* () {
        const { attacks, said, taken } = yield* sideBySide("full")
        assert.isAtLeast(attacks.length, 50)
        assert.deepStrictEqual(taken, [])
        assert.match(said, /^ready \d+\nended\n$/u)
      }).pipe(inside),
    LIVE
  )

  it.live(
    "does so without a domain of its own, which shows that the ways are ways",
    () =>
      Effect.gen(function* () {
        const { taken } = yield* sideBySide("none")
        assert.includeMembers(taken, [
          "environ",
          "mem by its map",
          "mem of the thread",
          "its folder",
          "a connection to its abstract name",
          "a datagram to its abstract name",
          "kill with USR1",
          "kill with KILL"
        ])
      }).pipe(inside),
    LIVE
  )

  it.live.skipIf(leftOut !== undefined)(
    "keeps its memory to itself in a domain without scopes, as older kernels have",
    () =>
      Effect.gen(function* () {
        const { taken } = yield* sideBySide("memory")
        const ofMemory = new Set(memoryAttacks(1).map(([name]) => name))
        assert.deepStrictEqual(
          taken.filter((name) => ofMemory.has(name)),
          []
        )
      }).pipe(inside),
    LIVE
  )
})
