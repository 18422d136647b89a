/** What the model calls of a lane cost beside an ideal: the same steps without what a harness adds to them. */

/** One request of a lane, in tokens. */
export interface CostedCall {
  readonly isCompaction: boolean
  readonly input: number
  readonly cached: number
  readonly output: number
}

/** The tokens of a window at which it is compacted, for a context of 128,000 and answers of 4,096. */
export const TRIGGER = 0.8 * (128_000 - 4096)

/** Tokens of a compaction's answer, and of the summary that it leaves. */
const DELTA_TOKENS = 700
const SUMMARY_TOKENS = 800

/** In fresh input tokens: a cached one costs a tenth, one that is written five. */
const costOf = ({ cached, input, output }: Omit<CostedCall, "isCompaction">): number =>
  input - cached + cached / 10 + output * 5

const costSum = (calls: ReadonlyArray<CostedCall>): number => calls.reduce((total, call) => total + costOf(call), 0)

/** The cost of the same steps, append only, with a compaction on the same prefix at the same trigger, after which a third stays. */
const idealCost = (calls: ReadonlyArray<CostedCall>): number => {
  const turns = calls.filter((one) => !one.isCompaction)
  const grown = turns.map(({ input }, index) => Math.max(0, input - (turns[index - 1]?.input ?? 0)))
  const fixed = turns[0]?.input ?? 0
  const typical = turns.reduce((total, { output }) => total + output, 0) / turns.length
  let prompt = 0
  let cost = 0
  for (const [index, turn] of turns.entries()) {
    const isAfter = index > 0 && turn.input < (turns[index - 1]?.input ?? 0)
    const added = isAfter ? typical * 4 : (grown[index] ?? 0)
    let cached = prompt
    if (prompt + added > TRIGGER) {
      cost += prompt / 10 + added + DELTA_TOKENS * 5
      prompt = fixed + SUMMARY_TOKENS + TRIGGER / 3
      cached = fixed
    }
    const input = Math.max(prompt, cached) + added
    cost += costOf({ cached, input, output: turn.output })
    prompt = input
  }
  return cost
}

/** Below this the steps in which a cache counts are too coarse. */
const FOUND_TOKENS_MIN = 3000

const sum = (calls: ReadonlyArray<CostedCall>, of: (one: CostedCall) => number) =>
  calls.reduce((total, one) => total + of(one), 0)

/** What the requests of a lane came to. */
export const costFigures = (calls: ReadonlyArray<CostedCall>) => {
  const turns = calls.filter((one) => !one.isCompaction)
  // Of what the request before sent, as far as there is one of some size; a prompt that became shorter follows a compaction.
  const found = calls.flatMap(({ cached, input }, index) => {
    const before = calls[index - 1]?.input ?? 0
    return before < FOUND_TOKENS_MIN || input < before ? [] : [cached / before]
  })
  const [cost, ideal] = [costSum(calls), idealCost(calls)]
  return {
    calls: calls.length,
    /** Cached tokens a token of all prompts. */
    share: sum(calls, ({ cached }) => cached) / sum(calls, ({ input }) => input),
    /** Compactions a call. */
    extra: (calls.length - turns.length) / turns.length,
    /** The least that a request found of the one before. */
    lowest: Math.min(1, ...found),
    largest: Math.max(...turns.map(({ input }) => input)),
    /** In fresh input tokens. */
    cost,
    ideal,
    ratio: cost / ideal
  }
}
