/** The worktree of a job that works on a branch: made before its first step, looked at when it ends, and removed once it has ended. */
import { Effect, Option, Result } from "effect"
import type { JobTree } from "#schema/Core.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { EDGE, type JobName, type LaneId } from "#schema/Ids.ts"
import { Arbiter, commitEnd } from "#src/agent/arbiter/Arbiter.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { LOCK_WAIT_MS_MAX, LockManager } from "#src/agent/calls/LockManager.ts"
import { ToolRunner } from "#src/agent/calls/ToolRunner.ts"
import { type TreeJob, Worktrees } from "#src/agent/git/Worktrees.ts"
import { locksOfTree } from "#src/agent/git/worktreeGit.ts"
import { isRunning } from "#src/shared/session/lanes.ts"
import type { CoreLane } from "#src/shared/session/State.ts"

/** How long the start or the end of a session may take to remove worktrees. */
const WORKTREES_SWEEP_MS_MAX = 5000
/** How long the end of a job waits for others that write where git looks at what it leaves. */
const LOOK_LOCK_MS_MAX = 30_000

/** Runs git on the worktree of a job, or on all, while no call writes there. */
const locked = <A, E, R>(lane: LaneId, job_name: JobName | undefined, wait_ms: number, use: Effect.Effect<A, E, R>) =>
  Effect.flatMap(LockManager, (locks) => locks.withLocks(lane, locksOfTree(job_name), { wait_ms }, () => use))

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
  const others = running.flatMap(({ started_rev }) => branchJob(log.find(started_rev)) ?? [])
  const looked = yield* Effect.option(locked(core.lane, own.job_name, LOOK_LOCK_MS_MAX, look(own, others)))
  const tree = Option.getOrUndefined(looked)
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
    const opened = yield* Effect.result(locked(lane, job_name, LOCK_WAIT_MS_MAX, open(tree)))
    if (Result.isSuccess(opened)) yield* run
    else {
      yield* (yield* ToolRunner).closeOpen(lane, "the job ended")
      const summary = `the job has no worktree: ${opened.failure.message}`
      yield* commitEnd(arbiter, { type: "StopCore", job_name, outcome: "error", summary }, isRunning(core))
    }
    // What is left where somebody writes for long is removed at the next start.
    yield* Effect.ignore(locked(lane, job_name, LOOK_LOCK_MS_MAX, close(job_name)))
  })

/** Removes the worktrees of jobs that do not run: those whose end an earlier epoch was cut off at, or that just ended with the session. */
export const sweepWorktrees = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const { sweep } = yield* Worktrees
  const swept = locked(EDGE, undefined, WORKTREES_SWEEP_MS_MAX, sweep(new Set(arbiter.state().cores.keys())))
  yield* Effect.timeoutOption(Effect.ignore(swept), WORKTREES_SWEEP_MS_MAX)
})
