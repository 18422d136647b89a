/**
 * The one fold: events to state. Agent, choird, `session verify`, recovery and the tests all use it, so that what happened and
 * what is known to have happened cannot differ. An event that does not fit is refused, never repaired.
 */
import { Result } from "effect"
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { EDGE, jobOf } from "#schema/Ids.ts"
import { Source } from "#schema/Source.ts"
import { CORE_JOBS_MAX } from "#schema/Core.ts"
import {
  modelOutput,
  openReport,
  REPORTS_FULL,
  toolCallCommitted,
  toolCallRequested,
  toolResultCommitted,
  withSeen
} from "./calls.ts"
import { brought } from "./labels.ts"
import { coreOf, type Folded, freshLane, inWindow, move, withCore, withEdge } from "./lanes.ts"
import { compactWindow } from "./compactWindow.ts"
import { NO_FILES } from "./fileLabels.ts"
import { fitState } from "./fitState.ts"
import { noWork } from "./jobWork.ts"
import { messageOf, withStep } from "./messageSteps.ts"
import { parkTurn, resumeTurn } from "./parkTurn.ts"
import { keptForResume, laneToResume, nameTaken, withoutExpired } from "./resumableJobs.ts"
import { skillTransition } from "./skills.ts"
import { sourceOf, withSources } from "./sources.ts"
import type { CoreLane, PendingReport, SessionState } from "./State.ts"
import { turnCancelled, withoutCarried } from "./turns.ts"
import { REPORTS_OWED_MAX } from "./State.ts"
import { SIGNALS_REMEMBERED_MAX } from "./snapshot.ts"
import { costSum } from "./sums.ts"
import { withReceived } from "./workspaceOrigin.ts"
import { firstChars } from "./textEnds.ts"

/** Why an event does not fit the state before it. */
export interface FoldRefusal {
  readonly rev: number
  readonly reason: string
}

/** A session before its first event. */
export const initialState: SessionState = {
  rev: 0,
  edge: { ...freshLane, state: "EDGE_IDLE", turn: undefined, parked: undefined, output_rev: 0 },
  cores: new Map(),
  resumable: new Map(),
  spent: { tokens: 0, cost_usd: 0, tool_calls: 0 },
  last_inbox_id: 0n,
  queued_inbox_id: 0n,
  signals: [],
  reports: [],
  message_steps: new Map(),
  workspace_tainted: false,
  workspace_sources: [],
  workspace_received: false,
  workspace_files: NO_FILES,
  past_sources: [],
  ended: undefined
}

/** Whether a signal has not ended in an event that is remembered. */
export const isUnheard =
  (signal_id: string) =>
  ({ signals }: SessionState): boolean =>
    !signals.includes(signal_id)

const signalled = (state: SessionState, signal_id: string | undefined): Folded => {
  if (signal_id === undefined) return Result.succeed(state)
  if (!isUnheard(signal_id)(state)) return Result.fail(`signal ${signal_id} already ended in an event`)
  return Result.succeed({ ...state, signals: [...state.signals.slice(1 - SIGNALS_REMEMBERED_MAX), signal_id] })
}

/** Where what edge is shown of a message came from, as far as it is not the person's own words. */
export const messageSources = ({
  attachments,
  dm,
  forwarded,
  received,
  writers = FORWARDED
}: EventOf<"UserMsg">["payload"]): ReadonlyArray<Source> => {
  const isShown = received === true && attachments.some(({ picture }) => picture !== undefined)
  return [...(forwarded === true ? writers : []), ...(isShown ? [sourceOf("file", dm)] : [])]
}

const FORWARDED: ReadonlyArray<Source> = ["forwarded"]

/** The state after a cost beside the model's. */
const paid = (cost_usd: number | undefined, state: SessionState): SessionState =>
  cost_usd === undefined
    ? state
    : { ...state, spent: { ...state.spent, cost_usd: costSum(state.spent.cost_usd, cost_usd) } }

