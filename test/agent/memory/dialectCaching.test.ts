/**
 * What the caches of providers are worth over long work, over sockets and by each API: the provider counts the tokens that it was sent before, and
 * the agent reads them from the usage of each answer. The cost is by those tokens, whatever their price.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { EventOf } from "#schema/Event.ts"
import { EDGE } from "#schema/Ids.ts"
import { DIALECTS, type DialectName } from "#demo/dialects/Dialect.ts"
import { memoryDelta } from "#src/agent/tools/memoryTools.ts"
import { modelClient } from "../../support/modelClient.ts"
import { MODEL_NAMES } from "../../support/modelNames.ts"
import { fillerOf } from "../../support/filler.ts"
import { costSum, idealCost } from "../../support/idealCost.ts"
import { bookOf, carefulChange } from "../../support/skills.ts"
import { SIZE } from "../../support/size.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { makeProviderOf, type ProviderRequest, type Reply, say } from "../../support/testing/Provider.ts"
import { inOrder } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool } from "../../support/testing/TestAgent.ts"

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
  { effect: "none", readOnly: true }
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

/** The outputs of a session whose person writes so many messages, and which starts a job of so many steps where it has any. */
const outputs = Effect.fnUntraced(function* (dialect: DialectName, steps: number, messages: number) {
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
  assert.deepStrictEqual(yield* provider.takeRefusals, [])
  const lane = steps === 0 ? EDGE : "core:long"
  return ofType(plane.events, "ModelOutput").filter((event) => event.lane === lane)
})

const figuresOf = (said: ReadonlyArray<EventOf<"ModelOutput">>) => {
  const tokens = said.map(({ payload }) => payload.usage)
  const calls = said.map(({ payload: { purpose, usage } }) => ({
    isCompaction: purpose === "compaction",
    input: usage.input_tokens,
    cached: usage.cache_read ?? 0,
    output: usage.output_tokens
  }))
  const sum = (of: (usage: (typeof tokens)[number]) => number) => tokens.reduce((total, usage) => total + of(usage), 0)
  const extra = said.filter(({ payload }) => payload.purpose === "compaction").length
  // Of what the request before sent, as far as there is one of some size; a prompt that became shorter follows a compaction.
  const found = tokens.flatMap(({ cache_read = 0, input_tokens }, index) => {
    const before = tokens[index - 1]?.input_tokens ?? 0
    return before < FOUND_TOKENS_MIN || input_tokens < before ? [] : [cache_read / before]
  })
  return {
    calls: said.length,
    share: sum(({ cache_read = 0 }) => cache_read) / sum(({ input_tokens }) => input_tokens),
    extra: extra / (said.length - extra),
    lowest: Math.min(...found),
    largest: Math.max(...tokens.map(({ input_tokens }) => input_tokens)),
    ratio: costSum(calls) / idealCost(calls)
  }
}

/** Below this the steps in which a cache counts are too coarse. */
const FOUND_TOKENS_MIN = 3000

const told = (what: string, figures: ReturnType<typeof figuresOf>) => {
  if (process.env["CHOIR_FIGURES"] !== undefined) process.stderr.write(`${what}: ${JSON.stringify(figures)}\n`)
  return figures
}

describe("the prompts of long work", () => {
  for (const dialect of ["responses", "anthropic", "deepseek"] as const)
    for (const [what, steps, messages] of [
      ["job", SIZE.cachedSteps, 1],
      ["chat", 0, SIZE.cachedTurns]
    ] as const)
      it.live(`of a ${what} are found in the cache of a provider that speaks ${dialect}`, () =>
        Effect.gen(function* () {
          const figures = figuresOf(yield* outputs(dialect, steps, messages))
          const { extra, lowest, ratio, share } = told(`${dialect} ${what}`, figures)
          assert.isAtLeast(lowest, 0.9)
          assert.isAtMost(extra, 0.02)
          assert.isAtLeast(share, SIZE.cachedShare)
          assert.isAtMost(ratio, 1.1, "the cost beside the ideal")
        }).pipe(Effect.scoped)
      )
})
