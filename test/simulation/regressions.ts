/** Seeds that once failed. They are run for ever, since what broke once breaks again. */
import type { Options } from "./simulate.ts"

export interface Regression {
  readonly seed: number
  readonly options: Options
  /** What was seen. */
  readonly issue: string
  /** What was wrong. */
  readonly cause: string
}

export const REGRESSIONS: ReadonlyArray<Regression> = [
  {
    seed: 9,
    options: { mode: "liveness" },
    issue: "L1: a message has no reply, and its session was closed while a job ran",
    cause:
      "at a limit of the session the running jobs were ended while edge could still start one; the end of the session was then refused, since a job ran, and the goodbye said all the same"
  },
  {
    seed: 3,
    options: { mode: "liveness" },
    issue: "L1: the same, with a stop of the operator before it",
    cause: "the same"
  },
  {
    seed: 100308,
    options: { mode: "liveness" },
    issue: "L1: an order to compact, given while edge was compacted, ended in no event",
    cause:
      "the end of a compaction woke the compactor before the lane counted as free, so that the order that had come meanwhile was passed over, and nothing woke for it again"
  },
  {
    seed: 1794,
    options: { mode: "liveness" },
    issue: "J1: a job did not end at its time, since a limit of the session was reached",
    cause:
      "the end at a limit waited for edge's corrected answer, however long the model that was asked for it was silent"
  },
  {
    seed: 197,
    options: { mode: "safety" },
    issue: "N1: after an outage, an agent was ended as silent for one lost packet",
    cause:
      "each heartbeat that was given up doubled the wait of the next one, up to more than the silence that choird allows"
  },
  {
    seed: 1740,
    options: { mode: "liveness" },
    issue: "W4: a job's prompt ended with its own last words, which Mistral refuses",
    cause:
      "a job whose prompt showed the answer to its question was taken not to have seen it, and was asked again after its result"
  }
]
