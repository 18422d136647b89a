/** The effects of model outputs and tool calls on a state. */
import { Result } from "effect"
import { type EventOf, NAME_CHARS_MAX } from "#schema/Event.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { limitTokens } from "#src/shared/model/usage.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import {
  coreOf,
  type Folded,
  freshLane,
  inWindow,
  laneOf,
  move,
  remembered,
  withCore,
  withEdge,
  withLane
} from "./lanes.ts"
import { reportKind, workAfter } from "./jobWork.ts"
import { brought } from "./labels.ts"
import { WRITTEN_FILES_MAX } from "./memory.ts"
import { messageOf, withStep } from "./messageSteps.ts"
import { repeated } from "./repetitions.ts"
import { afterOutput, afterResult, afterVerdict } from "./skills.ts"
import { sourceOf } from "./sources.ts"
import { type CoreLane, type CoreOutput, type OpenCall, REPORTS_OWED_MAX, type SessionState } from "./State.ts"
import { costSum, tokenSum } from "./sums.ts"
import { firstChars } from "./textEnds.ts"
import { isStaged, lanesWriting, readSources, withPending, withResultOf, withWriteOf } from "./workspaceOrigin.ts"
import { CORE_WRITEBACK } from "./writtenBack.ts"

/** Files whose versions a lane remembers (E10), and the characters of their paths together; the longest unused go first. */
export const SEEN_FILES_MAX = 256
export const SEEN_PATHS_CHARS_MAX = 16 * 1024
/** The characters of a written path; longer ones are not kept. */
const WRITTEN_PATH_CHARS_MAX = 256

/** A path and the digest of what stood there. */
type FileSeen = readonly [path: string, version: string]

/** With these seen last. Beyond the limits those that were not seen for the longest go first. */
export const withSeen = (
  seen: ReadonlyMap<string, string>,
  files: ReadonlyArray<FileSeen>
): ReadonlyMap<string, string> => {
  if (files.length === 0) return seen
  const next = new Map(seen)
  for (const [path, version] of files.slice(-SEEN_FILES_MAX)) {
    next.delete(path)
    next.set(path, version)
  }
  let chars = 0
  for (const path of next.keys()) chars += path.length
  for (const path of next.keys()) {
    if (next.size <= SEEN_FILES_MAX && chars <= SEEN_PATHS_CHARS_MAX) break
    next.delete(path)
    chars -= path.length
  }
  return next
}

/** Calls that one output may propose in a stored history; models may make fewer (MODEL_TOOL_CALLS_MAX). */
export const OUTPUT_CALLS_MAX = 128

const callsRefused = ({ error, tool_calls }: EventOf<"ModelOutput">["payload"]): string | undefined => {
  if (error !== undefined && tool_calls.length > 0) return "a failed output proposes no calls"
  if (tool_calls.length > OUTPUT_CALLS_MAX) return `an output proposes ${OUTPUT_CALLS_MAX} calls at most`
  return new Set(tool_calls.map(({ call_id }) => call_id)).size < tool_calls.length
    ? "two calls have the same id"
    : undefined
}

/** Characters of its environment's text that a lane keeps. */
const ENVIRONMENT_CHARS_MAX = 2000

/** Equal for equal names, as the model gave them, and equal inputs. */
export const callDigest = (name: string, input: unknown): string => sha256(canonicalJson([name, input]))

