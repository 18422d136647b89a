/** Model outputs and the way of their tool calls: what may be asked for, what may run, what it came to. */
import { Result } from "effect"
import type { ConfirmReason } from "#schema/Approval.ts"
import type { Budgets } from "#schema/Config.ts"
import { type EventDraft, WRITTEN_PATHS_MAX } from "#schema/Event.ts"
import { CallId, EDGE, type InboxId, type LaneId } from "#schema/Ids.ts"
import type { Source } from "#schema/Source.ts"
import type { WorkspaceLabel } from "#schema/WorkspaceLabel.ts"
import { type LockRequest, shownName, type ToolEffect } from "#schema/Tool.ts"
import { FILE_KEY, WORKSPACE_KEY } from "#src/shared/image/lockKey.ts"
import { CORE_REPORT } from "#src/shared/session/calls.ts"
import { labelsAt } from "#src/shared/session/fileLabels.ts"
import { originOfLabel } from "#src/shared/session/workspaceLabel.ts"
import { counted } from "#src/shared/text/counts.ts"
import {
  copiedSources,
  fileSources,
  isKeptInFile,
  isOnline,
  lanesWriting,
  readSources,
  readsWorkspace,
  topOf,
  withPending,
  writesWorkspace
} from "#src/shared/session/workspaceOrigin.ts"
import { pictureCopy } from "#src/agent/workspace/Pictures.ts"
import { EDGE_SCRATCH } from "#src/agent/workspace/edgeScratch.ts"
import { withSources } from "#src/shared/session/sources.ts"
import { timesRepeated } from "#src/shared/session/repetitions.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import {
  type CoreLane,
  type EdgeLane,
  type OpenCall,
  REPORTS_OWED_MAX,
  type SessionState
} from "#src/shared/session/State.ts"
import { capabilityRefusal, skillRefusal } from "./decideSkills.ts"
import {
  accept,
  type Decision,
  type Outbound,
  type Output,
  type Command,
  refuse,
  reject,
  type Situation,
  type TouchedFiles
} from "./Command.ts"

/** Identical calls with identical results after which the next is refused (E11, R25). */
export const REPETITIONS_REFUSED_MIN = 5

/** The session's limit that is reached, in words for the user, or `undefined`. */
export const exhaustedLimit = ({ spent }: SessionState, budgets: Budgets): string | undefined => {
  if (spent.tokens >= budgets.total_session_tokens)
    return `the session's limit of ${counted(budgets.total_session_tokens)} tokens (budgets.total_session_tokens) is reached`
  if (budgets.max_cost_usd !== null && spent.cost_usd >= budgets.max_cost_usd)
    return `the session's limit of ${budgets.max_cost_usd} USD (budgets.max_cost_usd) is reached`
  return undefined
}

const toolCallsLeft = ({ spent }: SessionState, budgets: Budgets): string | undefined =>
  spent.tool_calls >= budgets.max_tool_calls_per_session
    ? `the session's limit of ${counted(budgets.max_tool_calls_per_session)} tool calls (budgets.max_tool_calls_per_session) is reached`
    : undefined

const callOf = (state: SessionState, lane: LaneId, call_id: CallId): OpenCall | undefined =>
  laneOf(state, lane)?.calls.find((call) => call.call_id === call_id)

export const output = (
  state: SessionState,
  lane: LaneId,
  draft: Output,
  { epoch, session_id }: Situation
): Decision => {
  if (laneOf(state, lane) === undefined) return reject(`the job on ${lane} has stopped`)
  const call_id = `${session_id}-${epoch}-${state.rev + 1}`
  const tool_calls = draft.tool_calls.map((call, index) => ({ ...call, call_id: CallId.make(`${call_id}-${index}`) }))
  return accept({
    event_type: "ModelOutput",
    lane,
    payload: { ...draft, call_id: CallId.make(call_id), tool_calls }
  })
}

/** The job's limit that keeps it from another call, in words. */
export const callLimit = (core: CoreLane): string | undefined =>
  core.tool_calls >= core.budgets.max_tool_calls
    ? `the job's limit of ${core.budgets.max_tool_calls} tool calls is reached`
    : undefined

const isQuestion = ({ report }: OpenCall): boolean => report?.isQuestion === true

