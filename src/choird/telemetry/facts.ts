/** The telemetry of acknowledged events: a session's lanes, model calls and tool calls, without their texts. */
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import type { LaneState } from "#schema/Lane.ts"
import { fromWireName } from "#schema/Tool.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import type { SessionState } from "#src/shared/session/State.ts"

/** Open tool calls of a session that telemetry remembers; it drops the oldest. */
const TELEMETRY_CALLS_MAX = 1024

/** A number or a name in a line or a span besides its session and lane. */
export type Fields = Readonly<Record<string, string | number | boolean>>

/** An interval, as a span. */
export interface Interval {
  readonly name: string
  readonly lane: LaneId
  readonly start_ms: number
  readonly end_ms: number
  readonly ok: boolean
  readonly fields: Fields
}

/** The telemetry that one event, or the state after it, adds to its session. */
export interface Fact {
  readonly kind: "lane" | "model" | "tool" | "job" | "turn" | "memory" | "skill" | "inject" | "cancel"
  readonly lane: LaneId
  readonly message: string
  readonly fields: Fields
  readonly interval?: Interval
}

interface Call {
  readonly tool: string
  readonly asked_ms: number
  granted_ms: number | undefined
  readonly locks: number
}

/** The memory of a session between its events. */
export interface Watch {
  rev: number
  readonly states: Map<LaneId, LaneState>
  /** A crash closes open calls by an event; a hostile agent may leave as many open as it likes. */
  readonly calls: BoundedMap<string, Call>
  readonly jobs: Map<LaneId, number>
  turn_ms: number | undefined
}

export const newWatch = (rev: number): Watch => ({
  rev,
  states: new Map(),
  calls: new BoundedMap(TELEMETRY_CALLS_MAX),
  jobs: new Map(),
  turn_ms: undefined
})

/** A name from an agent or a model, cut to fit a line. */
const named = (text: string) => text.slice(0, 80).toWellFormed()

const msOf = ({ created_at }: ChoirEvent) => Date.parse(created_at)

const modelFact = ({ lane, payload, ...event }: EventOf<"ModelOutput">, end_ms: number): Fact => {
  const { error, latency_ms, purpose, tool_calls, usage } = payload
  const model = named(payload.model)
  const status = error?.kind ?? (purpose === "interrupted" ? purpose : "ok")
  const fields = {
    rev: event.rev,
    model,
    purpose,
    status,
    input_tokens: usage.input_tokens,
    output_tokens: usage.output_tokens,
    ...(usage.cost_usd === undefined ? {} : { cost_usd: usage.cost_usd }),
    latency_ms,
    tool_calls: tool_calls.length
  }
  const start_ms = end_ms - latency_ms
  return {
    kind: "model",
    lane,
    message: `model call: ${model} ${status}`,
    fields,
    interval: { name: "model call", lane, start_ms, end_ms, ok: status === "ok", fields }
  }
}

/** A refused call is never requested: only the model's answer names its tool. */
const rememberCalls = (watch: Watch, event: EventOf<"ModelOutput">) => {
  for (const { call_id, name } of event.payload.tool_calls)
    watch.calls.setInPlace(call_id, {
      tool: named(fromWireName(name) ?? name),
      asked_ms: msOf(event),
      granted_ms: undefined,
      locks: 0
    })
}

const requested = (watch: Watch, event: EventOf<"ToolCallRequested">): Fact => {
  const { call_id, effect, locks } = event.payload
  const tool = named(event.payload.tool)
  watch.calls.setInPlace(call_id, { tool, asked_ms: msOf(event), granted_ms: undefined, locks: locks.length })
  const fields = { rev: event.rev, call_id, tool, effect, locks: locks.length }
  return { kind: "tool", lane: event.lane, message: `tool call requested: ${tool}`, fields }
}

const granted = (watch: Watch, event: EventOf<"ToolCallCommitted">): Fact => {
  const { call_id, locks } = event.payload
  const call = watch.calls.get(call_id)
  const at_ms = msOf(event)
  if (call !== undefined) call.granted_ms = at_ms
  const wait_ms = Math.max(0, at_ms - (call?.asked_ms ?? at_ms))
  const fields = { rev: event.rev, call_id, tool: call?.tool ?? "unknown", locks: locks.length, lock_wait_ms: wait_ms }
  return { kind: "tool", lane: event.lane, message: `locks acquired: ${fields.tool}`, fields }
}

/** A result releases the locks of its call. */
const finished = (watch: Watch, event: EventOf<"ToolResultCommitted">): Fact => {
  const { call_id, duration_ms, status } = event.payload
  const call = watch.calls.get(call_id)
  watch.calls.delete(call_id)
  const tool = call?.tool ?? "unknown"
  const end_ms = msOf(event)
  const fields = {
    rev: event.rev,
    call_id,
    tool,
    status,
    duration_ms,
    locks_released: call?.granted_ms === undefined ? 0 : call.locks
  }
  const start_ms = Math.min(call?.asked_ms ?? end_ms - duration_ms, end_ms)
  return {
    kind: "tool",
    lane: event.lane,
    message: `tool call ended: ${tool} ${status}`,
    fields,
    interval: { name: "tool call", lane: event.lane, start_ms, end_ms, ok: status === "success", fields }
  }
}

