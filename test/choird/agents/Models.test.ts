import { assert, describe, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import type { HostContainerId } from "#src/choird/runtime/ContainerRuntime.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { beginLife, database, LIVE, makeAgentHome } from "../../support/choird.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

const model = (secret: string) => ({ provider: "test", model: "m", endpoint: "http://127.0.0.1:1", secret })
const [SMALL, LARGE] = [ResourceName.make("small"), ResourceName.make("large")]

/** Heartbeats are far apart, so that what is seen at once was pushed. */
const setUp = Effect.gen(function* () {
  const home = yield* makeAgentHome(() => ({
    models: { small: model("small-key"), large: model("large-key"), poor: model("no-key") },
    heartbeat_interval_ms: 20_000,
    crash_detection_threshold_ms: 40_000
  }))
  home.write("secrets.json", { "small-key": "s1", "large-key": "s2" })
  const life = yield* beginLife(home.home)
  const set = (llm: ResourceName | undefined, core_llm?: ResourceName, id = home.agent_id) =>
    life.within(
      Effect.flatMap(Models, (models) =>
        models.set(id, "operator", {
          ...(llm === undefined ? {} : { llm }),
          ...(core_llm === undefined ? {} : { core_llm })
        })
      )
    )
  const get = life.within(Effect.flatMap(Models, (models) => models.get(home.agent_id)))
  return { ...home, ...life, get, set }
})

const audited = (agent_id: AgentId) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ readonly who: string; readonly detail: unknown }>`SELECT who, detail FROM choir_control.audit
      WHERE agent_id = ${agent_id} AND action = 'model.set' ORDER BY id`
  )

describe("Models", LIVE, () => {
  layer(database, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("switch a running agent and its secrets at once, outlast its crash, and end with its start", () =>
      Effect.gen(function* () {
        const { agent_id, get, lifecycle, say, set, told, within } = yield* setUp
        const latest = within(Effect.flatMap(SessionStore, (sessions) => sessions.latest(agent_id)))
        yield* lifecycle.start(agent_id, {})
        yield* say(agent_id, "model")
        yield* told(agent_id, /^1: small small s1$/u)
        const switched = yield* set(LARGE)
        const before = yield* within(Effect.flatMap(ConfigStore, (config) => config.current))
        assert.deepInclude(switched, { llm: LARGE, core_llm: LARGE, default_llm: SMALL, in_use: false })
        yield* say(agent_id, "model")
        yield* told(agent_id, /^1: large large s2$/u)
        yield* set(undefined, SMALL)
        yield* say(agent_id, "model")
        yield* told(agent_id, /^1: large small s[12]\+s[12]$/u)
        const now = yield* within(Effect.flatMap(ConfigStore, (config) => config.current))
        assert.strictEqual(now.version, before.version + 1)

        const running = Option.getOrThrow(yield* latest)
        process.kill((running.container as unknown as HostContainerId).processes[0]?.pid ?? 0, "SIGKILL")
        yield* say(agent_id, "model")
        yield* told(agent_id, /^2: large small /u)
        assert.deepInclude(yield* get, { llm: LARGE, core_llm: SMALL, default_core_llm: SMALL })
        assert.strictEqual(Option.getOrThrow(yield* latest).resource_bindings.llm, SMALL)

        yield* lifecycle.restart(agent_id)
        yield* say(agent_id, "model")
        yield* told(agent_id, /^3: small small s1$/u)
        assert.deepStrictEqual(yield* within(audited(agent_id)), [
          { who: "operator", detail: { llm: "large", core_llm: "large" } },
          { who: "operator", detail: { llm: "large", core_llm: "small" } }
        ])
      })
    )

    it.effect("refuse what would not work, each with an audit row, and change nothing (R77)", () =>
      Effect.gen(function* () {
        const { agent_id, get, lifecycle, set, within } = yield* setUp
        const refusal = (llm: string, id = agent_id) =>
          Effect.map(Effect.flip(set(ResourceName.make(llm), undefined, id)), ({ hint, kind, reason }) =>
            [kind, reason, hint].join(" | ")
          )
        assert.match(yield* refusal("large"), /^NOT_RUNNING \| .* is stopped; .*choirctl agent start/u)
        assert.deepInclude(yield* get, { llm: SMALL, in_use: false })
        yield* lifecycle.start(agent_id, {})
        const { version } = yield* within(Effect.flatMap(ConfigStore, (config) => config.current))
        assert.match(
          yield* refusal("huge"),
          /^NOT_READY \| there is no model "huge" \| choose one of small, large, poor$/u
        )
        assert.match(yield* refusal("constructor"), /^NOT_READY /u)
        assert.match(
          yield* refusal("poor"),
          /^NOT_READY \| .*"no-key".*choirctl secret set no-key && choirctl secret apply$/u
        )
        assert.match(yield* refusal("large", AgentId.make("nobody")), /^UNKNOWN_AGENT /u)
        assert.deepInclude(yield* get, { llm: SMALL, core_llm: SMALL })
        const now = yield* within(Effect.flatMap(ConfigStore, (config) => config.current))
        assert.strictEqual(now.version, version)
        const details = (yield* within(audited(agent_id))).map(({ detail }) => detail)
        assert.deepStrictEqual(details, [
          { llm: "large", refused: "NOT_RUNNING" },
          { llm: "huge", refused: "NOT_READY" },
          { llm: "constructor", refused: "NOT_READY" },
          { llm: "poor", refused: "NOT_READY" }
        ])
      })
    )

    it.effect("of several requests at once are all numbered", () =>
      Effect.gen(function* () {
        const { agent_id, lifecycle, set, within } = yield* setUp
        yield* lifecycle.start(agent_id, {})
        yield* set(SMALL)
        const { version } = yield* within(Effect.flatMap(ConfigStore, (config) => config.current))
        yield* Effect.all([set(LARGE), set(SMALL), set(LARGE), set(SMALL)], { concurrency: 4 })
        const now = yield* within(Effect.flatMap(ConfigStore, (config) => config.current))
        assert.strictEqual(now.version, version + 4)
      })
    )
  })
})
