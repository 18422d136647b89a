/** What a model call may have cost whose answer nobody waited for: it counts like one that timed out (D28). */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { InboxId, JobName, SignalId } from "#schema/Ids.ts"
import { Llm } from "#src/agent/model/Llm.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { configOf } from "../../support/askedModel.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import * as double from "../../support/testing/Provider.ts"
import { agentConfig, ofType, quiet, runAgent, spoken } from "../../support/testing/TestAgent.ts"

const PRICE = { input: 3, output: 15 }

/** An agent with the real client of models, and a provider that answers as scripted. */
const agent = Effect.fnUntraced(function* (
  budgets: Parameters<typeof agentConfig>[0],
  ...replies: ReadonlyArray<double.Reply>
) {
  const provider = yield* double.makeProvider
  yield* provider.script(...replies)
  const small = { provider: "p", model: "m", endpoint: provider.endpoint, price: PRICE }
  const config = { ...agentConfig(budgets), models: configOf({ small }).models }
  const plane = yield* makeMemoryControlPlane
  const llm = Llm.layer.pipe(Layer.provide([SecretStore.layer, NodeHttpClient.layerUndici]))
  const running = yield* Effect.forkScoped(
    runAgent({ plane, config, llm, script: () => Effect.die("the provider answers") })
  )
  return { plane, provider, running }
})

/** The outputs that nobody waited for. */
const interrupted = (plane: MemoryControlPlane) =>
  ofType(plane.events, "ModelOutput").filter(({ payload }) => payload.purpose === "interrupted")

const SPAWN = double.callTools([{ name: "choir-core-spawn", input: { job_name: "dig", task_spec: "dig" } }])

/** The state's counters are what the events hold. */
const counted = (plane: MemoryControlPlane) => {
  const usages = ofType(plane.events, "ModelOutput").map(({ payload }) => payload.usage)
  const { cost_usd, tokens } = plane.state().spent
  assert.strictEqual(
    tokens,
    usages.reduce((sum, { input_tokens, output_tokens }) => sum + input_tokens + output_tokens, 0)
  )
  assert.closeTo(
    cost_usd,
    usages.reduce((sum, usage) => sum + (usage.cost_usd ?? 0), 0),
    1e-12
  )
}

describe("a model call that is interrupted", () => {
  it.live("counts when a person stops its turn, and the turn ends as ever", () =>
    Effect.gen(function* () {
      const { plane, provider } = yield* agent({}, double.hang, double.answer("hello again"))
      const inbox_id = yield* plane.say("think hard")
      yield* provider.requests.at(0)
      yield* plane.push({ type: "StopTurn", signal_id: SignalId.make("901"), turn: { inbox_id } })
      yield* plane.until((events, state) => spoken(events).length === 1 && quiet(state))
      const [cost, ...others] = interrupted(plane)
      assert.deepStrictEqual(others, [])
      assert.strictEqual(cost?.lane, "edge")
      assert.isAbove(cost?.payload.usage.input_tokens ?? 0, 0)
      assert.isAbove(cost?.payload.usage.cost_usd ?? 0, 0)
      yield* plane.say("hello")
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      assert.deepStrictEqual(
        spoken(plane.events).map(({ payload }) => payload.text),
        ["Stopped.", "hello again"]
      )
      counted(plane)
    }).pipe(Effect.scoped)
  )

  it.live("counts in its job when the job is cancelled, and when the job's time is over", () =>
    Effect.gen(function* () {
      for (const [budgets, outcome] of [
        [{}, "cancelled"],
        [{ per_job_wall_time_ms: 1000 }, "budget"]
      ] as const) {
        const { plane, provider } = yield* agent(budgets, SPAWN, double.hang, double.hang)
        yield* plane.say("go")
        // Edge's second call and the job's first one.
        yield* provider.requests.at(2)
        if (outcome === "cancelled")
          yield* plane.push({
            type: "CancelCore",
            signal_id: SignalId.make("902"),
            job_name: JobName.make("dig")
          })
        yield* plane.until((events) => ofType(events, "CoreStopped").length === 1)
        const [stopped] = ofType(plane.events, "CoreStopped")
        assert.strictEqual(stopped?.payload.outcome, outcome)
        const cost = interrupted(plane).filter(({ lane }) => lane === "core:dig")
        assert.strictEqual(cost.length, 1)
        assert.strictEqual(stopped?.payload.usage.input_tokens, cost[0]?.payload.usage.input_tokens)
        counted(plane)
      }
    }).pipe(Effect.scoped)
  )

  it.live("counts when the agent stops, so that a session cannot be stopped and resumed past its limit", () =>
    Effect.gen(function* () {
      const { plane, provider, running } = yield* agent({}, double.hang)
      yield* plane.say("think hard")
      yield* provider.requests.at(0)
      yield* plane.push({ type: "Stop", deadline_ms: 1000 })
      assert.strictEqual(yield* Fiber.join(running), "stopped")
      assert.strictEqual(interrupted(plane).length, 1)
      counted(plane)
    }).pipe(Effect.scoped)
  )

  it.live("reaches the session's limit of money like any other", () =>
    Effect.gen(function* () {
      const { plane, provider, running } = yield* agent({ max_cost_usd: 1e-9 }, double.hang)
      const inbox_id = yield* plane.say("think hard")
      yield* provider.requests.at(0)
      yield* plane.push({ type: "StopTurn", signal_id: SignalId.make("903"), turn: { inbox_id } })
      yield* plane.until((events) => spoken(events).length === 1)
      assert.strictEqual(yield* plane.say("hello"), InboxId.make("2"))
      assert.strictEqual(yield* Fiber.join(running), "budget")
      // The summary for the next session is beyond the limit.
      const asked = (yield* provider.requests.all).map(({ body }) => JSON.stringify(body))
      assert.lengthOf(
        asked.filter((body) => !body.includes("choir-session-summary")),
        1
      )
    }).pipe(Effect.scoped)
  )

  it.live("costs nothing where the provider had refused before it was asked again", () =>
    Effect.gen(function* () {
      const { plane, provider } = yield* agent({}, double.rateLimited({ seconds: 3600 }))
      const inbox_id = yield* plane.say("think hard")
      yield* provider.requests.at(0)
      yield* plane.until((events) => ofType(events, "AgentMessage").length === 1)
      yield* plane.push({ type: "StopTurn", signal_id: SignalId.make("904"), turn: { inbox_id } })
      yield* plane.until((events, state) => spoken(events).length === 1 && quiet(state))
      assert.deepStrictEqual(interrupted(plane), [])
    }).pipe(Effect.scoped)
  )
})
