/**
 * The one fold: events to state. Agent, choird, `session verify`, recovery and the tests all use it, so that what happened and
 * what is known to have happened cannot differ. An event that does not fit is refused, never repaired.
 */
import { HashMap, Result } from "effect"
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { EDGE, jobOf, type LaneId } from "#schema/Ids.ts"
import { CORE_TRANSITIONS, EDGE_TRANSITIONS, type CoreState, type EdgeState, type LaneMove } from "#schema/Lane.ts"
import { canonicalJson } from "#src/shared/canonicalJson.ts"
import { sha256 } from "#src/shared/hashChain.ts"
import { SIGNALS_REMEMBERED_MAX, WINDOW_REVS_MAX } from "#src/shared/limits.ts"
import type { CoreLane, EdgeLane, LaneMemory, OpenCall, SessionState } from "./State.ts"

/** Why an event does not fit the state before it. */
export interface FoldRefusal {
  readonly rev: number
  readonly reason: string
}
type Folded = Result.Result<SessionState, string>

const freshLane: LaneMemory = {
  calls: [],
  step: 0,
  window: [],
  seen: HashMap.empty(),
  tainted: false,
  repetition: { call: "", result: "", times: 0 }
}

/** A session before its first event. */
export const initialState: SessionState = {
  rev: 0,
  edge: { ...freshLane, state: "EDGE_IDLE", turn: undefined, output_rev: 0 },
  cores: new Map(),
  spent: { tokens: 0, cost_usd: 0, tool_calls: 0 },
  last_inbox_id: 0n,
  signals: [],
  reports: [],
  ended: undefined
}

const coreOf = (state: SessionState, lane: LaneId): CoreLane | undefined => {
  const job = jobOf(lane)
  return job === undefined ? undefined : state.cores.get(job)
}

/** The lane's memory, or `undefined` for a core job that does not run. */
export const laneOf = (state: SessionState, lane: LaneId): EdgeLane | CoreLane | undefined =>
  lane === EDGE ? state.edge : coreOf(state, lane)

const withEdge = (state: SessionState, edge: Partial<EdgeLane>): SessionState => ({
  ...state,
  edge: { ...state.edge, ...edge }
})

const withCore = (state: SessionState, core: CoreLane): SessionState => ({
  ...state,
  cores: new Map(state.cores).set(core.job_name, core)
})

const withLane = (state: SessionState, lane: LaneId, change: Partial<LaneMemory>): SessionState => {
  if (lane === EDGE) return withEdge(state, change)
  const core = coreOf(state, lane)
  return core === undefined ? state : withCore(state, { ...core, ...change })
}

const remembered = (window: ReadonlyArray<number>, rev: number): ReadonlyArray<number> =>
  window.length < WINDOW_REVS_MAX ? [...window, rev] : [...window.slice(-(WINDOW_REVS_MAX >> 1)), rev]

const inWindow = (state: SessionState, lane: LaneId, rev: number): SessionState => {
  const memory = laneOf(state, lane)
  return memory === undefined ? state : withLane(state, lane, { window: remembered(memory.window, rev) })
}

/** Where a move leads from a state, or `undefined` when the table does not allow it. */
const along = <S extends EdgeState | CoreState>(
  table: Readonly<Record<S, Readonly<Partial<Record<LaneMove, ReadonlyArray<S>>>>>>,
  from: S,
  move: LaneMove
): S | undefined => {
  const path = table[from][move]
  return path === undefined ? undefined : (path.at(-1) ?? from)
}

const move = (state: SessionState, lane: LaneId, name: LaneMove): Folded => {
  const core = coreOf(state, lane)
  if (lane === EDGE) {
    const next = along(EDGE_TRANSITIONS, state.edge.state, name)
    return next === undefined
      ? Result.fail(`${name} is not legal in ${state.edge.state}`)
      : Result.succeed(withEdge(state, { state: next }))
  }
  if (core === undefined) return Result.fail(`no job runs on ${lane}`)
  const next = along(CORE_TRANSITIONS, core.state, name)
  return next === undefined
    ? Result.fail(`${name} is not legal in ${core.state}`)
    : Result.succeed(withCore(state, { ...core, state: next }))
}

