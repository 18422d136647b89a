/** The worktree of a job that works on a branch: made before its first step, looked at when it ends, and removed once it has ended. */
import { Effect, Result } from "effect"
import type { JobTree } from "#schema/Core.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { Arbiter, commitEnd } from "#src/agent/arbiter/Arbiter.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { ToolRunner } from "#src/agent/calls/ToolRunner.ts"
import { type TreeJob, Worktrees } from "#src/agent/git/Worktrees.ts"
import { isRunning } from "#src/shared/session/lanes.ts"
import type { CoreLane } from "#src/shared/session/State.ts"

/** How long the start or the end of a session may take to remove worktrees. */
const WORKTREES_SWEEP_MS_MAX = 5000

/** The branch of a job that was started with one. */
const branchJob = (started: ChoirEvent | undefined): TreeJob | undefined => {
  if (started?.event_type !== "CoreStarted") return undefined
  const { branch, job_name } = started.payload.start
  return branch === undefined ? undefined : { job_name, branch }
}

/** The commits and conflicts that a job leaves on its branch, beside those of the others that run. */
export const leftOnBranch = Effect.fnUntraced(function* (core: CoreLane) {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const own = branchJob(log.find(core.started_rev))
  if (own === undefined) return {}
  const { look } = yield* Worktrees
  const running = [...arbiter.state().cores.values()].filter(({ job_id }) => job_id !== core.job_id)
  const tree = yield* look(
    own,
    running.flatMap(({ started_rev }) => branchJob(log.find(started_rev)) ?? [])
  )
  return tree === undefined ? {} : ({ tree } satisfies { readonly tree: JobTree })
})

/** Runs a job in its worktree, where it has one; a job that cannot have it ends. */
export const inWorktree = <A, E, R>(core: CoreLane, run: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const arbiter = yield* Arbiter
    const log = yield* EventLog
    const { job_name, lane } = core
    const tree = branchJob(log.find(core.started_rev))
    if (tree === undefined) return yield* Effect.asVoid(run)
    const { close, open } = yield* Worktrees
    const opened = yield* Effect.result(open(tree))
    if (Result.isSuccess(opened)) yield* run
    else {
      yield* (yield* ToolRunner).closeOpen(lane, "the job ended")
      const summary = `the job has no worktree: ${opened.failure.reason}`
      yield* commitEnd(arbiter, { type: "StopCore", job_name, outcome: "error", summary }, isRunning(core))
    }
    yield* close(job_name)
  })

/** Removes the worktrees of jobs that do not run: those whose end an earlier epoch was cut off at, or that just ended with the session. */
export const sweepWorktrees = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const { sweep } = yield* Worktrees
  yield* Effect.timeoutOption(sweep(new Set(arbiter.state().cores.keys())), WORKTREES_SWEEP_MS_MAX)
})
