/** The tables of the lanes against the steps of docs/protocol.md, Lanes, written down here a second time. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { JobName } from "#schema/Ids.ts"
import { CORE_TRANSITIONS, CoreState, EDGE_TRANSITIONS, EdgeState, type LaneMove } from "#schema/Lane.ts"
import { fold, initialState } from "#src/shared/session/fold.ts"
import { noWork } from "#src/shared/session/jobWork.ts"
import type { CoreLane, OpenCall, SessionState } from "#src/shared/session/State.ts"

const MOVES: ReadonlyArray<LaneMove> = [
  "UserMsg",
  "ModelOutput.tool_calls",
  "ModelOutput.text",
  "ModelOutput.error",
  "ToolResultCommitted.last",
  "AgentMessage.answer",
  "InjectedInstruction",
  "CoreStarted",
  "CoreStopped.completed",
  "CoreStopped.other",
  "Cancelled",
  "Cancelled.turn"
]

/** Where edge is after a move; what is missing is illegal. */
const EDGE_AFTER: Readonly<Record<string, string>> = {
  "IDLE UserMsg": "CONTEXT_READY",
  // A report turn begins with its own output, or with the runtime's report (docs/protocol.md, Replies).
  "IDLE ModelOutput.tool_calls": "WAITING_TOOL",
  "IDLE ModelOutput.text": "FINALIZING",
  "IDLE ModelOutput.error": "FINALIZING",
  "IDLE AgentMessage.answer": "IDLE",
  "CONTEXT_READY ModelOutput.tool_calls": "WAITING_TOOL",
  "CONTEXT_READY ModelOutput.text": "FINALIZING",
  "CONTEXT_READY ModelOutput.error": "FINALIZING",
  "CONTEXT_READY AgentMessage.answer": "IDLE",
  "REASONING ModelOutput.tool_calls": "WAITING_TOOL",
  "REASONING ModelOutput.text": "FINALIZING",
  "REASONING ModelOutput.error": "FINALIZING",
  "REASONING AgentMessage.answer": "IDLE",
  "WAITING_TOOL ToolResultCommitted.last": "REASONING",
  // The correction of words that are missing or were cut off.
  "FINALIZING ModelOutput.tool_calls": "WAITING_TOOL",
  "FINALIZING ModelOutput.text": "FINALIZING",
  "FINALIZING ModelOutput.error": "FINALIZING",
  "FINALIZING AgentMessage.answer": "IDLE",
  // A turn that is stopped ends in the runtime's own answer.
  "IDLE Cancelled.turn": "FINALIZING",
  "CONTEXT_READY Cancelled.turn": "FINALIZING",
  "REASONING Cancelled.turn": "FINALIZING",
  "FINALIZING Cancelled.turn": "FINALIZING",
  "TERMINATED ToolResultCommitted.last": "TERMINATED",
  "TERMINATED AgentMessage.answer": "TERMINATED",
  ...Object.fromEntries(
    ["IDLE", "CONTEXT_READY", "REASONING", "WAITING_TOOL", "FINALIZING"].flatMap((state) => [
      [`${state} InjectedInstruction`, state],
      [`${state} Cancelled`, "TERMINATED"]
    ])
  )
}

const CORE_AFTER: Readonly<Record<string, string>> = {
  "CREATED CoreStarted": "INITIALIZING",
  "REASONING CoreStopped.completed": "COMPLETED",
  "WAITING_TOOL ToolResultCommitted.last": "REASONING",
  "INITIALIZING ModelOutput.tool_calls": "WAITING_TOOL",
  "REASONING ModelOutput.tool_calls": "WAITING_TOOL",
  ...Object.fromEntries(
    ["INITIALIZING", "REASONING"].flatMap((state) => [
      [`${state} ModelOutput.text`, "REASONING"],
      [`${state} ModelOutput.error`, "REASONING"]
    ])
  ),
  ...Object.fromEntries(
    ["INITIALIZING", "REASONING", "WAITING_TOOL"].flatMap((state) => [
      [`${state} InjectedInstruction`, state],
      [`${state} Cancelled`, state],
      [`${state} CoreStopped.other`, "TERMINATED"]
    ])
  )
}

type Table = Readonly<Record<string, Readonly<Partial<Record<LaneMove, ReadonlyArray<string>>>>>>

const check = (
  prefix: string,
  states: ReadonlyArray<string>,
  table: Table,
  after: Readonly<Record<string, string>>
) => {
  for (const state of states)
    for (const move of MOVES) {
      const path = table[state]?.[move]
      const reached = path === undefined ? undefined : (path.at(-1) ?? state)
      const expected = after[`${state.slice(prefix.length)} ${move}`]
      assert.strictEqual(reached, expected === undefined ? undefined : prefix + expected, `${move} in ${state}`)
    }
}

const call = { call_id: "c", name: "t", digest: "", effect: "none", output_rev: 1, committed_rev: 0 }
const openCalls = [{ ...call, stage: "committed" }] as unknown as ReadonlyArray<OpenCall>
const report = { kind: "stopped", job_id: "j", job_name: "b", rev: 1, inbox_id: undefined }
const core = {
  ...initialState.edge,
  job_id: "j",
  job_name: "a",
  lane: "core:a",
  output: { rev: 0, isFinal: false, isSuperseded: false, isCorrection: false },
  spent: { input_tokens: 0, output_tokens: 0, cost_usd: 0 },
  work: noWork
} as unknown as CoreLane