const userMsg = (state: SessionState, event: EventOf<"UserMsg">): Folded => {
  const { lane, payload, rev } = event
  const id = BigInt(payload.inbox_id)
  if (lane !== EDGE) return Result.fail("only edge hears the user")
  if (id <= state.last_inbox_id) return Result.fail(`inbox row ${payload.inbox_id} is not after the last one`)
  const ready = parkTurn(state)
  const added = messageSources(payload)
  if (ready.edge.turn !== undefined) return Result.fail("the turn before has no reply yet")
  return Result.map(move(ready, EDGE, "UserMsg"), (moved) =>
    inWindow(
      {
        ...withEdge(withReceived(paid(payload.cost_usd, moved), payload), {
          turn: { kind: "turn", inbox_id: payload.inbox_id, dm: payload.dm, rev },
          step: 0,
          output_rev: 0,
          ...(added.length === 0 ? {} : brought(ready.edge, added, event)),
          // A request that the user repeats is not a loop of the model's.
          repetitions: freshLane.repetitions
        }),
        last_inbox_id: id,
        workspace_received: state.workspace_received || payload.received === true
      },
      EDGE,
      rev
    )
  )
}

const coreStarted = (state: SessionState, event: EventOf<"CoreStarted">): Folded => {
  const { created_at, lane, payload, rev } = event
  if (jobOf(lane) !== payload.job_name) return Result.fail(`the lane ${lane} is not the job's`)
  if (state.edge.state === "EDGE_TERMINATED") return Result.fail("a job cannot outlive edge")
  if (state.cores.has(payload.job_name)) return Result.fail(`a job ${payload.job_name} already runs`)
  if (state.cores.size >= CORE_JOBS_MAX) return Result.fail(`${CORE_JOBS_MAX} jobs are already running`)
  const kept = laneToResume(state, event)
  if (Result.isFailure(kept)) return Result.fail(kept.failure)
  const inbox_id = messageOf(state.edge.turn)
  const { handed = [] } = payload.start.context_bundle
  // What edge hands over, and what a resumed job remembers, is of the log: text from outside stays there when edge's own window has none any more.
  const past = handed.length === 0 && payload.resumes === undefined ? [] : state.past_sources
  const isLabelled = state.edge.tainted || kept.success.tainted === true || past.length > 0
  const known = withSources(kept.success.sources ?? [], state.edge.sources)
  const core: CoreLane = {
    ...freshLane,
    window: [rev],
    seen: withSeen(
      freshLane.seen,
      handed.flatMap(({ reads = [] }) => reads.map(({ path, sha256 }) => [path, sha256] as const))
    ),
    state: "CORE_CREATED",
    job_id: payload.job_id,
    job_name: payload.job_name,
    lane,
    started_rev: rev,
    began_rev: rev,
    started_at: created_at,
    model: payload.model,
    budgets: payload.budgets,
    tool_calls: 0,
    injections: 0,
    settled_rev: rev,
    injection_rev: 0,
    output: { rev: 0, isFinal: false, isSuperseded: false, isCorrection: false },
    report_rev: 0,
    plan: undefined,
    writeback_rev: 0,
    told: undefined,
    work: noWork,
    question: undefined,
    spent: { input_tokens: 0, output_tokens: 0, cost_usd: 0 },
    cancelled: undefined,
    skill_end_rev: 0,
    inbox_id,
    in_skill: payload.in_skill,
    ...kept.success,
    ...(isLabelled ? brought({ ...freshLane, ...kept.success, sources: known }, past, event) : {})
  }
  const counted = withStep(nameTaken(state, event), inbox_id)
  return move(inWindow(withCore(counted, core), EDGE, rev), lane, "CoreStarted")
}

const openReportOf = ({ edge }: SessionState): PendingReport | undefined =>
  edge.turn?.kind === "report" ? edge.turn.report : undefined