const signalled = (state: SessionState, signal_id: string | undefined): Folded => {
  if (signal_id === undefined) return Result.succeed(state)
  if (state.signals.includes(signal_id)) return Result.fail(`signal ${signal_id} already ended in an event`)
  return Result.succeed({ ...state, signals: [...state.signals.slice(1 - SIGNALS_REMEMBERED_MAX), signal_id] })
}

const userMsg = (state: SessionState, { lane, payload, rev }: EventOf<"UserMsg">): Folded => {
  const id = BigInt(payload.inbox_id)
  if (lane !== EDGE) return Result.fail("only edge hears the user")
  if (id <= state.last_inbox_id) return Result.fail(`inbox row ${payload.inbox_id} is not after the last one`)
  if (state.edge.turn !== undefined) return Result.fail("the turn before has no reply yet")
  return Result.map(move(state, EDGE, "UserMsg"), (moved) =>
    inWindow(
      {
        ...withEdge(moved, {
          turn: { kind: "turn", inbox_id: payload.inbox_id, dm: payload.dm, rev },
          step: 0,
          output_rev: 0,
          // What the user asks for again is no loop of the model's.
          repetition: freshLane.repetition
        }),
        last_inbox_id: id
      },
      EDGE,
      rev
    )
  )
}

const callsRefused = ({ error, tool_calls }: EventOf<"ModelOutput">["payload"]): string | undefined => {
  if (error !== undefined && tool_calls.length > 0) return "a failed output proposes no calls"
  return new Set(tool_calls.map(({ call_id }) => call_id)).size < tool_calls.length
    ? "two calls have the same id"
    : undefined
}

const callDigest = (name: string, input: unknown): string => sha256(canonicalJson([name, input]))

const modelOutput = (state: SessionState, { lane, payload, rev }: EventOf<"ModelOutput">): Folded => {
  const { usage } = payload
  const spent = {
    ...state.spent,
    tokens: state.spent.tokens + usage.input_tokens + usage.output_tokens,
    cost_usd: state.spent.cost_usd + (usage.cost_usd ?? 0)
  }
  const memory = laneOf(state, lane)
  if (memory === undefined) return Result.fail(`no job runs on ${lane}`)
  const counted = countUsage({ ...state, spent }, lane, usage)
  if (payload.purpose === "compaction" || payload.purpose === "summary") return Result.succeed(counted)
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
      lane === EDGE && ready.edge.turn === undefined ? Result.fail("edge has no turn") : move(ready, lane, name)
    ),
    (moved) => {
      const calls = payload.tool_calls.map((call) => ({
        call_id: call.call_id,
        name: call.name,
        digest: callDigest(call.name, call.input),
        stage: "proposed" as const,
        effect: undefined,
        output_rev: rev,
        committed_rev: 0
      }))
      const step = (laneOf(moved, lane)?.step ?? 0) + 1
      const next = inWindow(withLane(moved, lane, { calls, step }), lane, rev)
      const core = coreOf(next, lane)
      return core === undefined ? withEdge(next, { output_rev: rev }) : withCore(next, { ...core, output_rev: rev })
    }
  )
}

const countUsage = (state: SessionState, lane: LaneId, usage: EventOf<"ModelOutput">["payload"]["usage"]) => {
  const core = coreOf(state, lane)
  if (core === undefined) return state
  return withCore(state, {
    ...core,
    spent: {
      input_tokens: core.spent.input_tokens + usage.input_tokens,
      output_tokens: core.spent.output_tokens + usage.output_tokens,
      cost_usd: core.spent.cost_usd + (usage.cost_usd ?? 0)
    }
  })
}

/** A report turn has no opening event: its first model output, or the report itself, opens it. */
const openReport = (state: SessionState, lane: LaneId, rev: number): Folded => {
  if (lane !== EDGE) return Result.fail("only edge reports")
  if (state.edge.turn?.kind === "report") return Result.succeed(state)
  const [report] = state.reports
  if (report === undefined || state.edge.turn !== undefined) return Result.fail("there is no job to report on")
  return Result.succeed(withEdge(state, { turn: { kind: "report", report, rev }, step: 0, output_rev: 0 }))
}