const jobEnded = (watch: Watch, event: EventOf<"CoreStopped">): Fact => {
  const { outcome, usage } = event.payload
  const end_ms = msOf(event)
  const start_ms = watch.jobs.get(event.lane) ?? end_ms
  watch.jobs.delete(event.lane)
  const fields = {
    rev: event.rev,
    outcome,
    input_tokens: usage.input_tokens,
    output_tokens: usage.output_tokens
  }
  const interval = { name: "job", lane: event.lane, start_ms, end_ms, ok: outcome === "completed", fields }
  return { kind: "job", lane: event.lane, message: `job ended: ${outcome}`, fields, interval }
}

const turnEnded = (watch: Watch, event: EventOf<"AgentMessage">): ReadonlyArray<Fact> => {
  const { turn_ms } = watch
  if (event.payload.kind !== "reply" || turn_ms === undefined) return []
  watch.turn_ms = undefined
  const end_ms = msOf(event)
  const fields = { rev: event.rev, turn_ms: Math.max(0, end_ms - turn_ms) }
  const interval = { name: "turn", lane: EDGE, start_ms: turn_ms, end_ms, ok: true, fields }
  return [{ kind: "turn", lane: EDGE, message: "turn ended", fields, interval }]
}

/** A skill began, moved to another of its states, or ended. */
const skillFact = ({ lane, payload, rev }: EventOf<"SkillTransitionCommitted">): Fact => {
  const skill = named(payload.skill)
  const status = payload.ended ?? (payload.from === "" ? "started" : "moved")
  const fields = { rev, skill, from: named(payload.from), to: named(payload.to), status, step: payload.step }
  return { kind: "skill", lane, message: `skill ${skill}: ${status}`, fields }
}

const injectFact = ({ lane, payload, rev }: EventOf<"InjectedInstruction">): Fact => {
  const { refused, source, target } = payload
  const status = refused === undefined ? "taken" : "refused"
  return { kind: "inject", lane, message: `instruction ${status}`, fields: { rev, source, target, status } }
}

const cancelFact = ({ lane, payload, rev }: EventOf<"Cancelled">): Fact => {
  const { by, target, turn } = payload
  const what = turn !== undefined ? "turn" : target === EDGE ? "session" : "job"
  return { kind: "cancel", lane, message: `cancelled by ${by}: ${what}`, fields: { rev, by, target, what } }
}

/** The telemetry of one event, without its texts. */
export const factsOf = (watch: Watch, event: ChoirEvent): ReadonlyArray<Fact> => {
  switch (event.event_type) {
    case "UserMsg":
      watch.turn_ms = msOf(event)
      return [{ kind: "turn", lane: EDGE, message: "turn begins", fields: { rev: event.rev } }]
    case "AgentMessage":
      return turnEnded(watch, event)
    case "ModelOutput":
      rememberCalls(watch, event)
      return [modelFact(event, msOf(event))]
    case "ToolCallRequested":
      return [requested(watch, event)]
    case "ToolCallCommitted":
      return [granted(watch, event)]
    case "ToolResultCommitted":
      return [finished(watch, event)]
    case "CoreStarted":
      watch.jobs.set(event.lane, msOf(event))
      return [
        {
          kind: "job",
          lane: event.lane,
          message: "job begins",
          fields: { rev: event.rev, model: named(event.payload.model) }
        }
      ]
    case "CoreStopped":
      return [jobEnded(watch, event)]
    case "CompactionCommitted":
      return [{ kind: "memory", lane: event.lane, message: "working memory compacted", fields: { rev: event.rev } }]
    case "SkillTransitionCommitted":
      return [skillFact(event)]
    case "InjectedInstruction":
      return [injectFact(event)]
    case "Cancelled":
      return [cancelFact(event)]
    case "MemoryWriteCommitted":
      return []
  }
}

/** The lanes whose states changed, by the fold; a lane that is gone has ended. */
export const laneFacts = (watch: Watch, { cores, edge }: SessionState): ReadonlyArray<Fact> => {
  const now = new Map<LaneId, LaneState>([[EDGE, edge.state]])
  for (const { lane, state } of cores.values()) now.set(lane, state)
  const gone = [...watch.states]
    .filter(([lane]) => !now.has(lane))
    .map(([lane, from]) => [lane, from, "ended"] as const)
  const moved = [...now].flatMap(([lane, to]) => {
    const from = watch.states.get(lane)
    return from === to ? [] : [[lane, from ?? "none", to] as const]
  })
  watch.states.clear()
  for (const [lane, state] of now) watch.states.set(lane, state)
  return [...gone, ...moved].map(([lane, from, to]) => ({
    kind: "lane",
    lane,
    message: `lane ${from} to ${to}`,
    fields: { from, to }
  }))
}