/** Why no further report to the user can be taken. Running jobs have their place among the reports already, and so have open questions. */
export const reportsFull = ({ cores, reports }: SessionState): string | undefined => {
  const asked = [...cores.values()].reduce((total, { calls }) => total + calls.filter(isQuestion).length, 0)
  return reports.length + cores.size + asked >= REPORTS_OWED_MAX
    ? `${reports.length} reports wait for the user; wait until they are delivered`
    : undefined
}

/** Why a call of a job with a worktree is refused: it would change the workspace elsewhere. */
const outside = ({
  effect,
  locks,
  within
}: Pick<Extract<Command, { type: "Request" }>, "effect" | "locks" | "within">): string | undefined => {
  if (within === undefined || effect === "none") return undefined
  const folder = `${FILE_KEY}${within}`
  const isIn = ({ mode, resource }: LockRequest) =>
    mode === "S" ||
    (resource !== WORKSPACE_KEY && !resource.startsWith(FILE_KEY)) ||
    resource === folder ||
    resource.startsWith(`${folder}/`)
  return locks.every(isIn)
    ? undefined
    : `the job works in its worktree and changes nothing else: use paths that begin with ${within}/`
}

/**
 * Why edge may not make a call now (D30): jobs run, and it would change what is theirs too. It is asked at the request, so that nobody waits
 * for locks in vain, and again at the grant.
 */
const jobsRun = (
  { cores }: SessionState,
  { beside_jobs = false, lane }: Pick<Extract<Command, { type: "Request" | "Grant" }>, "beside_jobs" | "lane">,
  effect: ToolEffect | undefined
): string | undefined =>
  lane === EDGE && effect !== "none" && !beside_jobs && cores.size > 0
    ? `while jobs run (${[...cores.keys()].join(", ")}) edge only reads (commands with reads_only and no network too), keeps facts and writes below ${EDGE_SCRATCH}; let a job do this, or do it when they have ended`
    : undefined

/** Why a call that acts outside the workspace needs a person (D31). */
const confirmation = (confirm_external: Situation["confirm_external"], tainted: boolean): ConfirmReason | undefined => {
  if (confirm_external === "never") return undefined
  return tainted ? "tainted" : confirm_external === "always" ? "always" : undefined
}

export const request = (
  state: SessionState,
  command: Extract<Command, { type: "Request" }>,
  situation: Situation
): Decision => {
  const { budgets, confirm_external, skills } = situation
  const { allowed_tools, call_id, capabilities, effect, input, lane, locks, tool } = command
  const memory = laneOf(state, lane)
  const call = callOf(state, lane, call_id)
  if (memory === undefined || call === undefined) return reject("the call is not open")
  const exhausted = toolCallsLeft(state, budgets)
  if (exhausted !== undefined) return reject(exhausted, exhausted)
  const core = "job_id" in memory ? memory : undefined
  const limit = core === undefined ? undefined : callLimit(core)
  if (limit !== undefined) return Result.fail({ reason: limit, ends_job: true })
  const forbidden = skillRefusal(memory, skills, tool)
  if (forbidden !== undefined) return refuse(forbidden.reason, forbidden.allowed)
  const denied = capabilityRefusal(memory, situation, tool, capabilities)
  if (denied !== undefined) return Result.fail(denied)
  if (allowed_tools !== undefined && !allowed_tools.includes(tool))
    return reject(`the job may not use ${shownName(tool)}; allowed: ${allowed_tools.map(shownName).join(", ")}`)
  const busy = jobsRun(state, command, effect)
  if (busy !== undefined) return reject(busy)
  const elsewhere = outside(command)
  if (elsewhere !== undefined) return reject(elsewhere)
  const full = tool === CORE_REPORT ? reportsFull(state) : undefined
  if (full !== undefined) return reject(full)
  if (timesRepeated(memory.repetitions, call.digest) >= REPETITIONS_REFUSED_MIN)
    return reject(
      `the same call gave the same result ${REPETITIONS_REFUSED_MIN} times; do something else, or finish and say what is missing`
    )
  const leaves = effect === "external" && command.keepsOwn !== true
  const why = leaves ? (command.confirm ?? confirmation(confirm_external, memory.tainted)) : undefined
  const confirm = why === undefined ? {} : { confirm: why }
  const skill = memory.skill === undefined ? {} : { skill: memory.skill.name }
  return accept({
    event_type: "ToolCallRequested",
    lane,
    payload: { call_id, tool, input, effect, locks, ...skill, ...confirm }
  })
}

