/** The lifecycle of a running job as people are shown it: a view over the state that its events led to. */
import type { CoreLane } from "./State.ts"

export type Lifecycle = "INITIALIZING" | "READY" | "BUSY"

export const lifecycleOf = ({ question, state }: Pick<CoreLane, "question" | "state">): Lifecycle => {
  if (state === "CORE_CREATED" || state === "CORE_INITIALIZING") return "INITIALIZING"
  return question === undefined ? "BUSY" : "READY"
}
