/** Agents with strict providers of every dialect: long loops of tools with reasoning, a stop and a resume, and nothing is refused. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { type DialectName, DIALECTS } from "#demo/dialects/Dialect.ts"
import { isObject } from "#demo/dialects/jsonKeys.ts"
import { modelClient } from "../../support/modelClient.ts"
import { MODEL_NAMES } from "../../support/modelNames.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { SIZE } from "../../support/size.ts"
import * as double from "../../support/testing/Provider.ts"
import { inOrder } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool } from "../../support/testing/TestAgent.ts"

const look = testTool("mem.look", () => Effect.succeed({ status: "success", summary: "seen", output: "x".repeat(50) }))

const THOUGHT = "The next place is unknown as yet."

/** Answers with two calls at each step, and with words after so many. */
const looping = (steps: number) => {
  let step = 0
  return (): double.Reply => {
    step += 1
    if (step % (steps + 1) === 0) return double.say({ text: `looked ${step} times`, reasoning: THOUGHT })
    const calls = [0, 1].map((of) => ({ name: "mem-look", input: { count: 2 * step + of } }))
    return double.say({ calls, reasoning: THOUGHT, ...(step % 3 === 0 ? { text: "I look further." } : {}) })
  }
}

const agentAt = (provider: double.Provider, dialect: DialectName) => {
  const base = agentConfig({
    turn_max_steps: 500,
    message_max_steps: 1000,
    max_tool_calls_per_session: 5000,
    total_session_tokens: 1e9
  })
  const { api } = DIALECTS[dialect]
  const entry = {
    api,
    endpoint: provider.endpoint,
    model: MODEL_NAMES[dialect],
    context_window: 128_000,
    reasoning_effort: "low"
  }
  return {
    ...base,
    memory: { ...base.memory, event_window: 1000 },
    models: Object.fromEntries(Object.entries(base.models).map(([name, model]) => [name, { ...model, ...entry }]))
  }
}

/** Two lives of one session, each with a message and its loop. */
const twoLives = Effect.fnUntraced(function* (dialect: DialectName, steps: number) {
  const provider = yield* double.makeProviderOf({ dialect, counts: true })
  yield* provider.otherwise(looping(steps))
  const plane = yield* makeMemoryControlPlane
  const llm = yield* modelClient
  for (const epoch of [1, 2]) {
    const scope = yield* Scope.make()
    const running = yield* runAgent({
      plane,
      epoch,
      script: inOrder(),
      llm,
      tools: [look],
      config: agentAt(provider, dialect)
    }).pipe(Effect.forkIn(scope))
    const before = spoken(plane.events).length
    yield* plane.say(`look around ${epoch}`)
    yield* plane.until((events, state) => spoken(events).length > before && quiet(state))
    yield* Fiber.interrupt(running)
    yield* Scope.close(scope, Exit.void)
  }
  const bodies = (yield* provider.requests.all).map(({ body }) => (isObject(body) ? body : {}))
  return { plane, bodies, summary: yield* provider.summary }
})

/** These show no reasoning, or want none back. */
const HIDDEN: ReadonlySet<string> = new Set(["openai", "mistral"])
const LONG: ReadonlySet<string> = new Set(["openrouter", "responses", "anthropic"])

describe("an agent", () => {
  for (const dialect of Object.keys(DIALECTS) as ReadonlyArray<DialectName>) {
    const steps = LONG.has(dialect) ? SIZE.loopSteps : 6
    it.live(`loops ${2 * steps} times with ${dialect} over a stop and a resume, and every request is taken`, () =>
      Effect.gen(function* () {
        const { bodies, plane, summary } = yield* twoLives(dialect, steps)
        assert.deepStrictEqual(
          spoken(plane.events).map(({ payload }) => payload.text),
          [`looked ${steps + 1} times`, `looked ${2 * (steps + 1)} times`]
        )
        assert.deepStrictEqual(
          ofType(plane.events, "ModelOutput").flatMap(({ payload: { error } }) => error ?? []),
          []
        )
        assert.strictEqual(bodies.length, 2 * (steps + 1))
        assert.isTrue(bodies.every(({ stream }) => stream === true))
        const kept = ofType(plane.events, "ModelOutput").filter(({ payload }) => payload.continuation !== undefined)
        assert.strictEqual(kept.length, HIDDEN.has(dialect) ? 0 : 2 * steps)
        assert.strictEqual(summary.refusals, 0)
      }).pipe(Effect.scoped)
    )
  }
})