const openCall = (state: SessionState, lane: LaneId, call_id: string): OpenCall | undefined =>
  laneOf(state, lane)?.calls.find((call) => call.call_id === call_id)

const withCall = (state: SessionState, lane: LaneId, call_id: string, change: Partial<OpenCall>): SessionState =>
  withLane(state, lane, {
    calls: (laneOf(state, lane)?.calls ?? []).map((call) => (call.call_id === call_id ? { ...call, ...change } : call))
  })

const toolCallRequested = (state: SessionState, { lane, payload }: EventOf<"ToolCallRequested">): Folded => {
  const call = openCall(state, lane, payload.call_id)
  if (call?.stage !== "proposed") return Result.fail(`call ${payload.call_id} was not proposed, or not just now`)
  const requested = withCall(state, lane, payload.call_id, { stage: "requested", effect: payload.effect })
  const counted = { ...requested, spent: { ...state.spent, tool_calls: state.spent.tool_calls + 1 } }
  const core = coreOf(counted, lane)
  return Result.succeed(core === undefined ? counted : withCore(counted, { ...core, tool_calls: core.tool_calls + 1 }))
}

/** Legal again in a later epoch for a call without effect (wire.md, Recovery); the arbiter alone tells when. */
const toolCallCommitted = (state: SessionState, { lane, payload, rev }: EventOf<"ToolCallCommitted">): Folded => {
  const call = openCall(state, lane, payload.call_id)
  if (call === undefined || call.stage === "proposed") return Result.fail(`call ${payload.call_id} was not requested`)
  if (call.stage === "committed" && call.effect !== "none")
    return Result.fail(`call ${payload.call_id} has an effect and was committed before`)
  return Result.succeed(withCall(state, lane, payload.call_id, { stage: "committed", committed_rev: rev }))
}

/** What a call may end as that was never committed: it was refused, its lane ended, or its deadline passed. */
const NEVER_RAN: ReadonlySet<string> = new Set(["rejected", "cancelled", "timeout"])

const toolResultCommitted = (state: SessionState, event: EventOf<"ToolResultCommitted">): Folded => {
  const { lane, payload, rev } = event
  const call = openCall(state, lane, payload.call_id)
  const memory = laneOf(state, lane)
  if (call === undefined || memory === undefined) return Result.fail(`call ${payload.call_id} is not open`)
  if (call.stage !== "committed" && !NEVER_RAN.has(payload.status))
    return Result.fail(`call ${payload.call_id} never ran and cannot be ${payload.status}`)
  const calls = memory.calls.filter((other) => other !== call)
  const result = sha256(canonicalJson([payload.status, payload.summary, payload.output ?? null]))
  const again =
    memory.repetition.call === call.digest && (memory.repetition.result === result || payload.status === "rejected")
  const seen = [
    ...(payload.reads ?? []).map(({ path, sha256 }) => [path, sha256] as const),
    ...(payload.writes ?? []).map(({ after, path }) => [path, after] as const)
  ].reduce((versions, [path, version]) => HashMap.set(versions, path, version), memory.seen)
  const next = withLane(state, lane, {
    calls,
    window: remembered(memory.window, rev),
    seen,
    tainted: memory.tainted || payload.untrusted === true,
    repetition: again
      ? { ...memory.repetition, times: memory.repetition.times + 1 }
      : { call: call.digest, result, times: 1 }
  })
  return calls.length > 0 ? Result.succeed(next) : move(next, lane, "ToolResultCommitted.last")
}

