/**
 * The fibers of one epoch: edge, which holds the core jobs, which hold their tool calls (invariant 1). Jobs are started and ended by
 * comparing what the fold says with what runs, so that a spawn, a cancel and a recovery are one thing.
 */
import { Deferred, Effect, Fiber, FiberMap } from "effect"
import { type CallId, EDGE } from "#schema/Ids.ts"
import { logDeath } from "#src/shared/background.ts"
import { isRunning } from "#src/shared/session/lanes.ts"
import type { CoreLane, SessionState } from "#src/shared/session/State.ts"
import { Arbiter, commitEnd } from "#src/agent/arbiter/Arbiter.ts"
import { LivingMap } from "#src/agent/arbiter/LivingMap.ts"
import { ToolRunner } from "#src/agent/calls/ToolRunner.ts"
import { Compactor } from "#src/agent/memory/Compactor.ts"
import type { Exhausted } from "#src/agent/model/Budget.ts"
import { runCore } from "./CoreJob.ts"
import { runEdge } from "./EdgeLane.ts"
import { tellOfJob } from "./jobLines.ts"
import { inWorktree } from "./jobWorktree.ts"
import { makeLanePrompts } from "./LanePrompts.ts"

/** Why an epoch ends in good order; its deadline is a time of {@link monotonicMs}. */
export type Ending =
  | { readonly type: "stopped"; readonly deadline_at_ms: number }
  | { readonly type: "exhausted"; readonly limit: string }
  /** A person asked for a new conversation. */
  | { readonly type: "renewed" }

/** The line of the log when the fiber of a lane is gone, with all that it ran. */
const LANE_ENDED = "the lane has ended"

/** Runs one job; whatever breaks ends the job and not the session. */
const job = Effect.fnUntraced(function* (core: CoreLane, exhausted: (limit: string) => Effect.Effect<never>) {
  const arbiter = yield* Arbiter
  const runner = yield* ToolRunner
  const { job_name, lane } = core
  yield* Effect.forkChild(logDeath("what tells of a job")(tellOfJob(core)))
  yield* inWorktree(core, runCore(job_name)).pipe(
    Effect.catch(({ limit }) => exhausted(limit)),
    Effect.catchDefect(
      Effect.fnUntraced(function* (defect) {
        yield* Effect.logError("job crashed", defect)
        yield* runner.closeOpen(lane, "the job crashed")
        const summary = "the job crashed because of a bug in Choir; see the agent's log"
        yield* commitEnd(arbiter, { type: "StopCore", job_name, outcome: "error", summary }, isRunning(core))
      })
    ),
    Effect.ensuring(Effect.logDebug(LANE_ENDED)),
    Effect.annotateLogs("lane", lane)
  )
})

/** Keeps a fiber for every job that the fold knows, and takes it from a job that was cancelled, so that it starts over and ends. */
const supervise = Effect.fnUntraced(function* (
  jobs: FiberMap.FiberMap<CallId, void>,
  exhausted: (limit: string) => Effect.Effect<never>
) {
  const arbiter = yield* Arbiter
  const runs = (id: CallId) => [...arbiter.state().cores.values()].some(({ job_id }) => job_id === id)
  const noticed = new LivingMap<CallId, true>(runs)
  const isNew = ({ job_id }: CoreLane) => !FiberMap.hasUnsafe(jobs, job_id)
  const isCancelled = ({ cancelled, job_id }: CoreLane) => cancelled !== undefined && !noticed.has(job_id)
  const differs = (state: SessionState) => [...state.cores.values()].some((core) => isNew(core) || isCancelled(core))
  const reconcile = Effect.gen(function* () {
    const state = yield* arbiter.until(differs)
    for (const core of state.cores.values()) {
      if (isCancelled(core)) {
        noticed.set(core.job_id, true)
        yield* FiberMap.remove(jobs, core.job_id)
      }
      if (isNew(core)) yield* FiberMap.run(jobs, core.job_id, job(core, exhausted), { onlyIfMissing: true })
    }
  })
  return yield* Effect.forever(reconcile)
})

/** Interrupts the fibers of all jobs at once, and waits until each is gone. */
const interruptJobs = (jobs: FiberMap.FiberMap<CallId, void>) =>
  Effect.suspend(() => (jobs.state._tag === "Closed" ? Effect.void : Fiber.interruptAll(jobs.state.fibers)))

/**
 * The fibers of the lanes, and of what works for them. Edge's ends after those of its jobs, whatever ends it: at its own end it waits for
 * them, and where the session breaks off all are interrupted together, so that none begins anything while another one lets go.
 */
export const makeLaneFibers = Effect.fnUntraced(function* (
  ending: Deferred.Deferred<Ending>,
  stopping: Deferred.Deferred<void>
) {
  const exhausted = (limit: string) =>
    Effect.andThen(Deferred.succeed(ending, { type: "exhausted", limit }), Effect.never)
  const jobs = yield* FiberMap.make<CallId, void>()
  const supervisor = yield* Effect.forkScoped(logDeath("the start of jobs")(supervise(jobs, exhausted)))
  const endJobFibers = Effect.andThen(Fiber.interrupt(supervisor), interruptJobs(jobs))
  const compactor = yield* Compactor
  const { view } = yield* makeLanePrompts
  const compacting = yield* Effect.forkScoped(logDeath("the compaction of windows")(compactor.run(view)))
  const edge = yield* runEdge(stopping).pipe(
    Effect.catch(({ limit }: Exhausted) => Effect.asVoid(Deferred.succeed(ending, { type: "exhausted", limit }))),
    logDeath("edge"),
    Effect.ensuring(endJobFibers),
    Effect.ensuring(Effect.logDebug(LANE_ENDED)),
    Effect.annotateLogs("lane", EDGE),
    Effect.forkScoped
  )
  // Runs before the scope ends these fibers one after the other.
  yield* Effect.addFinalizer(() =>
    Effect.all([endJobFibers, Fiber.interrupt(edge)], { concurrency: "unbounded", discard: true })
  )
  return {
    edge,
    /** The reason to end. The death of any of these fibers ends the epoch: without it the agent would be there and do nothing. */
    ended: Effect.raceAllFirst([
      Deferred.await(ending),
      ...[edge, supervisor, compacting].map((fiber) => Effect.andThen(Fiber.join(fiber), Effect.never)),
      Effect.andThen(FiberMap.join(jobs), Effect.never)
    ]),
    /** Ends all but edge. */
    endWork: Effect.andThen(endJobFibers, Fiber.interrupt(compacting))
  }
})
