/** Calls of a lane that give the same results over and over (E11), one after the other or in turns. */
import type { Repetition } from "./State.ts"
import { REPETITIONS_REMEMBERED_MAX } from "./snapshot.ts"

/**
 * With one more result of a call. Anything new, a call that is not remembered or another result of one, begins the counts again: a lane
 * that looks at the same thing after each of its changes is not going round in circles. A refusal is never news of a known call.
 */
export const repeated = (
  known: ReadonlyArray<Repetition>,
  call: string,
  result: string,
  isRefusal: boolean
): ReadonlyArray<Repetition> => {
  const before = known.find((each) => each.call === call)
  const isSame = before !== undefined && (isRefusal || before.result === result)
  const others = known.filter((each) => each !== before)
  const newest = isSame ? { ...before, times: before.times + 1 } : { call, result, times: 1 }
  const kept = isSame ? others : others.map((each) => (each.times === 1 ? each : { ...each, times: 1 }))
  return [...kept, newest].slice(-REPETITIONS_REMEMBERED_MAX)
}

/** How often a call has given the same result since anything was new. */
export const timesRepeated = (known: ReadonlyArray<Repetition>, call: string): number =>
  known.find((each) => each.call === call)?.times ?? 0

/** The same of the call that was repeated most. */
export const mostRepeated = (known: ReadonlyArray<Repetition>): number =>
  known.reduce((most, { times }) => Math.max(most, times), 0)