/** The message that a lane works on, as far as there is one. */
export const askedBy = (memory: EdgeLane | CoreLane): InboxId | undefined => {
  if ("job_id" in memory) return memory.inbox_id
  return memory.turn?.kind === "report" ? memory.turn.report.inbox_id : memory.turn?.inbox_id
}

/** The message with a call's files, to the person who asked for the work. */
const sent = ({ caption, files }: Outbound, inbox_id: InboxId | undefined): EventDraft => ({
  event_type: "AgentMessage",
  lane: EDGE,
  payload: {
    kind: "notice",
    files,
    ...(caption === undefined ? {} : { text: caption }),
    ...(inbox_id === undefined ? {} : { in_reply_to: inbox_id })
  }
})

/** The sources of what is in the workspace, as this session and those before it know them. */
export const workspaceSources = (state: SessionState, label: WorkspaceLabel): ReadonlyArray<Source> =>
  withSources(
    withSources(readSources(present(state), A_READ), readSources(originOfLabel(label), A_READ)),
    labelledSources(state, label, undefined)
  )

/** The origin of the files now, with what calls may be writing beside this one. */
const present = (state: SessionState, call?: OpenCall) => withPending(state, lanesWriting(state, call))

const A_READ = { name: "choir.fs.read" }

/** The sources of single files that are labelled, of those at these paths or, where nobody knows which were read, of all. */
const labelledSources = (state: SessionState, label: WorkspaceLabel, paths: ReadonlyArray<string> | undefined) =>
  fileSources([...labelsAt(state.workspace_files, paths), ...labelsAt(originOfLabel(label).workspace_files, paths)])

/** Whether a refused write shows lines of the file as it is, which its lane may not have read: it reads then as a read does. */
const showsFile = ({ name }: OpenCall, { output, status }: Ended): boolean =>
  name.replaceAll("-", ".") === "choir.fs.write" &&
  status === "error" &&
  typeof output === "object" &&
  output !== null &&
  ("diff" in output || "nearest" in output)

type Ended = Extract<Command, { type: "Result" }>["result"]

/** The sources of what a call read, as far as the fold does not find them by itself. */
const sourcesBefore = (
  state: SessionState,
  call: OpenCall,
  result: Ended,
  shows: ReadonlyArray<string> | undefined,
  label: WorkspaceLabel
): ReadonlyArray<Source> => {
  const isShown = showsFile(call, result)
  if (!isShown && !readsWorkspace(call)) return []
  const stored = originOfLabel(label)
  const whole = isShown
    ? withSources(readSources(present(state), A_READ), readSources(stored, A_READ))
    : readSources(stored, call)
  const copied = withSources(copiedSources(state, state, call), copiedSources(state, stored, call))
  const beside = copied.length === 0 ? [] : fileSources([copied])
  return withSources(withSources(whole, beside), labelledSources(state, label, shows))
}

const COMMAND: ReadonlyArray<Source> = ["command"]

/** The source of what a command with a network may have loaded into files before it was cut off. */
const loadedBefore = (call: OpenCall, { acted, sources }: Ended): ReadonlyArray<Source> =>
  isOnline(call) && sources === undefined && acted === "unknown" ? COMMAND : []

/** The paths that a call of a labelled lane changed, with the files in which its result is kept, where all are known. */
const changedPaths = (
  call: OpenCall,
  result: Ended,
  { changed, kept }: TouchedFiles
): ReadonlyArray<string> | undefined => {
  const isWriter = writesWorkspace(call)
  const isTold = call.writes !== undefined || call.compares === true
  const isKnown = isWriter ? isTold && changed !== undefined : isKeptInFile(result)
  if (!isKnown || (result.artifact_ref !== undefined && kept === undefined)) return undefined
  const pictures = isKeptInFile(result) ? (result.pictures ?? []).map(pictureCopy) : []
  const paths = [...(isWriter ? (changed ?? []) : []), ...(kept === undefined ? [] : [kept]), ...pictures]
  const named = paths.length > WRITTEN_PATHS_MAX ? [...new Set(paths.map(topOf))] : paths
  return named.length > WRITTEN_PATHS_MAX ? undefined : named
}