const coreStopped = (state: SessionState, event: EventOf<"CoreStopped">): Folded => {
  const { lane, payload, rev } = event
  const core = coreOf(state, lane)
  if (core?.job_id !== payload.job_id) return Result.fail(`job ${payload.job_name} does not run`)
  if (core.calls.length > 0) return Result.fail(`job ${payload.job_name} has open calls`)
  if (state.reports.length >= REPORTS_OWED_MAX) return Result.fail(REPORTS_FULL)
  const name = payload.outcome === "completed" ? "CoreStopped.completed" : "CoreStopped.other"
  const ended = Result.flatMap(keptForResume(state, core, event), (kept) => move(kept, lane, name))
  return Result.map(ended, (moved) => {
    const cores = new Map(moved.cores)
    cores.delete(payload.job_name)
    const { inbox_id, job_id, job_name, sources, tainted } = core
    // The end itself may tell names of files of a workspace that its job has not read.
    const isForeign = tainted || payload.sources !== undefined
    const added = [sourceOf("job", job_name), ...withSources(sources, payload.sources ?? [])]
    return inWindow(
      {
        ...(isForeign ? withEdge(moved, brought(moved.edge, added, event)) : moved),
        cores,
        // A question that the user has not seen yet is answered by the end of the job.
        reports: [
          ...moved.reports.filter((report) => report.job_id !== job_id || report.rev === openReportOf(moved)?.rev),
          { kind: "stopped", job_id, job_name, rev, inbox_id }
        ]
      },
      EDGE,
      rev
    )
  })
}

const injectedInstruction = (state: SessionState, event: EventOf<"InjectedInstruction">): Folded => {
  const { lane, payload, rev } = event
  if (lane !== payload.target) return Result.fail(`it is aimed at ${payload.target} but is on ${lane}`)
  return Result.flatMap(signalled(state, payload.signal_id), (heard) => {
    if (payload.refused !== undefined) return Result.succeed(heard)
    return Result.map(move(heard, payload.target, "InjectedInstruction"), (moved) => {
      const seen = inWindow(moved, payload.target, rev)
      const core = coreOf(seen, payload.target)
      if (core === undefined) return seen
      const passesOn = payload.source === "edge" && state.edge.tainted
      const told = { ...core, injections: core.injections + 1, injection_rev: rev, question: undefined }
      return withCore(seen, { ...told, ...(passesOn ? brought(core, state.edge.sources, event) : {}) })
    })
  })
}

/** Characters of the reason for which a job was cancelled; the event has all of it. */
export const CANCEL_REASON_CHARS_MAX = 500
const shortReason = (reason: string): string =>
  reason.length <= CANCEL_REASON_CHARS_MAX
    ? reason.toWellFormed()
    : `${firstChars(reason, CANCEL_REASON_CHARS_MAX - 1)}…`

const cancelled = (state: SessionState, event: EventOf<"Cancelled">): Folded => {
  const { lane, payload } = event
  if (lane !== payload.target) return Result.fail(`it is aimed at ${payload.target} but is on ${lane}`)
  return Result.flatMap(signalled(state, payload.signal_id), (heard) => {
    if (payload.target === EDGE) {
      if (payload.turn !== undefined) return turnCancelled(heard, payload.turn, event)
      if (heard.cores.size > 0) return Result.fail("edge cannot end before its jobs")
      return Result.flatMap(move(heard, EDGE, "Cancelled"), (moved) =>
        withoutCarried({ ...moved, ended: payload.by }, payload.carried)
      )
    }
    if (payload.turn !== undefined) return Result.fail("only edge has turns")
    if (payload.carried !== undefined) return Result.fail("only the end of a session leaves messages to the next one")
    const core = coreOf(heard, payload.target)
    return Result.succeed(
      core === undefined ? heard : withCore(heard, { ...core, cancelled: shortReason(payload.reason) })
    )
  })
}

