/** What the model calls of a lane cost beside the least that the same steps can cost. */

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

export const costSum = (calls: ReadonlyArray<CostedCall>): number =>
  calls.reduce((total, call) => total + costOf(call), 0)

/** The least that the same steps can cost: append only, a compaction on the same prefix at the same trigger, a third stays. */
export const idealCost = (calls: ReadonlyArray<CostedCall>): number => {
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
