/** A tool of one's own as whole programs: docs/tools.md as it is typed on a new machine, and tools that no agent could run. */
import { execFile } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { AgentId } from "#schema/Ids.ts"
import { choirctl } from "../support/choirctl.ts"
import { temporaryFolder } from "../support/gitRepo.ts"
import { ROOT } from "../support/installation.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { LAYER_MS_MAX } from "../support/size.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"

const SCRIBE = AgentId.make("scribe")

interface Typed {
  readonly code: number
  readonly out: string
}

/** A process with nothing of this one's environment. */
const typed = (program: string, args: ReadonlyArray<string>, cwd: string, env: Readonly<Record<string, string>>) =>
  Effect.callback<Typed>((resume) => {
    const child = execFile(program, [...args], { cwd, env }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1
      resume(Effect.succeed({ code, out: `${stdout}${stderr}` }))
    })
    child.stdin?.end()
    return Effect.sync(() => void child.kill("SIGKILL"))
  })

const PAGE = readFileSync(join(ROOT, "docs/tools.md"), "utf8")
const ADDING = PAGE.slice(PAGE.indexOf("## Adding one"), PAGE.indexOf("## Core jobs"))
/** The blocks of the page's section, by their language, in order. */
const blocks = (language: string) =>
  [...ADDING.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gmu)].flatMap(([, of, text = ""]) => (of === language ? [text] : []))

/** An agent that was set up by hand and runs, in a HOME that never saw git. */
const make = Effect.gen(function* () {
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const choir = yield* makeTestInstallation({ endpoint: provider.endpoint, config: { agents: {} } })
  const { home } = choir
  const empty = yield* temporaryFolder
  const bin = join(empty, "bin")
  mkdirSync(bin)
  const line = `exec ${process.execPath} ${join(ROOT, "dist/choirctl.js")} --home ${home} "$@"\n`
  writeFileSync(join(bin, "choirctl"), `#!/bin/sh\n${line}`, { mode: 0o755 })
  const env = { HOME: empty, PATH: `${bin}:/usr/local/bin:/usr/bin:/bin`, GIT_CONFIG_NOSYSTEM: "1" }
  const sh = (text: string, cwd = home) => typed("/bin/sh", ["-ec", text], cwd, env)
  const ok = (text: string, cwd = home) =>
    Effect.tap(sh(text, cwd), ({ code, out }) => Effect.sync(() => assert.strictEqual(code, 0, `${text}\n${out}`)))
  yield* ok("choirctl agent init scribe")
  yield* choir.start
  yield* ok("choirctl agent build scribe && choirctl agent start scribe")
  return { ...choir, ok, sh, sources: join(home, "sources/agents/scribe") }
})

class Scribe extends Context.Service<Scribe, Effect.Success<typeof make>>()("choir/test/Scribe") {
  static readonly layer = Layer.effect(Scribe, make)
}

