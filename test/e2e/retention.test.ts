/** Sessions that leave the database, and a disk that is almost full, in an installation of real processes. */
import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Schedule } from "effect"
import type { Check } from "#src/choirctl/doctor/hostChecks.ts"
import type { SystemStatus } from "#schema/SystemApi.ts"
import { choirctl, document } from "../support/choirctl.ts"
import { documentedProgram, pageText } from "../support/documentedCommands.ts"
import { temporaryFolder } from "../support/engines.ts"
import { AGENT } from "../support/installation.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { LAYER_MS_MAX } from "../support/size.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"

/** No disk has that much free. */
const EVERYTHING_MB = 1_073_741_824

const make = Effect.gen(function* () {
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const choir = yield* makeTestInstallation({ endpoint: provider.endpoint, config: { heartbeat_interval_ms: 200 } })
  yield* choir.start
  yield* choir.build
  const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload: {} })
  const ask = (...args: ReadonlyArray<string>) => Effect.map(choirctl(choir.home, [...args, "--json"]), document)
  const soon = (look: Effect.Effect<boolean>) =>
    look.pipe(
      Effect.repeat({
        until: (done) => done,
        schedule: Schedule.max([Schedule.spaced("250 millis"), Schedule.recurs(480)])
      }),
      Effect.map((done) => assert.isTrue(done))
    )
  const say = Effect.fnUntraced(function* (id: string, text: string) {
    const { inbox_id } = yield* choir.send(id, text)
    return yield* choir.settled(inbox_id)
  })
  const status = Effect.map(ask("status"), (all) => all as SystemStatus)
  return { ask, choir, say, session: session_id ?? "", soon, status }
})

class Choir extends Context.Service<Choir, Effect.Success<typeof make>>()("choir/test/KeptChoir") {
  static readonly layer = Layer.effect(Choir, make)
}

layer(Choir.layer, { excludeTestServices: true, timeout: LAYER_MS_MAX })("a session of an installation", (it) => {
  it.effect(
    "is exported with what the documented verifier proves, archived, read from there, and deleted to a record",
    () =>
      Effect.gen(function* () {
        const { ask, choir, say, session } = yield* Choir
        yield* say("first", "hello")
        const folder = yield* temporaryFolder
        assert.nestedPropertyVal(yield* ask("session", "archive", AGENT), "error.type", "SESSION_RUNNING")
        yield* ask("agent", "stop", AGENT)
        const verified = (yield* ask("session", "verify", session.slice(0, 12))) as { events: number; head: string }
        const verifier = join(folder, "verify.mjs")
        writeFileSync(verifier, documentedProgram(pageText("docs/log.md"), "verify.mjs"))
        const proved = Effect.fnUntraced(function* (name: string) {
          const file = join(folder, name)
          const exported = yield* ask("session", "export", AGENT, file)
          assert.deepInclude(exported as object, { session_id: session, events: verified.events, head: verified.head })
          const manifest = JSON.parse(readFileSync(`${file}.manifest.json`, "utf8"))
          assert.deepInclude(manifest, { events: verified.events, head: verified.head })
          const said = execFileSync(process.execPath, [verifier, session], { input: readFileSync(file) })
          assert.strictEqual(String(said), `${verified.events} events, head ${verified.head}\n`)
          return readFileSync(file, "utf8")
        })
        const before = yield* proved("before.jsonl")
        assert.deepInclude((yield* ask("session", "archive", AGENT)) as object, {
          session_id: session,
          head: verified.head
        })
        assert.strictEqual(yield* proved("after.jsonl"), before)
        assert.deepInclude((yield* ask("session", "verify", session)) as object, { ok: true, head: verified.head })
        assert.strictEqual((yield* choirctl(choir.home, ["agent", "status", AGENT])).code, 0)
        assert.deepInclude((yield* ask("prune", "--dry-run")) as object, { dry_run: true })
        assert.strictEqual((yield* choirctl(choir.home, ["prune"])).code, 0)
        const deleted = yield* ask("session", "delete", session, "--yes")
        assert.deepInclude(deleted as object, { last_rev: verified.events, head: verified.head })
        const shown = (yield* ask("session", "show", session)) as { error: { type: string; message: string } }
        assert.strictEqual(shown.error.type, "SESSION_DELETED")
        assert.include(shown.error.message, verified.head)
        const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload: {} })
        assert.notStrictEqual(session_id, session)
        const answered = yield* say("second", "hello again")
        assert.isTrue(answered.some((event) => event.type === "message" && event.kind === "reply"))
      })
  )

  it.effect(
    "waits while the disk is almost full, which status and doctor name, and goes on by itself afterwards (R50)",
    () =>
      Effect.gen(function* () {
        const { ask, choir, say, soon, status } = yield* Choir
        yield* say("third", "hello")
        const session = (yield* choir.api.agents.status({ params: choir.params })).session_id ?? ""
        const path = join(choir.home, "config.json")
        const config = JSON.parse(readFileSync(path, "utf8"))
        const apply = Effect.fnUntraced(function* (retention: object) {
          writeFileSync(path, JSON.stringify({ ...config, retention }), { mode: 0o600 })
          assert.strictEqual((yield* choirctl(choir.home, ["config", "apply", "--yes"])).code, 0)
        })
        yield* apply({ disk_free_mb: EVERYTHING_MB })
        yield* soon(Effect.map(status, ({ disk }) => disk?.paused.includes(AGENT) === true))
        const { agents, warnings } = yield* status
        assert.strictEqual(agents[0]?.status, "paused")
        assert.match(warnings.join("\n"), /the disk of .* is almost full: .*; paused: demo; to fix it: choirctl prune/u)
        const { checks } = (yield* ask("doctor")) as { checks: ReadonlyArray<Check> }
        const disk = checks.find(({ name }) => name === "disk")
        assert.strictEqual(disk?.status, "fail")
        assert.match(disk?.fix ?? "", /choirctl prune/u)
        assert.nestedPropertyVal(yield* ask("agent", "start", AGENT), "error.type", "NOT_READY")
        // What comes meanwhile is taken, and answered afterwards.
        const { inbox_id } = yield* choir.send("meanwhile", "are you there")
        yield* apply({})
        const answered = yield* choir.settled(inbox_id)
        assert.isTrue(answered.some((event) => event.type === "message" && event.kind === "reply"))
        const detail = (yield* ask("agent", "status", AGENT)) as { session_id: string; status: string }
        assert.deepInclude(detail, { session_id: session, status: "running" })
        assert.deepInclude((yield* ask("session", "verify", session)) as object, { ok: true })
      })
  )
})
