/**
 * The runs of skills and jobs that events tell of, pure. The same function makes the changes of a heartbeat's events and, from a log's first
 * event on, all rows of a session. A row holds no words of people or models, so that forgetting never concerns it.
 */
import { Option, Schema } from "effect"
import type { ChoirEvent, CoreOutcome, EventOf, PayloadOf } from "#schema/Event.ts"
import { type CallId, EDGE, JobName, type LaneId } from "#schema/Ids.ts"
import type { ExecutionClass } from "#schema/SkillContract.ts"
import type { SkillTier } from "#schema/SkillRegistryEntry.ts"
import type { Writeback } from "#schema/Writeback.ts"
import type { OpenCall, SessionState } from "#src/shared/session/State.ts"
import { reportKind } from "#src/shared/session/jobWork.ts"
import { RETRY_EVENT } from "#src/shared/session/skills.ts"
import { tokenSum } from "#src/shared/session/sums.ts"
import { CORE_REPORT } from "#src/shared/session/calls.ts"

type SkillOutcome = NonNullable<PayloadOf<"SkillTransitionCommitted">["ended"]>

/** The part of a skill's run that its first event tells. */
interface SkillBegun {
  readonly lane: LaneId
  readonly skill: string
  readonly started_at: string
  readonly version: string | null
  readonly execution_class: ExecutionClass | null
  readonly tier: SkillTier | null
  /** The trigger that began it; `person` for one that was ordered. */
  readonly trigger: string | null
}

/** The newest that a run's transitions say of its result; null where none says it. */
interface SkillJudged {
  /** Results that were sent back. */
  readonly retries: number
  readonly confidence: number | null
  readonly judge_score: number | null
  /** Whether the judged result was taken. */
  readonly verdict: "failed" | "passed" | null
}

/** The part of events that concerns the run of a skill. */
export interface SkillChange {
  readonly started_rev: number
  /** Absent where earlier events began it. */
  readonly begun?: SkillBegun
  /** Its newest state and model calls; absent where it did not move. */
  readonly moved?: { readonly state: string; readonly steps: number }
  readonly judged: SkillJudged
  readonly tokens: number
  readonly cost_nano_usd: number
  readonly ended?: { readonly rev: number; readonly at: string; readonly outcome: SkillOutcome }
}

/** The part of events that concerns the run of a job. */
export interface JobChange {
  readonly job_id: CallId
  /** It waits to start. */
  readonly requested?: { readonly rev: number; readonly at: string; readonly job_name: string }
  /** Its request ended without a job. */
  readonly isRefused?: true
  /** Its first model output. */
  readonly worked_at?: string
  /** Whether it waits for the answer to its question; absent where these events do not say it. */
  readonly asks?: boolean
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

/** The tool by which edge asks for a job. */
const CORE_SPAWN = "choir.core.spawn"

const nothing = {
  tokens: 0,
  cost_nano_usd: 0,
  judged: { retries: 0, confidence: null, judge_score: null, verdict: null }
} as const

/** Characters of a name that an event gives. */
const NAME_CHARS_MAX = 64
const named = (text: string): string => text.slice(0, NAME_CHARS_MAX).toWellFormed()

/** Characters of a trigger, which a skill's file says. */
const TRIGGER_CHARS_MAX = 300
const triggerName = (text: string): string => text.slice(0, TRIGGER_CHARS_MAX).toWellFormed()

/** Steps that a column of a row holds; an agent may claim more. */
const STEPS_MAX = 2 ** 31 - 1

/** The most that one call counts for. */
const NANO_USD_MAX = 1e15
/** In whole parts, so that a sum does not depend on how the events came. */
const nanoUsd = (cost_usd = 0): number => Math.max(-NANO_USD_MAX, Math.min(NANO_USD_MAX, Math.round(cost_usd * 1e9)))
const nanoSum = (a: number, b: number): number =>
  Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, a + b))

/** A share from 0 to 1, whatever an agent says. */
const share = (value: number): number => Math.max(0, Math.min(1, value))

/** The knowledge of a result after a transition. A judged one that is taken passed. */
const judgedBy = (
  before: SkillJudged,
  { confidence, ended, judged, on }: PayloadOf<"SkillTransitionCommitted">
): SkillJudged => ({
  retries: before.retries + (on === RETRY_EVENT ? 1 : 0),
  confidence: confidence === undefined ? before.confidence : share(confidence),
  ...(judged === undefined
    ? { judge_score: before.judge_score, verdict: before.verdict }
    : { judge_score: share(judged.score), verdict: ended === "completed" ? "passed" : "failed" })
})

const moved = (
  change: SkillChange,
  { created_at, payload, rev }: EventOf<"SkillTransitionCommitted">
): SkillChange => ({
  ...change,
  moved: { state: named(payload.to === "" ? payload.from : payload.to), steps: payload.step },
  judged: judgedBy(change.judged, payload),
  ...(payload.ended === undefined ? {} : { ended: { rev, at: created_at, outcome: payload.ended } })
})

const skillBegun = ({ created_at, lane, payload, rev }: EventOf<"SkillTransitionCommitted">): SkillChange => ({
  started_rev: rev,
  begun: {
    lane,
    skill: named(payload.skill),
    started_at: created_at,
    version: payload.version === undefined ? null : named(payload.version),
    execution_class: payload.execution_class ?? null,
    tier: payload.tier ?? null,
    trigger: payload.trigger === undefined ? null : triggerName(payload.trigger)
  },
  ...nothing,
  moved: { state: named(payload.to), steps: 0 }
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
    steps: Math.min(payload.work?.steps ?? 0, STEPS_MAX),
    tokens: tokenSum(payload.usage.input_tokens, payload.usage.output_tokens),
    cost_nano_usd: nanoUsd(payload.usage.cost_usd),
    writeback:
      payload.writeback === undefined
        ? null
        : { status: payload.writeback.status, progress: payload.writeback.progress },
    orphan: payload.orphan === true
  }
})

