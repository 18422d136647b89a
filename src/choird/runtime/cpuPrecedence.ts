/**
 * The groups that go first where processors are short: those that have used the least lately ("least attained service"). An agent that answers
 * now and then is not kept waiting by others that take all they may. Pure.
 */

/** The part of what all groups take that those in front take together at most. */
const FRONT_PART = 1 / 4
/** After this time half of what a group has used is forgotten. */
const HALF_LIFE_MS = 5000
/** Below this many processors a group is idle. */
const IDLE_BELOW = 0.001

/** The use of one group: its whole time in µs, and the processors that it has taken lately. */
export interface CpuUse {
  readonly used_us: number
  readonly recent: number
}

/** The use of a group after `elapsed_ms`, in which its count has become `used_us`. */
export const useAfter = (before: CpuUse | undefined, used_us: number, elapsed_ms: number): CpuUse => {
  if (before === undefined || elapsed_ms <= 0) return { used_us, recent: before?.recent ?? 0 }
  const kept = 0.5 ** (elapsed_ms / HALF_LIFE_MS)
  const now = Math.max(0, used_us - before.used_us) / 1000 / elapsed_ms
  return { used_us, recent: kept * before.recent + (1 - kept) * now }
}

/** The groups that step back; none while there is nobody to give way to. */
export const steppingBack = <Name>(uses: ReadonlyMap<Name, CpuUse>): ReadonlySet<Name> => {
  const busy = [...uses].filter(([, { recent }]) => recent >= IDLE_BELOW).sort(([, a], [, b]) => a.recent - b.recent)
  const front_max = FRONT_PART * busy.reduce((sum, [, { recent }]) => sum + recent, 0)
  let sum = 0
  const back = busy.filter(([, { recent }]) => (sum += recent) > front_max)
  return new Set(back.length < busy.length ? back.map(([name]) => name) : [])
}
