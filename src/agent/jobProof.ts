/** What proves to choird that a job asks (D35). */
import { Effect } from "effect"
import type { CoreLane } from "#src/shared/session/State.ts"
import type { RunningJob } from "./ControlPlane.ts"
import type { Replication } from "./Replication.ts"

/** Waits until choird knows that the job runs, since it takes a job's word only then. The proof expires with the job's time. */
export const jobProof = (
  { budgets, job_id, started_at, started_rev }: CoreLane,
  { reached }: Replication["Service"]
): Effect.Effect<RunningJob> =>
  Effect.as(reached(started_rev), { job_id, expires_ms: Date.parse(started_at) + budgets.wall_time_ms })
