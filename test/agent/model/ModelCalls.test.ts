/** A lane's model calls against providers on real sockets: one snapshot a call, models that come and go (R35, R58). */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Logger, Redacted } from "effect"
import { TestClock } from "effect/testing"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import { EDGE, InboxId, LaneId, ResourceName, SecretName } from "#schema/Ids.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { Budget } from "#src/agent/model/Budget.ts"
import { Drafts } from "#src/agent/model/Drafts.ts"
import type { Message, Tool } from "#src/shared/model/Conversation.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { Llm } from "#src/agent/model/Llm.ts"
import { ModelCalls } from "#src/agent/model/ModelCalls.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { Pictures } from "#src/agent/workspace/Pictures.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { configOf } from "../../support/askedModel.ts"
import { makeMemoryControlPlane, SESSION } from "../../support/testing/MemoryControlPlane.ts"
import * as double from "../../support/testing/Provider.ts"
import { layerScriptedModel, says } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, settingsOf } from "../../support/testing/TestAgent.ts"

const model = (provider: double.Provider, more: object = {}) => ({
  provider: "p",
  model: "m",
  endpoint: provider.endpoint,
  ...more
})
const secretsOf = (value: string) => new Map([[SecretName.make("key"), Redacted.make(value)]])
/** Answers edge's turn, if one is open, and opens the next. */
const say = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const { edge, last_inbox_id } = arbiter.state()
  if (edge.turn !== undefined) yield* arbiter.commit({ type: "Answer", text: "done" })
  const inbox_id = InboxId.make(String(last_inbox_id + 1n))
  const message = { inbox_id, dm: ResourceName.make("me"), text: "go", attachments: [], created_at: "" }
  yield* arbiter.commit({ type: "UserMessage", message: { type: "UserMessage", ...message } })
})
/** What other fibers and sockets have to do, they do meanwhile. */
const turns = (count: number) =>
  Effect.repeat(
    Effect.promise(() => new Promise((resolve) => setImmediate(resolve))),
    { times: count }
  )
const TOOL: Tool = { name: "t", description: "d", parameters: { type: "object" } }

/** An agent whose edge has an open turn. */
const withCalls = <A, E>(
  config: AgentConfig,
  use: Effect.Effect<A, E, ModelCalls | AgentSettings | SecretStore | Arbiter | TokenCount>,
  { llm = Llm.layer.pipe(Layer.provide(NodeHttpClient.layerUndici)), tokens = TokenCount.layer } = {}
) =>
  Effect.gen(function* () {
    const plane = yield* makeMemoryControlPlane
    const base = Arbiter.layer.pipe(
      Layer.provideMerge(
        Layer.mergeAll(
          EventLog.layer(SESSION),
          AgentSettings.layer(settingsOf(1, config)),
          SecretStore.layer,
          plane.layer(1)
        )
      )
    )
    const guards = Layer.mergeAll(Replication.layer, Budget.layer, Drafts.layer, tokens, llm, Pictures.layerNone).pipe(
      Layer.provideMerge(base)
    )
    return yield* Effect.andThen(say, use).pipe(Effect.provide(ModelCalls.layer.pipe(Layer.provideMerge(guards))))
  }).pipe(Effect.provide(Logger.layer([])))

const MESSAGES: ReadonlyArray<Message> = [
  { role: "system", content: "You are an agent." },
  { role: "user", content: "go" }
]
const ask = (name: string, lane: LaneId = EDGE) =>
  Effect.flatMap(ModelCalls, (calls) => calls.ask(lane, "turn", name, [TOOL], () => ({ messages: MESSAGES })))
const start = Effect.forkChild({ startImmediately: true })

