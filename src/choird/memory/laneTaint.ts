/**
 * Which lanes have read something untrusted, from the events alone (D31): the part of the fold that memory labels words by, small enough to be
 * kept beside a session between two of its ends. A test compares it with the fold over whole histories.
 */
import { Schema } from "effect"
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { ToolEffect } from "#schema/Tool.ts"
import { CORE_REPORT, OUTPUT_CALLS_MAX, readsWorkspace, writesWorkspace } from "#src/shared/session/calls.ts"

/** Calls that a lane may have open: those of its newest output, and of a turn that waits for a person. */
const OPEN_CALLS_MAX = 2 * OUTPUT_CALLS_MAX

const Call = Schema.Struct({
  name: Schema.String,
  effect: Schema.optionalKey(ToolEffect),
  ran: Schema.optionalKey(Schema.Boolean),
  reports: Schema.optionalKey(Schema.Boolean)
})
type Call = typeof Call.Type

const Lane = Schema.Struct({ tainted: Schema.Boolean, calls: Schema.Record(Schema.String, Call) })
type Lane = typeof Lane.Type

export const Taint = Schema.Struct({ workspace: Schema.Boolean, lanes: Schema.Record(Schema.String, Lane) })
export type Taint = typeof Taint.Type

export const noTaint: Taint = { workspace: false, lanes: {} }

const NEW: Lane = { tainted: false, calls: {} }

const laneOf = ({ lanes }: Taint, lane: string): Lane => (Object.hasOwn(lanes, lane) ? lanes[lane] : undefined) ?? NEW

export const isTainted = (taint: Taint, lane: LaneId): boolean => laneOf(taint, lane).tainted

/** The tool of an open call, by its canonical name. */
export const toolOf = (taint: Taint, lane: LaneId, call_id: string): string => {
  const { calls } = laneOf(taint, lane)
  return (Object.hasOwn(calls, call_id) ? calls[call_id]?.name : undefined)?.replaceAll("-", ".") ?? "a tool"
}

const withLane = (taint: Taint, lane: string, change: Partial<Lane>): Taint => ({
  ...taint,
  lanes: { ...taint.lanes, [lane]: { ...laneOf(taint, lane), ...change } }
})

/** Taints a lane if `tainted` says so, and leaves it as it is otherwise. */
const orTainted = (taint: Taint, lane: string, tainted: boolean): Taint =>
  tainted && !laneOf(taint, lane).tainted ? withLane(taint, lane, { tainted }) : taint

const withCall = (taint: Taint, lane: string, call_id: string, change: Partial<Call>): Taint => {
  const { calls } = laneOf(taint, lane)
  const call = Object.hasOwn(calls, call_id) ? calls[call_id] : undefined
  return call === undefined ? taint : withLane(taint, lane, { calls: { ...calls, [call_id]: { ...call, ...change } } })
}

const afterWrite = (taint: Taint, call: Call, tainted: boolean): Taint =>
  tainted && !taint.workspace && writesWorkspace({ name: call.name, effect: call.effect })
    ? { ...taint, workspace: true }
    : taint

const proposed = (taint: Taint, { lane, payload }: EventOf<"ModelOutput">): Taint => {
  if (payload.tool_calls.length === 0) return taint
  const added = payload.tool_calls.map(({ call_id, name }) => [call_id, { name }] as const)
  const calls = [...Object.entries(laneOf(taint, lane).calls), ...added].slice(-OPEN_CALLS_MAX)
  return withLane(taint, lane, { calls: Object.fromEntries(calls) })
}

const committed = (taint: Taint, { lane, payload }: EventOf<"ToolCallCommitted">): Taint => {
  const call = laneOf(taint, lane).calls[payload.call_id]
  if (call === undefined) return taint
  return afterWrite(withCall(taint, lane, payload.call_id, { ran: true }), call, laneOf(taint, lane).tainted)
}

const ended = (taint: Taint, { lane, payload }: EventOf<"ToolResultCommitted">): Taint => {
  const { [payload.call_id]: call, ...calls } = laneOf(taint, lane).calls
  const ran = call?.ran === true
  const reads = ran && taint.workspace && readsWorkspace(call)
  const tainted = laneOf(taint, lane).tainted || payload.untrusted === true || reads
  const next = withLane(taint, lane, { tainted, calls })
  const marked = ran ? afterWrite(next, call, tainted) : next
  const told = call?.reports === true && payload.status === "success" && lane !== EDGE
  return told ? orTainted(marked, EDGE, tainted) : marked
}

const jobEnded = (taint: Taint, lane: LaneId): Taint => {
  const { [lane]: gone, ...lanes } = taint.lanes
  return orTainted({ ...taint, lanes }, EDGE, gone?.tainted === true)
}

/** After one more event. */
export const taintAfter = (taint: Taint, event: ChoirEvent): Taint => {
  const { lane } = event
  switch (event.event_type) {
    case "UserMsg":
      return orTainted(taint, EDGE, event.payload.forwarded === true)
    case "ModelOutput":
      return proposed(taint, event)
    case "ToolCallRequested": {
      const { call_id, effect, tool } = event.payload
      return withCall(taint, lane, call_id, { effect, ...(tool === CORE_REPORT ? { reports: true } : {}) })
    }
    case "ToolCallCommitted":
      return committed(taint, event)
    case "ToolResultCommitted":
      return ended(taint, event)
    case "CoreStarted":
      return withLane(taint, lane, { tainted: laneOf(taint, EDGE).tainted, calls: {} })
    case "CoreStopped":
      return jobEnded(taint, lane)
    case "InjectedInstruction": {
      const { refused, source } = event.payload
      return lane !== EDGE && refused === undefined && source === "edge"
        ? orTainted(taint, lane, laneOf(taint, EDGE).tainted)
        : taint
    }
    default:
      return taint
  }
}

/** After an event that only a later Choir knows: it may have brought anything, to any lane. */
export const taintAfterUnknown = ({ lanes }: Taint): Taint => ({
  workspace: true,
  lanes: Object.fromEntries(
    Object.entries({ [EDGE]: NEW, ...lanes }).map(([name, lane]) => [name, { ...lane, tainted: true }])
  )
})