/** A notice on a job is a line on its work; one that answers a message which was not taken yet says that the message waits. */
const noticed = (state: SessionState, { created_at, payload, rev }: EventOf<"AgentMessage">): SessionState => {
  const { in_reply_to, job } = payload
  if (job !== undefined) {
    const core = state.cores.get(job)
    return core === undefined ? state : withCore(state, { ...core, told: { rev, at: created_at } })
  }
  const id = in_reply_to === undefined ? 0n : BigInt(in_reply_to)
  return id <= state.queued_inbox_id || id <= state.last_inbox_id ? state : { ...state, queued_inbox_id: id }
}

const agentMessage = (state: SessionState, event: EventOf<"AgentMessage">): Folded => {
  const { lane, payload, rev } = event
  if (lane !== EDGE) return Result.fail("only edge speaks to the user")
  if (payload.kind === "notice") return Result.succeed(noticed(state, event))
  const opened = payload.kind === "report" ? openReport(state, lane, rev) : Result.succeed(state)
  return Result.flatMap(opened, (ready) => {
    const turn = ready.edge.turn
    const fits = payload.kind === "reply" ? turn?.kind === "turn" : turn?.kind === "report"
    if (!fits || turn === undefined) return Result.fail(`no open turn waits for a ${payload.kind}`)
    const answered = turn.kind === "turn" ? turn.inbox_id : turn.report.inbox_id
    if (payload.in_reply_to !== answered) return Result.fail(`it answers another message than the turn's`)
    return Result.map(move(ready, EDGE, "AgentMessage.answer"), (moved) =>
      inWindow(
        {
          ...paid(payload.cost_usd, resumeTurn(withEdge(moved, { turn: undefined, step: 0, output_rev: 0 }))),
          reports: turn.kind === "report" ? moved.reports.slice(1) : moved.reports
        },
        EDGE,
        rev
      )
    )
  })
}

const apply = (state: SessionState, event: ChoirEvent): Folded => {
  switch (event.event_type) {
    case "UserMsg":
      return userMsg(state, event)
    case "ModelOutput":
      return modelOutput(state, event)
    case "ToolCallRequested":
      return toolCallRequested(state, event)
    case "ToolCallCommitted":
      return toolCallCommitted(state, event)
    case "ToolResultCommitted":
      return toolResultCommitted(state, event)
    case "CoreStarted":
      return coreStarted(state, event)
    case "CoreStopped":
      return coreStopped(state, event)
    case "InjectedInstruction":
      return injectedInstruction(state, event)
    case "Cancelled":
      return cancelled(state, event)
    case "AgentMessage":
      return agentMessage(state, event)
    case "CompactionCommitted":
      return Result.flatMap(signalled(state, event.payload.signal_id), (heard) => compactWindow(heard, event))
    case "SkillTransitionCommitted":
      return Result.flatMap(signalled(state, event.payload.signal_id), (heard) => skillTransition(heard, event))
    case "MemoryWriteCommitted":
      return Result.succeed(state)
  }
}

/** The state after one more event. */
export const fold = (state: SessionState, event: ChoirEvent): Result.Result<SessionState, FoldRefusal> => {
  if (event.rev !== state.rev + 1)
    return Result.fail({ rev: event.rev, reason: `revision ${event.rev} does not follow ${state.rev}` })
  const fitted = Result.flatMap(apply(state, event), (next) => fitState(withoutExpired(next, event.rev)))
  return Result.mapBoth(fitted, {
    onSuccess: (next) => ({ ...next, rev: event.rev }),
    onFailure: (reason) => ({ rev: event.rev, reason: `${event.event_type}: ${reason}` })
  })
}

/** The state after all of them, or the first refusal. */
export const foldAll = (
  state: SessionState,
  events: Iterable<ChoirEvent>
): Result.Result<SessionState, FoldRefusal> => {
  let current = state
  for (const event of events) {
    const next = fold(current, event)
    if (Result.isFailure(next)) return Result.fail(next.failure)
    current = next.success
  }
  return Result.succeed(current)
}
