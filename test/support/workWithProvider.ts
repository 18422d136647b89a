/**
 * Long work with a provider on a socket, which counts the tokens that it was sent before, and of which the agent reads them from the usage of each
 * answer. The cost is by those tokens, whatever their price.
 */
import { deepStrictEqual } from "node:assert/strict"
import { Effect } from "effect"
import { EDGE } from "#schema/Ids.ts"
import { DIALECTS, type DialectName } from "#demo/dialects/Dialect.ts"
import { memoryDelta } from "#src/agent/tools/memoryTools.ts"
import { modelClient } from "./modelClient.ts"
import { MODEL_NAMES } from "./modelNames.ts"
import { fillerOf } from "./filler.ts"
import type { CostedCall } from "./idealCost.ts"
import { bookOf, carefulChange } from "./skills.ts"
import { makeMemoryControlPlane } from "./testing/MemoryControlPlane.ts"
import { makeProviderOf, type ProviderRequest, type Reply, say } from "./testing/Provider.ts"
import { inOrder } from "./testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool } from "./testing/TestAgent.ts"

const THOUGHT = "The next place is unknown as yet."

let looked = 0
/** From a line to a page. */
const look = testTool(
  "mem.look",
  () =>
    Effect.sync(() => {
      looked += 1
      return { status: "success", summary: "read", output: fillerOf(100 + ((looked * 379) % 1300), looked) } as const
    }),
  { effect: "none" }
)

/** A job of so many steps; edge looks twice in every third turn. */
const working = (steps: number) => {
  let step = 0
  let turn = 0
  return ({ body }: ProviderRequest): Reply => {
    const sent = JSON.stringify(body)
    if (sent.includes("Compaction: your context is nearly full"))
      return say({
        calls: [
          { name: "choir-memory-delta", input: { summary_update: `Goal: to finish.\nDone: ${fillerOf(600, 3)}` } }
        ],
        reasoning: THOUGHT
      })
    if (sent.includes("\\nTask:\\n")) {
      step += 1
      return step > steps
        ? say({ text: "done", reasoning: THOUGHT })
        : say({ calls: [{ name: "mem-look", input: { step } }], reasoning: THOUGHT })
    }
    turn += 1
    if (steps > 0 && turn === 1)
      return say({
        calls: [{ name: "choir-core-spawn", input: { job_name: "long", task_spec: "work" } }],
        reasoning: THOUGHT
      })
    return steps === 0 && turn % 4 === 0
      ? say({ calls: [0, 1].map((of) => ({ name: "mem-look", input: { turn, of } })), reasoning: THOUGHT })
      : say({ text: fillerOf(60, turn), reasoning: THOUGHT })
  }
}

const configOf = (endpoint: string, dialect: DialectName) => {
  const base = agentConfig({
    per_job_max_steps: 1000,
    per_job_max_tool_calls: 5000,
    message_max_steps: 1000,
    max_tool_calls_per_session: 5000,
    total_session_tokens: 1e9
  })
  const entry = {
    api: DIALECTS[dialect].api,
    endpoint,
    model: MODEL_NAMES[dialect],
    context_window: 128_000,
    reasoning_effort: "low"
  }
  const models = Object.fromEntries(Object.entries(base.models).map(([name, model]) => [name, { ...model, ...entry }]))
  return { ...base, models }
}

/** The requests of the job of so many steps, or without one of edge, in a session whose person writes so many messages. */
export const workWithProvider = Effect.fnUntraced(function* (dialect: DialectName, steps: number, messages: number) {
  looked = 0
  const provider = yield* makeProviderOf({ dialect, counts: true })
  yield* provider.otherwise(working(steps))
  const plane = yield* makeMemoryControlPlane
  const config = configOf(provider.endpoint, dialect)
  yield* Effect.forkScoped(
    runAgent({
      plane,
      script: inOrder(),
      llm: yield* modelClient,
      tools: [look, memoryDelta],
      // With a skill every request has its tools.
      skills: bookOf(carefulChange),
      config
    })
  )
  for (let said = 1; said <= messages; said++) {
    yield* plane.say(`message ${said}: ${fillerOf(40, said)}`)
    yield* plane.until((events) => spoken(events).filter(({ payload }) => payload.kind === "reply").length === said)
  }
  yield* plane.until((_, state) => quiet(state))
  deepStrictEqual(yield* provider.takeRefusals, [])
  const lane = steps === 0 ? EDGE : "core:long"
  const said = ofType(plane.events, "ModelOutput").filter((event) => event.lane === lane)
  return said.map(({ payload: { purpose, usage } }): CostedCall => ({
    isCompaction: purpose === "compaction",
    input: usage.input_tokens,
    cached: usage.cache_read ?? 0,
    output: usage.output_tokens
  }))
})