layer(Scribe.layer, { excludeTestServices: true, timeout: LAYER_MS_MAX })("a tool of one's own", (it) => {
  it.effect("that no agent could run fails the update with its cause, and the agent goes on as it was", () =>
    Effect.gen(function* () {
      const { api, home, ok, sources } = yield* Scribe
      const summary = Effect.map(api.agents.list(), ([agent]) => agent)
      const before = yield* summary
      yield* ok("git tag clean", sources)
      const manifest = (more: object) =>
        JSON.stringify({
          llm: { name: "words.count", description: "d", input_schema: { type: "object" } },
          runtime: { exec_path: "words.count", ...more }
        })
      writeFileSync(join(sources, "tools/words.count"), "#!/bin/sh\n", { mode: 0o755 })
      for (const [text, cause] of [
        [manifest({ locks: [{ resource: "bogus", mode: "X" }] }), `"bogus" cannot be locked: no such resource`],
        [manifest({ secret_resources: ["githbu"] }), `the secret "githbu" belongs to nothing that scribe is bound to`],
        [manifest({}).replace('"object"', '"object","properties":{"a":{"typ":"string"}}'), "did you mean type?"]
      ] as const) {
        writeFileSync(join(sources, "tools/words.count.json"), text)
        yield* ok("git add --all && git commit --quiet -m more", sources)
        for (const command of ["update", "build"]) {
          const refused = yield* choirctl(home, ["agent", command, "scribe"])
          assert.strictEqual(refused.code, 1, `${refused.out}${refused.err}`)
          assert.include(`${refused.out}${refused.err}`, `repository of scribe: tools/words.count.json: `)
          assert.include(`${refused.out}${refused.err}`, cause)
        }
      }
      yield* ok("git reset --quiet --hard clean", sources)
      assert.strictEqual(before?.health?.epoch, 1)
      const after = yield* summary
      assert.deepStrictEqual(
        [after?.status, after?.image_version, after?.session_id, after?.health?.epoch],
        ["running", before?.image_version, before?.session_id, 1]
      )
      assert.include((yield* ok("choirctl chat scribe --message 'write a.txt: hello'")).out, "Wrote a.txt")
    })
  )

  it.effect("is added as docs/tools.md says, by a user who never told git who they are", () =>
    Effect.gen(function* () {
      const { ok, sources } = yield* Scribe
      const [manifest = ""] = blocks("json")
      const [program = ""] = blocks("python")
      const [commands = ""] = blocks("sh")
      const [printed = ""] = blocks("")
      writeFileSync(join(sources, "tools/words.count.json"), manifest)
      writeFileSync(join(sources, "tools/words.count"), program)
      const warned = yield* ok("choirctl agent build scribe")
      assert.include(warned.out, `2 uncommitted files in ${sources} are not built: git -C ${sources} add`)
      const { out } = yield* ok(commands, sources)
      assert.include(out, printed)
    })
  )
})

describe("an agent", () => {
  it.live("says no hello from an image that it cannot run, and ends with the cause as its last line", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const choir = join(folder, "choir")
      mkdirSync(join(choir, "tools/agent"), { recursive: true })
      writeFileSync(
        join(choir, "version.json"),
        JSON.stringify({
          agent_id: SCRIBE,
          image_version: "0000001",
          tool_manifest_hash: "0".repeat(64),
          skill_manifest_hash: "0".repeat(64),
          global_repo_commit: "0".repeat(40),
          agent_repo_commit: "0".repeat(40)
        })
      )
      writeFileSync(join(choir, "tools/agent/words.count.json"), `{"llm":{}, "runtim":{}}`)
      const socket = join(folder, "choird.sock")
      const asked: Array<string> = []
      yield* Effect.acquireRelease(
        Effect.callback<ReturnType<typeof createServer>>((resume) => {
          const server = createServer(({ url = "" }, response) => {
            asked.push(url)
            response.writeHead(500).end()
          }).listen(socket, () => resume(Effect.succeed(server)))
        }),
        (server) => Effect.sync(() => server.close())
      )
      const { code, out } = yield* typed(
        process.execPath,
        [join(ROOT, "dist/choir-agent.js"), "--socket", socket, "--choir", choir, "--workspace", folder],
        folder,
        { AGENT_ID: SCRIBE, CHOIR_SESSION_ID: "0123456789abcdef", CHOIR_BOOTSTRAP_TOKEN: "token" }
      )
      assert.strictEqual(code, 1)
      assert.deepStrictEqual(asked, [])
      const last = JSON.parse(out.trim().split("\n").at(-1) ?? "") as {
        readonly level: string
        readonly message: string
      }
      assert.strictEqual(last.level, "FATAL", out)
      assert.include(last.message, `tools/agent/words.count.json cannot be used: runtim: "runtim" is not a known key`)
      assert.notInclude(out, " at ")
    }).pipe(Effect.scoped)
  )
})