/**
 * A call's end, and in the same batch the files that it leaves for the user. If it may have left the machine without anybody knowing, the same batch notifies the user, whatever the model makes of it:
 * once, since a call ends once (R6).
 */
export const endOfCall = (
  state: SessionState,
  { call_id, files = {}, in_doubt, lane, result, sends }: Omit<Extract<Command, { type: "Result" }>, "type">,
  situation: Pick<Situation, "workspace_label">
): ReadonlyArray<EventDraft> => {
  const memory = laneOf(state, lane)
  const call = callOf(state, lane, call_id)
  const ran = call?.stage === "committed" ? call : undefined
  const read = ran === undefined ? [] : readSources(present(state, ran), ran)
  const before =
    ran === undefined
      ? []
      : withSources(
          sourcesBefore(state, ran, result, files.shows, situation.workspace_label),
          loadedBefore(ran, result)
        )
  const sources = withSources(withSources(result.sources ?? [], read), before)
  // The fold knows of this session's own writes of any file and its readers alone; of all others the event says so itself.
  const labels = sources.length === 0 ? {} : { sources, ...(before.length === 0 ? {} : { untrusted: true }) }
  const labelled = { ...result, ...labels }
  const isForeign = memory?.tainted === true || labelled.untrusted === true || read.length > 0
  const changed = isForeign && ran !== undefined ? changedPaths(ran, labelled, files) : undefined
  const payload = { call_id, ...labelled, ...(changed === undefined ? {} : { changed }) }
  const ended: EventDraft = { event_type: "ToolResultCommitted", lane, payload }
  if (sends !== undefined && memory !== undefined) return [ended, sent(sends, askedBy(memory))]
  const isUnknown = result.status === "unknown_after_crash" || in_doubt === true
  if (!isUnknown || call?.effect !== "external" || memory === undefined) return [ended]
  const inbox_id = askedBy(memory)
  const whose = "job_id" in memory ? ` for the job ${memory.job_name}` : ""
  const text = `I was interrupted while ${shownName(call.name)} ran${whose}. I do not know whether it took effect, and I will not run it again on my own: please check.`
  const in_reply_to = inbox_id === undefined ? {} : { in_reply_to: inbox_id }
  return [ended, { event_type: "AgentMessage", lane: EDGE, payload: { kind: "notice", text, ...in_reply_to } }]
}

/** The result that closes a call that does not continue, with the reason. */
export const closingCall = (lane: LaneId, call: OpenCall, why: string) => {
  // What leaves the machine may have left it before the interrupt came.
  const in_doubt = call.stage === "committed" && call.effect === "external"
  const summary = `${why}${in_doubt ? "; whether it took effect is not known" : ""}`
  const doubt = in_doubt ? ({ acted: "unknown" } as const) : {}
  const result = { status: "cancelled", summary, ...doubt, duration_ms: 0 } as const
  return { lane, call_id: call.call_id, in_doubt, result }
}

/**
 * A job may have started since the call was requested (D30). What is granted before a spawn commits finishes first, see `spawn`. What needs a
 * person's approval runs with one or not at all (R55).
 */
export const grant = (state: SessionState, command: Extract<Command, { type: "Grant" }>): Decision => {
  const { approval_id, call_id, compares, dirty, grant_id, lane, locks, writes } = command
  const call = callOf(state, lane, call_id)
  if (call === undefined) return reject("the call is not open")
  const busy = jobsRun(state, command, call.effect)
  if (busy !== undefined) return Result.fail({ reason: busy, awaits_jobs: true })
  if (call.confirm !== undefined && approval_id === undefined) return reject("nobody has approved the call")
  const granted = grant_id === undefined ? {} : { grant_id }
  const approved = approval_id === undefined ? {} : { approval_id, ...granted }
  const payload = {
    call_id,
    locks,
    ...(dirty ? { dirty } : {}),
    ...approved,
    ...(writes === undefined ? {} : { writes }),
    ...(compares === true ? { compares } : {})
  }
  return accept({ event_type: "ToolCallCommitted", lane, payload })
}
