/** A2 and A3: what of long work's prompts a provider's cache has, the calls for memory, and the cost beside the ideal of the same steps. */
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { type CostedCall, costFigures, TRIGGER } from "../test/support/idealCost.ts"
import { LONG_WORK, STEPS, TURNS } from "../test/support/longWork.ts"
import { workWithProvider } from "../test/support/workWithProvider.ts"
import { atLeast, atMost, ratioAtMost, type Row } from "./Row.ts"

/** Of the prompts' tokens, of the calls, and of the ideal cost. */
interface Limits {
  readonly share: number
  readonly extra: number
  readonly cost: number
  /** Of the longest prompt, in tokens. */
  readonly prompt: number
}

const USUAL: Limits = { share: 0.97, extra: 0.02, cost: 1.1, prompt: TRIGGER }
const BESIDE: Limits = { ...USUAL, share: 0.95 }
const FORGETFUL: Limits = { ...USUAL, share: 0.95, extra: 0.04 }
/** Of a provider whose count is known after the call alone, so that a prompt may be somewhat longer than was meant. */
const COUNTED: Limits = { ...USUAL, prompt: 1.01 * TRIGGER }

const rows = (what: string, calls: ReadonlyArray<CostedCall>, limits: Limits): ReadonlyArray<Row> => {
  const { cost, extra, ideal, largest, lowest, ratio: _, share } = costFigures(calls)
  return [
    atLeast("A2", `${what}: in the cache`, share * 100, "%", limits.share * 100),
    atMost("A2", `${what}: calls for memory`, extra * 100, "%", limits.extra * 100),
    atLeast("A2", `${what}: least that a request finds of the one before`, lowest * 100, "%", 90),
    atMost("A2", `${what}: longest prompt`, largest / 1000, "k tokens", Math.round(limits.prompt / 100) / 10),
    ratioAtMost("A3", `${what}: cost beside the ideal`, cost / 1000, "k tokens", ideal / 1000, limits.cost)
  ]
}

const SCRIPTED = [
  [`job of ${STEPS} steps`, LONG_WORK.job, USUAL],
  ["the same, every compaction fails", LONG_WORK.forgetful, FORGETFUL],
  [`chat of ${TURNS} turns`, LONG_WORK.chat, USUAL],
  ["the same beside three reporting jobs", LONG_WORK.beside, BESIDE]
] as const

export const longWork: Effect.Effect<ReadonlyArray<Row>, unknown> = Effect.map(
  Effect.forEach(SCRIPTED, ([what, work, limits]) =>
    work.pipe(
      Effect.provide(TestClock.layer()),
      Effect.scoped,
      Effect.map((calls) => rows(what, calls, limits))
    )
  ),
  (all) => all.flat()
)

/** The same over sockets, with providers that count in their own way. */
export const longWorkWithProviders: Effect.Effect<ReadonlyArray<Row>, unknown> = Effect.map(
  Effect.forEach(["responses", "anthropic", "deepseek"] as const, (dialect) =>
    Effect.gen(function* () {
      const job = yield* Effect.scoped(workWithProvider(dialect, STEPS, 1))
      const chat = yield* Effect.scoped(workWithProvider(dialect, 0, TURNS))
      return [
        ...rows(`${dialect}, job of ${STEPS} steps`, job, COUNTED),
        ...rows(`${dialect}, chat of ${TURNS} turns`, chat, COUNTED)
      ]
    })
  ),
  (all) => all.flat()
)