describe("ModelCalls", () => {
  it.effect("counts an answer that came when its asker is interrupted before it is committed (D28)", () =>
    Effect.gen(function* () {
      const counting = yield* Deferred.make<void>()
      // A long prompt is counted beside the call, and may take longer.
      const tokens = Layer.succeed(TokenCount, {
        certainlyBelow: () => false,
        count: () => Effect.andThen(Deferred.succeed(counting, undefined), Effect.never),
        factor: () => 1,
        observe: () => undefined
      })
      const config = configOf({ small: { provider: "p", model: "m", endpoint: "http://127.0.0.1:9" } })
      const interrupted = Effect.gen(function* () {
        const arbiter = yield* Arbiter
        const asked = yield* start(ask("small"))
        yield* Deferred.await(counting)
        yield* Fiber.interrupt(asked)
        assert.strictEqual(arbiter.state().spent.tokens, 15)
        assert.strictEqual(arbiter.state().edge.state, "EDGE_CONTEXT_READY")
      })
      yield* withCalls(config, interrupted, { tokens, llm: layerScriptedModel(() => Effect.succeed(says("unread"))) })
    })
  )

  it.effect("writes a line to the agent's log for the first 429, beside the notice to the user", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProvider
      yield* provider.script(double.rateLimited({ seconds: 0 }), double.answer("at last"))
      const lines: Array<string> = []
      const listening = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
      yield* withCalls(configOf({ small: model(provider) }), Effect.provide(ask("small"), Logger.layer([listening])))
      assert.lengthOf(
        lines.filter((line) => line.includes('The provider of the model "small" is busy or limits its rate')),
        1
      )
    })
  )

  it.effect("says in whole seconds when it asks again", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProvider
      yield* provider.script(double.rateLimited())
      const said = yield* Deferred.make<string>()
      const listening = Logger.make<unknown, void>(({ message }) => {
        if (String(message).includes("asking again")) Deferred.doneUnsafe(said, Effect.succeed(String(message)))
      })
      const config = { ...configOf({ small: model(provider) }), rate_limit_retry_ms: 4321 }
      const asked = Effect.gen(function* () {
        const asking = yield* start(ask("small"))
        assert.match(yield* Deferred.await(said), /; asking again in 5 s\.$/u)
        yield* Fiber.interrupt(asking)
      })
      yield* withCalls(config, Effect.provide(asked, Logger.layer([listening])))
    })
  )

  it.effect(
    "uses one snapshot of settings and secrets for a whole call; a switch counts for the next one (R35, R58)",
    () =>
      Effect.gen(function* () {
        const [before, spare, after] = yield* Effect.all([
          double.makeProvider,
          double.makeProvider,
          double.makeProvider
        ])
        const limited = double.rateLimited({ seconds: 30 })
        yield* before.script(limited, limited)
        yield* spare.script(double.answer("from the old fallback"))
        yield* after.script(double.answer("from the new model"))
        const keyed = { secret: "key", price: { input: 1e6, output: 0 } }
        const config = configOf({
          small: model(before, { ...keyed, fallback: ["spare"], model: "old" }),
          spare: model(spare, { ...keyed, model: "old-spare" })
        })
        yield* withCalls(
          config,
          Effect.gen(function* () {
            const settings = yield* AgentSettings
            const secrets = yield* SecretStore
            yield* secrets.replaceAll(secretsOf("old-secret"))
            const first = yield* start(ask("small"))
            yield* before.requests.at(0)
            const switched = { ...keyed, model: "new", temperature: null, price: { input: 0, output: 0 } }
            yield* settings.replace(2, configOf({ small: model(after, switched), spare: model(after, switched) }))
            yield* secrets.replaceAll(secretsOf("new-secret"))
            while (first.pollUnsafe() === undefined) {
              yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
              yield* TestClock.adjust("1 second")
            }
            const output = (yield* Fiber.join(first))?.payload
            assert.deepStrictEqual([output?.model, output?.text], ["spare", "from the old fallback"])
            assert.isAbove(output?.usage.cost_usd ?? 0, 0)
            for (const { body, headers } of [...(yield* before.requests.all), ...(yield* spare.requests.all)]) {
              assert.strictEqual(headers["authorization"], "Bearer old-secret")
              assert.hasAnyKeys(body, ["temperature"])
            }
            assert.lengthOf(yield* before.requests.all, 2)
            assert.lengthOf(yield* after.requests.all, 0)

            yield* say
            const next = (yield* ask("small"))?.payload
            assert.deepStrictEqual([next?.model, next?.text, next?.usage.cost_usd], ["small", "from the new model", 0])
            const [asked, ...more] = yield* after.requests.all
            assert.lengthOf(more, 0)
            assert.strictEqual(asked?.headers["authorization"], "Bearer new-secret")
            assert.doesNotHaveAnyKeys(asked?.body, ["temperature"])
          })
        )
      })
  )

  it.effect("goes on with the lane's present model where the named one is not bound any more", () =>
    Effect.gen(function* () {
      const [edge, core] = yield* Effect.all([double.makeProvider, double.makeProvider])
      yield* edge.script(double.answer("a"), double.answer("b"))
      yield* core.script(double.answer("c"))
      const config = configOf(
        { talker: model(edge), worker: model(core) },
        { llm: ResourceName.make("talker"), core_llm: ResourceName.make("worker") }
      )
      yield* withCalls(
        config,
        Effect.gen(function* () {
          assert.strictEqual((yield* ask("gone"))?.payload.model, "talker")
          yield* say
          assert.strictEqual((yield* ask("constructor"))?.payload.model, "talker")
          // No such job runs, so that its output is refused after the call: there is nothing to answer.
          assert.isUndefined(yield* ask("gone", LaneId.make("core:a")))
          assert.lengthOf(yield* core.requests.all, 1)
        })
      )
    })
  )

  it.effect("fails a call, and not the agent, when no model is bound at all", () =>
    withCalls(
      configOf({}),
      Effect.gen(function* () {
        const output = yield* ask("small")
        assert.strictEqual(output?.payload.error?.message, 'the model "small" is not configured')
      })
    )
  )

  it.effect("asks again without old results, and then from a shorter window, where the prompt is too long (D51)", () =>
    Effect.gen(function* () {
      const overflow = double.failing(400, "This model's maximum context length is 9 tokens.")
      const results = Array.from({ length: 12 }, (_, index): ReadonlyArray<Message> => {
        const id = `c${index}`
        return [
          { role: "assistant", content: null, calls: [{ id, name: "t", arguments: "{}" }] },
          { role: "tool", call_id: id, content: `${index} ${"x".repeat(400)}` }
        ]
      }).flat()
      const provider = yield* double.makeProvider
      yield* provider.script(overflow, double.answer("a"), overflow, overflow, double.answer("b"))
      yield* withCalls(
        configOf({ small: model(provider) }),
        Effect.gen(function* () {
          const calls = yield* ModelCalls
          const done: Array<string> = []
          const shortening = {
            now: Effect.sync(() => void done.push("now")),
            later: Effect.sync(() => void done.push("later"))
          }
          const long = { messages: [...MESSAGES, ...results] }
          const asked = () => (done.includes("now") ? { messages: MESSAGES } : long)
          const first = yield* calls.ask(EDGE, "turn", "small", [TOOL], asked, shortening)
          assert.strictEqual(first?.payload.text, "a")
          assert.deepStrictEqual(done, ["later"])
          yield* say
          const second = yield* calls.ask(EDGE, "turn", "small", [TOOL], asked, shortening)
          assert.strictEqual(second?.payload.text, "b")
          assert.deepStrictEqual(done, ["later", "now"])
          const sent = (yield* provider.requests.all).map(({ body }) => JSON.stringify(body))
          assert.deepStrictEqual(
            sent.map((body) => [body.split("an old result, left out").length - 1, body.includes('"11 xxx')]),
            [
              [0, true],
              [2, true],
              [0, true],
              [2, true],
              [0, false]
            ]
          )
        })
      )
    })
  )

  it.effect("knows what the lane's newest prompt took, and learns from it near the model's limit", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProvider
      yield* provider.script(
        double.answer("a", { usage: { prompt_tokens: 30, completion_tokens: 1 } }),
        double.answer("b", { usage: { prompt_tokens: -7, completion_tokens: 1 } }),
        double.answer("c", { usage: { prompt_tokens: 60, completion_tokens: 1 } })
      )
      const wide = configOf({ small: model(provider) })
      yield* withCalls(
        wide,
        Effect.gen(function* () {
          const calls = yield* ModelCalls
          const settings = yield* AgentSettings
          const tokens = yield* TokenCount
          assert.isUndefined(calls.lastPrompt(EDGE))
          yield* ask("small")
          assert.deepStrictEqual(calls.lastPrompt(EDGE), {
            model: "small",
            messages: MESSAGES,
            reported: 30
          })
          yield* say
          yield* ask("small")
          assert.strictEqual(calls.lastPrompt(EDGE)?.reported, 30)
          yield* settings.replace(2, configOf({ small: model(provider, { context_window: 10, max_tokens: 1 }) }))
          yield* say
          yield* ask("small")
          const size = calls.lastPrompt(EDGE)
          assert.strictEqual(size?.reported, 60)
          assert.strictEqual(tokens.factor("small"), 60 / (size?.counted ?? 0))
        })
      )
    })
  )

  it.effect("holds a call back while what others reserved may reach the limit, of tokens or of money (D28)", () =>
    Effect.gen(function* () {
      for (const [budgets, more] of [
        [{ total_session_tokens: 4000 }, {}],
        [{ max_cost_usd: 4 }, { price: { input: 0, output: 1000 } }],
        [{ max_cost_usd: 4 }, { price: { input: 0, output: 0 }, fallback: ["dear"] }]
      ] as const) {
        const provider = yield* double.makeProvider
        const answered = yield* Deferred.make<void>()
        yield* provider.script(
          Effect.andThen(Deferred.await(answered), double.answer("slow", { usage: {} })),
          double.answer("quick", { usage: {} })
        )
        const dear = model(provider, { price: { input: 0, output: 1000 } })
        const config = configOf(
          { small: model(provider, more), dear },
          { budgets: { ...agentConfig().budgets, ...budgets } }
        )
        yield* withCalls(
          config,
          Effect.gen(function* () {
            const first = yield* start(ask("small"))
            yield* provider.requests.at(0)
            const second = yield* start(ask("small"))
            yield* turns(100)
            assert.lengthOf(yield* provider.requests.all, 1)
            yield* Deferred.succeed(answered, undefined)
            yield* Fiber.joinAll([first, second])
            assert.lengthOf(yield* provider.requests.all, 2)
          })
        )
      }
    })
  )
})