export const modelOutput = (state: SessionState, { lane, payload, rev }: EventOf<"ModelOutput">): Folded => {
  const { usage } = payload
  const spent = {
    ...state.spent,
    tokens: tokenSum(state.spent.tokens, limitTokens(usage)),
    cost_usd: costSum(state.spent.cost_usd, usage.cost_usd ?? 0)
  }
  const memory = laneOf(state, lane)
  if (memory === undefined) return Result.fail(`no job runs on ${lane}`)
  const counted = countUsage({ ...state, spent }, lane, usage)
  if (payload.purpose === "judge") return Result.succeed(afterVerdict(counted, lane, rev))
  if (payload.purpose !== "turn" && payload.purpose !== "report") return Result.succeed(counted)
  if (memory.calls.length > 0) return Result.fail("calls of the output before are still open")
  const refusal = callsRefused(payload)
  if (refusal !== undefined) return Result.fail(refusal)
  const opened = payload.purpose === "report" ? openReport(counted, lane, rev) : Result.succeed(counted)
  const name =
    payload.error !== undefined
      ? "ModelOutput.error"
      : payload.tool_calls.length > 0
        ? "ModelOutput.tool_calls"
        : "ModelOutput.text"
  return Result.map(
    Result.flatMap(opened, (ready) =>
      (lane === EDGE ? ready.edge.turn?.kind : "turn") === payload.purpose
        ? move(ready, lane, name)
        : Result.fail(`no ${payload.purpose} is open on ${lane}`)
    ),
    (entered) => {
      const moved = afterOutput(entered, lane, payload, rev)
      const calls = payload.tool_calls.map((call) => ({
        call_id: call.call_id,
        name: firstChars(call.name, NAME_CHARS_MAX),
        digest: callDigest(call.name, call.input),
        stage: "proposed" as const,
        effect: undefined,
        output_rev: rev,
        committed_rev: 0,
        report: undefined
      }))
      const step = (laneOf(moved, lane)?.step ?? 0) + 1
      const told = payload.prompt?.environment
      const environment = told === undefined ? {} : { environment: firstChars(told, ENVIRONMENT_CHARS_MAX) }
      const next = inWindow(withLane(moved, lane, { calls, step, ...environment }), lane, rev)
      const core = coreOf(next, lane)
      return core === undefined
        ? withStep(withEdge(next, { output_rev: rev }), messageOf(next.edge.turn))
        : withCore(next, { ...core, settled_rev: rev, output: coreOutput(core, payload, rev) })
    }
  )
}

/** The matter of the note that asks a lane to correct its last words. */
export const CORRECTION = "correction"

export const isCorrectionNote = ({ about }: { readonly about: string }): boolean => about === CORRECTION

/**
 * An instruction that its prompt did not show may change it. An old output does not say what its prompt showed: at least what came before the
 * lane's newest result or output. One that says it is a correction only if its prompt asked for one: in old events a second result may
 * follow one that nothing was wrong with.
 */
const coreOutput = (
  { injection_rev, output, settled_rev }: CoreLane,
  { prompt, tool_calls }: EventOf<"ModelOutput">["payload"],
  rev: number
): CoreOutput => {
  const isFinal = tool_calls.length === 0
  const isAsked = prompt === undefined || prompt.notes?.some(isCorrectionNote) === true
  return {
    rev,
    isFinal,
    isSuperseded: injection_rev > (prompt?.rev ?? settled_rev),
    isCorrection: isAsked && isFinal && output.isFinal && !output.isSuperseded && injection_rev < output.rev
  }
}

const countUsage = (state: SessionState, lane: LaneId, usage: EventOf<"ModelOutput">["payload"]["usage"]) => {
  const core = coreOf(state, lane)
  if (core === undefined) return state
  return withCore(state, {
    ...core,
    spent: {
      input_tokens: tokenSum(core.spent.input_tokens, usage.input_tokens),
      output_tokens: tokenSum(core.spent.output_tokens, usage.output_tokens),
      cost_usd: costSum(core.spent.cost_usd, usage.cost_usd ?? 0)
    }
  })
}

const openCall = (state: SessionState, lane: LaneId, call_id: string): OpenCall | undefined =>
  laneOf(state, lane)?.calls.find((call) => call.call_id === call_id)

const withCall = (state: SessionState, lane: LaneId, call_id: string, change: Partial<OpenCall>): SessionState =>
  withLane(state, lane, {
    calls: (laneOf(state, lane)?.calls ?? []).map((call) => (call.call_id === call_id ? { ...call, ...change } : call))
  })

/** The tool through which a job speaks while it runs (docs/protocol.md, What a lane sees). */
export const CORE_REPORT = "choir.core.report"

const COMMIT = /\bgit\b[^;&|\n]*\bcommit\b/u

