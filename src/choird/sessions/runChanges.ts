/**
 * The runs of skills and jobs that events tell of, pure. The same function makes the changes of a heartbeat's events and, from a log's first
 * event on, all rows of a session. A row holds no words of people or models, so that forgetting never concerns it.
 */
import type { ChoirEvent, CoreOutcome, EventOf, PayloadOf } from "#schema/Event.ts"
import { type CallId, EDGE, type LaneId } from "#schema/Ids.ts"
import type { Writeback } from "#schema/Writeback.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { tokenSum } from "#src/shared/session/sums.ts"

type SkillOutcome = NonNullable<PayloadOf<"SkillTransitionCommitted">["ended"]>

/** The part of a skill's run that its first event tells. */
interface SkillBegun {
  readonly lane: LaneId
  readonly skill: string
  readonly started_at: string
}

/** The part of events that concerns the run of a skill. */
export interface SkillChange {
  readonly started_rev: number
  /** Absent where earlier events began it. */
  readonly begun?: SkillBegun
  /** Its newest state and model calls; absent where it did not move. */
  readonly moved?: { readonly state: string; readonly steps: number }
  readonly tokens: number
  readonly cost_nano_usd: number
  readonly ended?: { readonly rev: number; readonly at: string; readonly outcome: SkillOutcome }
}

/** The part of events that concerns the run of a job. */
export interface JobChange {
  readonly job_id: CallId
  readonly begun?: {
    readonly rev: number
    readonly at: string
    readonly job_name: string
    readonly agent_type: string | null
    readonly pool: string | null
    readonly skill: string | null
    readonly branch: string | null
    readonly worktree: string | null
    readonly resumes: CallId | null
  }
  readonly ended?: {
    readonly rev: number
    readonly at: string
    readonly outcome: CoreOutcome
    readonly steps: number
    readonly tokens: number
    readonly cost_nano_usd: number
    /** How it said that the task stands, without its words. */
    readonly writeback: Pick<Writeback, "progress" | "status"> | null
    readonly orphan: boolean
  }
}

export interface RunChanges {
  readonly skills: ReadonlyMap<number, SkillChange>
  readonly jobs: ReadonlyMap<CallId, JobChange>
}

/** The skills at work, by their lanes: the revision that began each. */
type AtWork = Map<LaneId, number>

const atWork = ({ cores, edge }: SessionState): AtWork => {
  const lanes = [{ lane: EDGE, skill: edge.skill }, ...cores.values()]
  return new Map(lanes.flatMap(({ lane, skill }) => (skill === undefined ? [] : [[lane, skill.started_rev] as const])))
}

const nothing = { tokens: 0, cost_nano_usd: 0 }

/** Characters of a name that an event gives. */
const NAME_CHARS_MAX = 64
const named = (text: string): string => text.slice(0, NAME_CHARS_MAX).toWellFormed()

/** The most that one call counts for. */
const NANO_USD_MAX = 1e15
/** In whole parts, so that a sum does not depend on how the events came. */
const nanoUsd = (cost_usd = 0): number => Math.max(-NANO_USD_MAX, Math.min(NANO_USD_MAX, Math.round(cost_usd * 1e9)))
const nanoSum = (a: number, b: number): number =>
  Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, a + b))

const moved = (
  change: SkillChange,
  { created_at, payload, rev }: EventOf<"SkillTransitionCommitted">
): SkillChange => ({
  ...change,
  moved: { state: named(payload.to === "" ? payload.from : payload.to), steps: payload.step },
  ...(payload.ended === undefined ? {} : { ended: { rev, at: created_at, outcome: payload.ended } })
})

const spent = (change: SkillChange, { usage }: PayloadOf<"ModelOutput">): SkillChange => ({
  ...change,
  tokens: tokenSum(change.tokens, usage.input_tokens, usage.output_tokens),
  cost_nano_usd: nanoSum(change.cost_nano_usd, nanoUsd(usage.cost_usd))
})

const jobBegun = ({ created_at, payload, rev }: EventOf<"CoreStarted">): JobChange => ({
  job_id: payload.job_id,
  begun: {
    rev,
    at: created_at,
    job_name: payload.job_name,
    agent_type: payload.start.agent_type ?? null,
    pool: payload.start.pool ?? null,
    skill: payload.start.skill?.name ?? null,
    branch: payload.start.branch ?? null,
    worktree: payload.start.worktree?.slice(0, NAME_CHARS_MAX).toWellFormed() ?? null,
    resumes: payload.resumes?.job_id ?? null
  }
})

const jobEnded = (change: JobChange, { created_at, payload, rev }: EventOf<"CoreStopped">): JobChange => ({
  ...change,
  ended: {
    rev,
    at: created_at,
    outcome: payload.outcome,
    steps: payload.work?.steps ?? 0,
    tokens: tokenSum(payload.usage.input_tokens, payload.usage.output_tokens),
    cost_nano_usd: nanoUsd(payload.usage.cost_usd),
    writeback:
      payload.writeback === undefined
        ? null
        : { status: payload.writeback.status, progress: payload.writeback.progress },
    orphan: payload.orphan === true
  }
})

/** The changes of runs by the events after a state. */
export const runChanges = (before: SessionState, events: ReadonlyArray<ChoirEvent>): RunChanges => {
  const working = atWork(before)
  const skills = new Map<number, SkillChange>()
  const jobs = new Map<CallId, JobChange>()
  const ofLane = (lane: LaneId): SkillChange | undefined => {
    const started_rev = working.get(lane)
    return started_rev === undefined ? undefined : (skills.get(started_rev) ?? { started_rev, ...nothing })
  }
  const transition = (event: EventOf<"SkillTransitionCommitted">) => {
    const { created_at, lane, payload, rev } = event
    if (payload.from === "") {
      working.set(lane, rev)
      const begun = { lane, skill: named(payload.skill), started_at: created_at }
      skills.set(rev, { started_rev: rev, begun, ...nothing, moved: { state: named(payload.to), steps: 0 } })
      return
    }
    const change = ofLane(lane)
    // Before skills ran, an event could name one that nobody had begun.
    if (change === undefined) return
    skills.set(change.started_rev, moved(change, event))
    if (payload.ended !== undefined) working.delete(lane)
  }
  for (const event of events) {
    switch (event.event_type) {
      case "SkillTransitionCommitted":
        transition(event)
        break
      case "ModelOutput": {
        const change = ofLane(event.lane)
        if (change !== undefined) skills.set(change.started_rev, spent(change, event.payload))
        break
      }
      case "CoreStarted":
        jobs.set(event.payload.job_id, jobBegun(event))
        break
      case "CoreStopped": {
        const { job_id } = event.payload
        jobs.set(job_id, jobEnded(jobs.get(job_id) ?? { job_id }, event))
        break
      }
    }
  }
  return { skills, jobs }
}