const decodeName = Schema.decodeUnknownOption(Schema.Struct({ job_name: JobName }))
/** The job that a call of choir.core.spawn asks for. */
export const jobNameIn = (input: unknown): JobName | undefined => Option.getOrUndefined(decodeName(input))?.job_name

/** Calls of edge's that ask for a job and have not begun it. */
export const openSpawns = ({ edge }: SessionState): ReadonlyArray<OpenCall> =>
  [...edge.calls, ...(edge.parked?.calls ?? [])].filter(
    ({ name, stage }) => stage === "requested" && name.replaceAll("-", ".") === CORE_SPAWN
  )

/** The answers of a judge, and those that nobody waited for, are not work of the lane. */
const movesLane = ({ purpose }: PayloadOf<"ModelOutput">): boolean => purpose === "turn" || purpose === "report"

/** Collects the changes of skills' runs, event by event. */
const collectSkills = (before: SessionState) => {
  const working = atWork(before)
  const skills = new Map<number, SkillChange>()
  const ofLane = (lane: LaneId): SkillChange | undefined => {
    const started_rev = working.get(lane)
    return started_rev === undefined ? undefined : (skills.get(started_rev) ?? { started_rev, ...nothing })
  }
  return {
    changes: skills,
    output: ({ lane, payload }: EventOf<"ModelOutput">) => {
      const change = ofLane(lane)
      if (change !== undefined) skills.set(change.started_rev, spent(change, payload))
    },
    transition: (event: EventOf<"SkillTransitionCommitted">) => {
      const { lane, payload, rev } = event
      if (payload.from === "") {
        working.set(lane, rev)
        skills.set(rev, skillBegun(event))
        return
      }
      const change = ofLane(lane)
      // Before skills ran, an event could name one that nobody had begun.
      if (change === undefined) return
      skills.set(change.started_rev, moved(change, event))
      if (payload.ended !== undefined) working.delete(lane)
    }
  }
}

/** Collects the changes of jobs' runs, event by event. */
const collectJobs = (before: SessionState) => {
  const jobs = new Map<CallId, JobChange>()
  const jobOf = (job_id: CallId): JobChange => jobs.get(job_id) ?? { job_id }
  /** Jobs that run, by their lanes, and whether each had its first output. */
  const running = new Map(
    [...before.cores.values()].map(({ job_id, lane, output }) => [lane, { job_id, works: output.rev > 0 }])
  )
  /** Calls that ask the user something and have not ended. */
  const asking = new Set(
    [...before.cores.values()].flatMap(({ calls }) =>
      calls.flatMap(({ call_id, report }) => (report?.isQuestion === true ? [call_id] : []))
    )
  )
  /** Requests of jobs that have not begun. */
  const waiting = new Set(openSpawns(before).map(({ call_id }) => call_id))
  const says = (lane: LaneId, asks: boolean) => {
    const job = running.get(lane)
    if (job !== undefined) jobs.set(job.job_id, { ...jobOf(job.job_id), asks })
  }
  return {
    changes: jobs,
    says,
    output: ({ created_at, lane, payload }: EventOf<"ModelOutput">) => {
      const job = running.get(lane)
      if (job === undefined || job.works || !movesLane(payload)) return
      job.works = true
      jobs.set(job.job_id, { ...jobOf(job.job_id), worked_at: created_at })
    },
    request: ({ created_at, payload, rev }: EventOf<"ToolCallRequested">) => {
      if (payload.tool === CORE_REPORT && reportKind(payload.input).isQuestion) asking.add(payload.call_id)
      const job_name = payload.tool === CORE_SPAWN ? jobNameIn(payload.input) : undefined
      if (job_name === undefined) return
      waiting.add(payload.call_id)
      jobs.set(payload.call_id, { job_id: payload.call_id, requested: { rev, at: created_at, job_name } })
    },
    result: ({ lane, payload: { call_id, status } }: EventOf<"ToolResultCommitted">) => {
      if (asking.delete(call_id) && status === "success") says(lane, true)
      if (waiting.delete(call_id)) jobs.set(call_id, { ...jobOf(call_id), isRefused: true })
    },
    start: (event: EventOf<"CoreStarted">) => {
      const { job_id } = event.payload
      const { requested } = jobOf(job_id)
      waiting.delete(job_id)
      jobs.set(job_id, { ...(requested === undefined ? {} : { requested }), ...jobBegun(event) })
      running.set(event.lane, { job_id, works: false })
    },
    stop: (event: EventOf<"CoreStopped">) => {
      const { job_id } = event.payload
      jobs.set(job_id, jobEnded(jobOf(job_id), event))
      running.delete(event.lane)
    }
  }
}

/** The changes of runs by the events after a state. */
export const runChanges = (before: SessionState, events: ReadonlyArray<ChoirEvent>): RunChanges => {
  const skills = collectSkills(before)
  const jobs = collectJobs(before)
  for (const event of events) {
    switch (event.event_type) {
      case "SkillTransitionCommitted":
        skills.transition(event)
        break
      case "ModelOutput":
        skills.output(event)
        jobs.output(event)
        break
      case "ToolCallRequested":
        jobs.request(event)
        break
      case "ToolResultCommitted":
        jobs.result(event)
        break
      case "InjectedInstruction":
        if (event.payload.refused === undefined) jobs.says(event.lane, false)
        break
      case "CoreStarted":
        jobs.start(event)
        break
      case "CoreStopped":
        jobs.stop(event)
        break
    }
  }
  return { skills: skills.changes, jobs: jobs.changes }
}
