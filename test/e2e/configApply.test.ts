/** `choirctl config apply`, `agent restart` and `agent init` beside a real choird, with the files as an operator edits them. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { choirctl, document, spawnChoirctl } from "../support/choirctl.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"
import { atFull, LAYER_MS_MAX } from "../support/size.ts"

const OLD_KEY = "first-canary"
const NEW_KEY = "second-canary"

/** A running agent with a key, a second model, and a second DM; the files change as `edit` says. */
const make = Effect.gen(function* () {
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const { endpoint } = provider
  const model = { provider: "test", model: "offline-model", endpoint, temperature: 0, secret: "key" }
  const dms = {
    me: { gateway: "terminal", user_id: "local", admin: true },
    hall: { gateway: "terminal", user_id: "hall" }
  }
  const choir = yield* makeTestInstallation({
    endpoint,
    secrets: { key: OLD_KEY },
    config: { models: { test: model, other: model, third: model }, dms }
  })
  const { home } = choir
  const file = join(home, "config.json")
  const edit = (change: (config: any) => void) => {
    const config = JSON.parse(readFileSync(file, "utf8"))
    change(config)
    writeFileSync(file, JSON.stringify(config, undefined, 2))
  }
  const secrets = (values: object) => writeFileSync(join(home, "secrets.json"), JSON.stringify(values))
  yield* choir.start
  const ctl = (...args: ReadonlyArray<string>) => choirctl(home, args)
  const ok = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
    const ran = yield* ctl(...args)
    assert.strictEqual(ran.code, 0, `${args.join(" ")}: ${ran.out}${ran.err}`)
    return ran
  })
  /** The same at a terminal, where the question is answered. */
  const asked = (text: string, before: () => void = () => undefined) => {
    const typing = [{ after: "Apply these changes?", text, before }]
    return spawnChoirctl(["--home", home, "config", "apply"], { typing })
  }
  yield* ok("agent", "build", "demo")
  yield* ok("agent", "start", "demo")
  const status = choir.api.agents.status({ params: choir.params })
  const version = Effect.map(
    ctl("config", "history", "--json"),
    (ran) => (document(ran) as Array<{ version: number }>)[0]?.version
  )
  const bindings = Effect.map(status, ({ resource_bindings }) => resource_bindings)
  const key = Effect.map(provider.requests.all, (all) => all.at(-1)?.headers["authorization"])
  return { ...choir, asked, bindings, ctl, edit, key, ok, secrets, status, version }
})

class Choir extends Context.Service<Choir, Effect.Success<typeof make>>()("choir/test/ConfiguredChoir") {
  static readonly layer = Layer.effect(Choir, make)
}