const coreStarted = (state: SessionState, { created_at, lane, payload, rev }: EventOf<"CoreStarted">): Folded => {
  if (jobOf(lane) !== payload.job_name) return Result.fail(`the lane ${lane} is not the job's`)
  if (state.edge.state === "EDGE_TERMINATED") return Result.fail("a job cannot outlive edge")
  if (state.cores.has(payload.job_name)) return Result.fail(`a job ${payload.job_name} already runs`)
  const turn = state.edge.turn
  const core: CoreLane = {
    ...freshLane,
    tainted: state.edge.tainted,
    window: [rev],
    state: "CORE_CREATED",
    job_id: payload.job_id,
    job_name: payload.job_name,
    lane,
    started_rev: rev,
    started_at: created_at,
    model: payload.model,
    budgets: payload.budgets,
    tool_calls: 0,
    injections: 0,
    output_rev: 0,
    spent: { input_tokens: 0, output_tokens: 0, cost_usd: 0 },
    cancelled: undefined,
    inbox_id: turn?.kind === "turn" ? turn.inbox_id : turn?.report.inbox_id
  }
  return move(inWindow(withCore(state, core), EDGE, rev), lane, "CoreStarted")
}

const coreStopped = (state: SessionState, { lane, payload, rev }: EventOf<"CoreStopped">): Folded => {
  const core = coreOf(state, lane)
  if (core?.job_id !== payload.job_id) return Result.fail(`job ${payload.job_name} does not run`)
  if (core.calls.length > 0) return Result.fail(`job ${payload.job_name} has open calls`)
  const name = payload.outcome === "completed" ? "CoreStopped.completed" : "CoreStopped.other"
  return Result.map(move(state, lane, name), (moved) => {
    const cores = new Map(moved.cores)
    cores.delete(payload.job_name)
    const { inbox_id, job_id, job_name, tainted } = core
    return inWindow(
      {
        ...withEdge(moved, { tainted: moved.edge.tainted || tainted }),
        cores,
        reports: [...moved.reports, { job_id, job_name, stopped_rev: rev, inbox_id }]
      },
      EDGE,
      rev
    )
  })
}

const injectedInstruction = (state: SessionState, { lane, payload, rev }: EventOf<"InjectedInstruction">): Folded => {
  if (lane !== payload.target) return Result.fail(`it is aimed at ${payload.target} and stands on ${lane}`)
  return Result.flatMap(signalled(state, payload.signal_id), (heard) => {
    if (payload.refused !== undefined) return Result.succeed(heard)
    return Result.map(move(heard, payload.target, "InjectedInstruction"), (moved) => {
      const seen = inWindow(moved, payload.target, rev)
      const core = coreOf(seen, payload.target)
      if (core === undefined) return seen
      const tainted = core.tainted || (payload.source === "edge" && state.edge.tainted)
      return withCore(seen, { ...core, injections: core.injections + 1, tainted })
    })
  })
}

const cancelled = (state: SessionState, { lane, payload }: EventOf<"Cancelled">): Folded => {
  if (lane !== payload.target) return Result.fail(`it is aimed at ${payload.target} and stands on ${lane}`)
  return Result.flatMap(signalled(state, payload.signal_id), (heard) => {
    if (payload.target === EDGE) {
      if (heard.cores.size > 0) return Result.fail("edge cannot end before its jobs")
      return Result.map(move(heard, EDGE, "Cancelled"), (moved) => ({ ...moved, ended: payload.by }))
    }
    const core = coreOf(heard, payload.target)
    return Result.succeed(core === undefined ? heard : withCore(heard, { ...core, cancelled: payload.reason }))
  })
}

const agentMessage = (state: SessionState, { lane, payload, rev }: EventOf<"AgentMessage">): Folded => {
  if (lane !== EDGE) return Result.fail("only edge speaks to the user")
  if (payload.kind === "notice") return Result.succeed(state)
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
          ...withEdge(moved, { turn: undefined, step: 0, output_rev: 0 }),
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
      return signalled(state, event.payload.signal_id)
    case "MemoryWriteCommitted":
    case "SkillTransitionCommitted":
      return Result.succeed(state)
  }
}

/** The state after one more event. */
export const fold = (state: SessionState, event: ChoirEvent): Result.Result<SessionState, FoldRefusal> => {
  if (event.rev !== state.rev + 1)
    return Result.fail({ rev: event.rev, reason: `revision ${event.rev} does not follow ${state.rev}` })
  return Result.mapBoth(apply(state, event), {
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