/** Whether a call runs a command that commits the workspace to git. */
export const commitsToGit = ({ input, tool }: EventOf<"ToolCallRequested">["payload"]): boolean =>
  tool === "choir.exec" &&
  typeof input === "object" &&
  input !== null &&
  "command" in input &&
  typeof input["command"] === "string" &&
  COMMIT.test(input["command"])

/** The paths that wait for a commit to git after one more result. */
const writtenAfter = (
  written: ReadonlyArray<string>,
  call: OpenCall,
  { status, writes = [] }: EventOf<"ToolResultCommitted">["payload"]
): ReadonlyArray<string> => {
  if (call.commits === true && status === "success") return []
  const paths = writes.map(({ path }) => path).filter(({ length }) => length <= WRITTEN_PATH_CHARS_MAX)
  if (paths.length === 0) return written
  const added = new Set(paths)
  return [...written.filter((path) => !added.has(path)), ...added].slice(-WRITTEN_FILES_MAX)
}

export const toolCallRequested = (
  state: SessionState,
  { lane, payload, rev }: EventOf<"ToolCallRequested">
): Folded => {
  const call = openCall(state, lane, payload.call_id)
  if (call?.stage !== "proposed") return Result.fail(`call ${payload.call_id} was not proposed, or not just now`)
  const requested = withCall(state, lane, payload.call_id, {
    stage: "requested",
    effect: payload.effect,
    ...(payload.confirm === undefined ? {} : { confirm: payload.confirm, sources: laneOf(state, lane)?.sources ?? [] }),
    report: payload.tool === CORE_REPORT ? { rev, ...reportKind(payload.input) } : undefined,
    ...(payload.tool === CORE_WRITEBACK ? { writeback_rev: rev } : {}),
    ...(commitsToGit(payload) ? { commits: true } : {}),
    ...(isStaged(payload) ? { staged: true } : {})
  })
  const counted = { ...requested, spent: { ...state.spent, tool_calls: state.spent.tool_calls + 1 } }
  const core = coreOf(counted, lane)
  if (core === undefined) return Result.succeed(counted)
  const work = { ...core.work, last_tool: payload.tool }
  return Result.succeed(withCore(counted, { ...core, tool_calls: core.tool_calls + 1, work }))
}

/** Legal again in a later epoch for a call without effect (docs/protocol.md, Recovery); the arbiter alone decides when. */
export const toolCallCommitted = (
  state: SessionState,
  { lane, payload, rev }: EventOf<"ToolCallCommitted">
): Folded => {
  const call = openCall(state, lane, payload.call_id)
  if (call === undefined || call.stage === "proposed") return Result.fail(`call ${payload.call_id} was not requested`)
  if (call.stage === "committed" && call.effect !== "none")
    return Result.fail(`call ${payload.call_id} has an effect and was committed before`)
  if (call.confirm !== undefined && payload.approval_id === undefined)
    return Result.fail(`call ${payload.call_id} needs a person's approval and names none`)
  const change = {
    stage: "committed",
    committed_rev: rev,
    ...(payload.writes === undefined ? {} : { writes: payload.writes }),
    ...(payload.compares === undefined ? {} : { compares: payload.compares })
  } as const
  const committed = withCall(state, lane, payload.call_id, change)
  return Result.succeed(withWriteOf(committed, { ...call, ...change }, laneOf(state, lane) ?? freshLane))
}

/** The outcomes of a call that was never committed: it was refused, its lane ended, or its deadline passed. */
const NEVER_RAN: ReadonlySet<string> = new Set(["rejected", "cancelled", "timeout"])