/** A state in which nothing but the table can refuse the move. */
const edgeIn = (state: EdgeState, move: LaneMove): SessionState => {
  const isReport = state === "EDGE_IDLE" || state === "EDGE_TERMINATED"
  const turn = isReport || move === "UserMsg" ? undefined : { kind: "turn", inbox_id: "1", dm: "me", rev: 1 }
  const calls = move === "ToolResultCommitted.last" ? openCalls : []
  return {
    ...initialState,
    edge: { ...initialState.edge, state, calls, turn },
    reports: turn === undefined ? [report] : []
  } as unknown as SessionState
}
const coreIn = (state: CoreState, move: LaneMove): SessionState => ({
  ...initialState,
  cores:
    state === "CORE_CREATED"
      ? new Map()
      : new Map([[JobName.make("a"), { ...core, state, calls: move === "ToolResultCommitted.last" ? openCalls : [] }]])
})

const usage = { input_tokens: 1, output_tokens: 1 }
const output = (lane: string, purpose: string, more: object = {}) => ({
  event_type: "ModelOutput",
  lane,
  payload: { call_id: "o", purpose, model: "m", tool_calls: [], finish_reason: "", usage, latency_ms: 0, ...more }
})
const stop = (outcome: string) => ({
  event_type: "CoreStopped",
  lane: "core:a",
  payload: { job_id: "j", job_name: "a", outcome, summary: "", usage }
})
const eventOf = (lane: "edge" | "core:a", move: LaneMove, state: SessionState): ChoirEvent => {
  const isReport = lane === "edge" && state.edge.turn === undefined
  const purpose = isReport ? "report" : "turn"
  const answer = isReport ? { kind: "report" } : { kind: "reply", in_reply_to: "1" }
  const drafts: Readonly<Record<LaneMove, object>> = {
    UserMsg: { event_type: "UserMsg", lane, payload: { inbox_id: "2", dm: "me", text: "", attachments: [] } },
    "ModelOutput.tool_calls": output(lane, purpose, { tool_calls: [{ call_id: "n", name: "t", input: {} }] }),
    "ModelOutput.text": output(lane, purpose, { text: "t" }),
    "ModelOutput.error": output(lane, purpose, { error: { kind: "http", message: "" } }),
    "ToolResultCommitted.last": {
      event_type: "ToolResultCommitted",
      lane,
      payload: { call_id: "c", status: "success", summary: "", duration_ms: 0 }
    },
    "AgentMessage.answer": { event_type: "AgentMessage", lane, payload: { ...answer, text: "" } },
    InjectedInstruction: {
      event_type: "InjectedInstruction",
      lane,
      payload: { target: lane, source: "edge", content: "" }
    },
    CoreStarted: {
      event_type: "CoreStarted",
      lane,
      payload: { job_id: "j", job_name: "a", start: { context_bundle: {} }, budgets: {} }
    },
    "CoreStopped.completed": stop("completed"),
    "CoreStopped.other": stop("error"),
    Cancelled: { event_type: "Cancelled", lane, payload: { target: lane, by: "user", reason: "r" } },
    "Cancelled.turn": { event_type: "Cancelled", lane, payload: { target: lane, by: "user", reason: "r", turn: 1 } }
  }
  return { v: 1, rev: 1, created_at: "1970-01-01T00:00:00.000Z", ...drafts[move] } as unknown as ChoirEvent
}

describe("Lane", () => {
  it("lets edge move along its legal steps and no others (docs/protocol.md, Lanes)", () => {
    check("EDGE_", EdgeState.literals, EDGE_TRANSITIONS, EDGE_AFTER)
  })

  it("lets a core job move along its legal steps and no others (docs/protocol.md, Lanes)", () => {
    check("CORE_", CoreState.literals, CORE_TRANSITIONS, CORE_AFTER)
  })

  it("takes each step of a path from the table's own states", () => {
    const steps = new Set(
      [...Object.values(EDGE_TRANSITIONS), ...Object.values(CORE_TRANSITIONS)].flatMap(Object.values)
    )
    const states: ReadonlySet<string> = new Set([...EdgeState.literals, ...CoreState.literals])
    for (const path of steps) for (const state of path as ReadonlyArray<string>) assert.isTrue(states.has(state))
  })

  it("is followed by the fold in every state and for every move of edge", () => {
    const moves = MOVES.filter((move) => !move.startsWith("Core"))
    for (const state of EdgeState.literals)
      for (const move of moves) {
        const before = edgeIn(state, move)
        const folded = fold(before, eventOf("edge", move, before))
        const expected = EDGE_AFTER[`${state.slice("EDGE_".length)} ${move}`]
        const reached = Result.isSuccess(folded) ? folded.success.edge.state : undefined
        assert.strictEqual(reached, expected === undefined ? undefined : `EDGE_${expected}`, `${move} in ${state}`)
      }
  })

  it("is followed by the fold in every state and for every move of a core job", () => {
    for (const state of ["CORE_CREATED", "CORE_INITIALIZING", "CORE_REASONING", "CORE_WAITING_TOOL"] as const)
      for (const move of MOVES.filter((name) => name !== "UserMsg" && name !== "AgentMessage.answer")) {
        // A cancel of a job that does not run is legal: it says no_such_job.
        if (state === "CORE_CREATED" && move === "Cancelled") continue
        const before = coreIn(state, move)
        const folded = fold(before, eventOf("core:a", move, before))
        const expected = CORE_AFTER[`${state.slice("CORE_".length)} ${move}`]
        assert.strictEqual(Result.isSuccess(folded), expected !== undefined, `${move} in ${state}`)
        if (Result.isFailure(folded) || expected === undefined) continue
        const reached = folded.success.cores.get(JobName.make("a"))?.state
        const gone = expected === "COMPLETED" || expected === "TERMINATED"
        assert.strictEqual(reached, gone ? undefined : `CORE_${expected}`, `${move} in ${state}`)
      }
  })
})