// Each continues from the configuration that the one before left.
layer(Choir.layer, { excludeTestServices: true, timeout: LAYER_MS_MAX })(
  "a configuration that an operator edits",
  (it) => {
    it.effect("apply shows the difference without secrets, asks, and applies it with the secrets it takes along", () =>
      Effect.gen(function* () {
        const { asked, bindings, ctl, edit, key, ok, secrets, status, version } = yield* Choir
        assert.strictEqual((yield* ok("config", "apply")).out, "No pending changes.\n")
        const before = yield* version
        edit((config) => {
          config.budgets = { max_tool_calls_per_session: 77 }
          config.agents.demo.defaults.llm = "other"
        })
        secrets({ key: NEW_KEY })

        for (const json of [[], ["--json"]]) {
          const refused = yield* ctl("config", "apply", ...json)
          assert.strictEqual(refused.code, 2)
          assert.include(refused.out + refused.err, "config apply --yes")
        }
        const no = yield* asked("n")
        assert.strictEqual(no.code, 1)
        assert.include(no.out, "nothing was changed")
        assert.match(no.out, /~ agents\.demo\.defaults\.llm: "test" → "other" .*\[restart-required: demo\]/u)
        assert.match(no.out, /budgets\.max_tool_calls_per_session: .*77 .*\[hot-reload\]/u)
        assert.match(no.out, /~ secret key changed .*\[hot-reload\]/u)
        assert.notMatch(no.out, /canary/u)
        assert.strictEqual(yield* version, before)

        const yes = yield* ok("config", "apply", "--yes")
        assert.match(yes.out, /choirctl --home \S+ agent restart demo/u)
        assert.notMatch(yes.out + yes.err, /canary/u)
        assert.strictEqual((yield* bindings)?.llm, "test")
        yield* ok("chat", "demo", "--message", "say hello")
        assert.strictEqual(yield* key, `Bearer ${NEW_KEY}`)

        const { session_id } = yield* status
        const restarted = yield* ok("config", "apply", "--yes", "--restart")
        assert.include(restarted.out, "restarted demo\n")
        assert.strictEqual((yield* bindings)?.llm, "other")
        assert.strictEqual((yield* status).session_id, session_id)
        assert.strictEqual((yield* ok("config", "apply", "--restart")).out, "No pending changes.\n")
      })
    )

    atFull(it.effect)("apply refuses what changed between the question and the answer", () =>
      Effect.gen(function* () {
        const { asked, ctl, edit, home, ok, version } = yield* Choir
        const before = yield* version
        edit((config) => {
          config.budgets = { max_tool_calls_per_session: 80 }
        })
        const changed = yield* asked("y", () =>
          edit((config) => {
            config.budgets.max_tool_calls_per_session = 81
          })
        )
        assert.strictEqual(changed.code, 1)
        assert.include(changed.out, "config.json or secrets.json changed after the changes were shown")
        assert.strictEqual(yield* version, before)
        const applied = yield* asked("y")
        assert.strictEqual(applied.code, 0)
        assert.include(applied.out, "is running; it was")
        assert.isAbove((yield* version) ?? 0, before ?? 0)

        // What a rollback leaves in config.json is what the next apply offers, unless the operator follows the hint.
        const back = yield* ok("config", "rollback", String(before))
        const [, keep = ""] = /first: choirctl --home \S+ (config show --version \d+) > /u.exec(back.err) ?? []
        const offered = yield* ctl("config", "apply")
        assert.strictEqual(offered.code, 2)
        assert.include(offered.err, "budgets.max_tool_calls_per_session")
        writeFileSync(join(home, "config.json"), (yield* ok(...keep.split(" "))).out)
        assert.strictEqual((yield* ok("config", "apply")).out, "No pending changes.\n")
      })
    )

    it.effect("agent restart takes the defaults as they are, and says what it keeps of the start", () =>
      Effect.gen(function* () {
        const { bindings, ctl, edit, home, ok } = yield* Choir
        yield* ok("agent", "stop", "demo")
        yield* ok("agent", "start", "demo", "--llm", "other")
        const spare = join(home, "workspaces/spare")
        mkdirSync(spare)
        edit((config) => {
          config.workspaces.spare = { path: spare }
          Object.assign(config.agents.demo.defaults, { llm: "third", dm: ["hall", "me"], workspace: "spare" })
        })
        yield* ok("config", "apply", "--yes")
        const restarted = yield* ok("agent", "restart", "demo")
        assert.deepStrictEqual(
          restarted.err.split("\n").filter((line) => line !== ""),
          [
            "keeps llm other from agent start --llm; the default is third",
            `to use the defaults: choirctl --home ${home} agent stop demo && choirctl --home ${home} agent start demo`
          ]
        )
        assert.deepInclude((yield* bindings) as object, { llm: "other", dms: ["hall", "me"], workspace: "spare" })

        const named = yield* ok("agent", "restart", "demo", "--dm", "me", "--dm", "hall", "--json")
        assert.deepStrictEqual((document(named) as { keeps: unknown }).keeps, [
          { binding: "llm", name: "other", default: "third" },
          { binding: "dm", name: "me, hall", default: "hall, me" }
        ])
        const unknown = yield* ctl("agent", "restart", "demo", "--llm", "none")
        assert.strictEqual(unknown.code, 1)
        assert.include(unknown.err, 'there is no model "none"')
        assert.deepInclude((yield* bindings) as object, { llm: "other", dms: ["me", "hall"] })

        yield* ok("agent", "stop", "demo")
        yield* ok("agent", "start", "demo")
        assert.deepInclude((yield* bindings) as object, { llm: "third", dms: ["hall", "me"] })

        edit((config) => {
          Object.assign(config.agents.demo.defaults, { llm: "test", dm: "me", workspace: "main" })
        })
        yield* ok("config", "apply", "--yes", "--restart")
      })
    )

    it.effect("agent init adds an agent to a running choird, unless other changes wait in config.json", () =>
      Effect.gen(function* () {
        const { ctl, edit, home, ok } = yield* Choir
        const unknown = yield* ctl("agent", "start", "second")
        assert.deepStrictEqual([unknown.code, unknown.err], [1, "error: there is no agent second\nhint: known: demo\n"])
        const made = yield* ok("agent", "init", "second", "--llm", "test")
        assert.include(made.out, "choird knows second")
        yield* ok("agent", "build", "second")
        yield* ok("agent", "start", "second")
        assert.include((yield* ok("chat", "second", "--message", "say hello you")).out, "hello you")

        edit((config) => {
          config.budgets = { max_tool_calls_per_session: 90 }
        })
        const waiting = yield* ok("agent", "init", "third", "--llm", "test")
        assert.include(waiting.err, "budgets.max_tool_calls_per_session")
        assert.match(
          waiting.out,
          /Next:\n {2}choirctl --home \S+ config apply\n {2}choirctl --home \S+ agent build third/u
        )
        const early = yield* ctl("agent", "build", "third")
        assert.strictEqual(early.code, 1)
        assert.include(
          early.err,
          `config.json has an agent third that choird has not applied\nhint: choirctl --home ${home} config apply\n`
        )
        const applied = yield* ok("config", "apply", "--yes")
        assert.include(applied.err, "+ agents.third")
        yield* ok("agent", "build", "third")
        yield* ok("agent", "start", "third")
        for (const agent of ["second", "third"]) yield* ok("agent", "stop", agent)
      })
    )

    it.effect(
      "apply restarts exactly the agents concerned, and names one that does not come up or cannot be restarted",
      () =>
        Effect.gen(function* () {
          const { ctl, edit, home, ok, status } = yield* Choir
          yield* ok("agent", "init", "other", "--llm", "test")
          yield* ok("agent", "build", "other")
          yield* ok("agent", "start", "other")
          const others = Effect.map(
            ctl("agent", "status", "other", "--json"),
            (ran) => (document(ran) as { health: { epoch: number } }).health.epoch
          )
          const epoch = yield* others

          edit((config) => {
            config.agents.demo.defaults.llm = "other"
          })
          const one = document(yield* ok("config", "apply", "--yes", "--restart", "--json"))
          assert.deepInclude(one, {
            restarted: [{ agent_id: "demo", outcome: "restarted" }],
            needs_restart: [],
            pending: []
          })
          assert.strictEqual(yield* others, epoch)

          edit((config) => {
            config.workspaces.main.path = join(home, "workspaces/nowhere")
          })
          const kept = yield* ctl("config", "apply", "--yes", "--restart")
          assert.strictEqual(kept.code, 1)
          assert.include(kept.out, "demo was not restarted and keeps running")
          assert.include(kept.out, "workspaces/nowhere")
          assert.include(kept.out, " agent restart demo")
          assert.strictEqual((yield* status).status, "running")

          edit((config) => {
            config.workspaces.main.path = join(home, "workspaces/main")
            config.agents.demo.defaults.llm = "third"
          })
          rmSync(join(home, "images/demo"), { recursive: true })
          const down = yield* ctl("config", "apply", "--yes", "--restart")
          assert.strictEqual(down.code, 1)
          assert.include(down.out, "demo did not start again: ")
          assert.include(down.out, " agent build demo")
          assert.include(down.out, " agent start demo")
          assert.strictEqual((yield* status).status, "stopped")
          assert.strictEqual(yield* others, epoch)
        })
    )
  }
)