export const toolResultCommitted = (state: SessionState, event: EventOf<"ToolResultCommitted">): Folded => {
  const { lane, payload, rev } = event
  const call = openCall(state, lane, payload.call_id)
  const memory = laneOf(state, lane)
  if (call === undefined || memory === undefined) return Result.fail(`call ${payload.call_id} is not open`)
  if (call.stage !== "committed" && !NEVER_RAN.has(payload.status))
    return Result.fail(`call ${payload.call_id} never ran and cannot be ${payload.status}`)
  const calls = memory.calls.filter((other) => other !== call)
  const result = sha256(canonicalJson([payload.status, payload.summary, payload.output ?? null]))
  const files = [
    ...(payload.reads ?? []).map(({ path, sha256 }): FileSeen => [path, sha256]),
    ...(payload.writes ?? []).map(({ after, path }): FileSeen => [path, after])
  ]
  const ran = call.stage === "committed"
  const read = ran ? readSources(withPending(state, lanesWriting(state, call)), call) : []
  const isForeign = payload.untrusted === true || read.length > 0
  const after = isForeign ? brought(memory, [...(payload.sources ?? []), ...read], event) : memory
  const { label, sources, tainted } = after
  const core = coreOf(state, lane)
  const cost_usd = payload.cost_usd ?? 0
  const paid = { ...state, spent: { ...state.spent, cost_usd: costSum(state.spent.cost_usd, cost_usd) } }
  const spent = core === undefined ? undefined : { ...core.spent, cost_usd: costSum(core.spent.cost_usd, cost_usd) }
  const worked =
    core === undefined || spent === undefined
      ? paid
      : withCore(paid, { ...core, spent, work: workAfter(core, call, payload) })
  const next = withLane(worked, lane, {
    calls,
    skill: afterResult(memory.skill, call, payload),
    window: remembered(memory.window, rev),
    seen: withSeen(memory.seen, files),
    written: writtenAfter(memory.written, call, payload),
    tainted,
    sources,
    ...(label === undefined ? {} : { label }),
    repetitions: repeated(memory.repetitions, call.digest, result, payload.status === "rejected")
  })
  const marked = ran ? withResultOf(next, call, { sources, tainted }, payload) : next
  const asks = call.report?.isQuestion === true && payload.status === "success" && lane !== EDGE
  if (asks && state.reports.length >= REPORTS_OWED_MAX) return Result.fail(REPORTS_FULL)
  const told = withReport(marked, call, event)
  return calls.length > 0 ? Result.succeed(told) : move(told, lane, "ToolResultCommitted.last")
}

/** Why a job cannot end or ask just now. */
export const REPORTS_FULL = `${REPORTS_OWED_MAX} reports are already owed`

/** A job's report or question, which edge owes the user from now on. Edge sees it, and takes over its taint. */
const withReport = (
  state: SessionState,
  { report, writeback_rev }: OpenCall,
  event: EventOf<"ToolResultCommitted">
): SessionState => {
  const core = coreOf(state, event.lane)
  if (core === undefined) return state
  const isAccount = writeback_rev !== undefined && event.payload.status === "success"
  const settled = { ...core, settled_rev: event.rev, ...(isAccount ? { writeback_rev } : {}) }
  const { created_at } = event
  if (report === undefined || event.payload.status !== "success") return withCore(state, settled)
  const { inbox_id, job_id, job_name } = core
  const added = [sourceOf("job", job_name), ...core.sources]
  const heard = core.tainted ? withEdge(state, brought(state.edge, added, event)) : state
  if (!report.isQuestion) {
    const plan = report.isPlan === true ? { rev: report.rev, at: created_at } : core.plan
    return withCore(heard, { ...settled, report_rev: report.rev, plan })
  }
  const asked = { ...settled, report_rev: report.rev, question: { rev: report.rev, asked_at: created_at } }
  const owed = { kind: "question", job_id, job_name, rev: report.rev, inbox_id } as const
  return { ...withCore(heard, asked), reports: [...state.reports, owed] }
}

/** A report turn has no opening event: its first model output, or the report itself, opens it. */
export const openReport = (state: SessionState, lane: LaneId, rev: number): Folded => {
  if (lane !== EDGE) return Result.fail("only edge reports")
  if (state.edge.turn?.kind === "report") return Result.succeed(state)
  const [report] = state.reports
  if (report === undefined || state.edge.turn !== undefined) return Result.fail("there is no job to report on")
  return Result.succeed(withEdge(state, { turn: { kind: "report", report, rev }, step: 0, output_rev: 0 }))
}
