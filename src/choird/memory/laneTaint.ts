/**
 * The lanes that have read something untrusted, from the events alone (D31): the part of the fold that memory labels words by, small enough to be
 * stored with a session that has ended, until it is resumed and ends again. A test compares it with the fold over whole histories.
 */
import { Effect, Schema } from "effect"
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { EDGE, jobOf, type LaneId } from "#schema/Ids.ts"
import { Source, Sources } from "#schema/Source.ts"
import { ToolEffect } from "#schema/Tool.ts"
import { CORE_REPORT, OUTPUT_CALLS_MAX } from "#src/shared/session/calls.ts"
import { UNKNOWN } from "#src/shared/session/compactWindow.ts"
import { sourcesOfAll } from "#src/shared/session/fileLabels.ts"
import { messageSources } from "#src/shared/session/fold.ts"
import { sourceOf, withSources } from "#src/shared/session/sources.ts"
import {
  isStaged,
  readSources,
  withPending,
  withReceived,
  withResultOf,
  type WorkspaceOrigin,
  withWriteOf
} from "#src/shared/session/workspaceOrigin.ts"

/** Calls that a lane may have open: those of its newest output, and of a turn that waits for a person. */
const OPEN_CALLS_MAX = 2 * OUTPUT_CALLS_MAX

const Call = Schema.Struct({
  name: Schema.String,
  effect: Schema.optionalKey(ToolEffect),
  ran: Schema.optionalKey(Schema.Boolean),
  reports: Schema.optionalKey(Schema.Boolean),
  staged: Schema.optionalKey(Schema.Boolean),
  writes: Schema.optionalKey(Schema.Array(Schema.String)),
  compares: Schema.optionalKey(Schema.Boolean)
})
type Call = typeof Call.Type

/** Absent in what an earlier Choir stored. */
const KeptSources = Sources.pipe(Schema.withDecodingDefaultKey(Effect.succeed([])))

const Lane = Schema.Struct({
  tainted: Schema.Boolean,
  sources: KeptSources,
  calls: Schema.Record(Schema.String, Call)
})
type Lane = typeof Lane.Type

export const Taint = Schema.Struct({
  workspace: Schema.Boolean,
  workspace_sources: KeptSources,
  received: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
  /** Labelled files and their sources, while not all are. */
  files: Schema.Array(Schema.Tuple([Schema.String, Sources])).pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
  /** Of labels that have ended. */
  past: KeptSources,
  lanes: Schema.Record(Schema.String, Lane)
})
export type Taint = typeof Taint.Type

export const noTaint: Taint = {
  workspace: false,
  workspace_sources: [],
  received: false,
  files: [],
  past: [],
  lanes: {}
}

const NEW: Lane = { tainted: false, sources: [], calls: {} }

const laneOf = ({ lanes }: Taint, lane: string): Lane => (Object.hasOwn(lanes, lane) ? lanes[lane] : undefined) ?? NEW

export const isTainted = (taint: Taint, lane: LaneId): boolean => laneOf(taint, lane).tainted

/** Where the text came from that taints a lane. */
export const sourcesOf = (taint: Taint, lane: LaneId): ReadonlyArray<Source> => laneOf(taint, lane).sources

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
const orTainted = (taint: Taint, lane: string, tainted: boolean, brought: ReadonlyArray<Source>): Taint => {
  if (!tainted) return taint
  const before = laneOf(taint, lane)
  const sources = withSources(before.sources, brought)
  return before.tainted && sources === before.sources ? taint : withLane(taint, lane, { tainted, sources })
}

const withCall = (taint: Taint, lane: string, call_id: string, change: Partial<Call>): Taint => {
  const { calls } = laneOf(taint, lane)
  const call = Object.hasOwn(calls, call_id) ? calls[call_id] : undefined
  return call === undefined ? taint : withLane(taint, lane, { calls: { ...calls, [call_id]: { ...call, ...change } } })
}

const originOf = ({ files, received, workspace, workspace_sources }: Taint): WorkspaceOrigin => ({
  workspace_tainted: workspace,
  workspace_sources,
  workspace_received: received,
  workspace_files: new Map(files)
})

/** After what the fold makes of the labels of the workspace. */
const withOrigin = (taint: Taint, change: (origin: WorkspaceOrigin) => WorkspaceOrigin): Taint => {
  const before = originOf(taint)
  const { workspace_files, workspace_received, workspace_sources, workspace_tainted } = change(before)
  const [workspace, received] = [workspace_tainted, workspace_received]
  return { ...taint, workspace, received, workspace_sources, files: [...workspace_files] }
}

/** A call as the fold knows it; of one whose effect is not known it takes none. */
const writerOf = ({ compares, effect, name, writes }: Call) => ({
  name,
  effect,
  ...(writes === undefined ? {} : { writes }),
  ...(compares === undefined ? {} : { compares })
})

/** With what running calls may be writing, but for those that end now. */
const pendingOf = (taint: Taint, ending: Call | undefined): WorkspaceOrigin =>
  withPending(
    originOf(taint),
    Object.values(taint.lanes).map(({ calls, sources, tainted }) => ({
      sources,
      tainted,
      calls: Object.values(calls)
        .filter((call) => call !== ending)
        .map(({ compares, ran }) => ({ compares, isRunning: ran === true }))
    }))
  )

const proposed = (taint: Taint, { lane, payload }: EventOf<"ModelOutput">): Taint => {
  if (payload.tool_calls.length === 0) return taint
  const added = payload.tool_calls.map(({ call_id, name }) => [call_id, { name }] as const)
  const calls = [...Object.entries(laneOf(taint, lane).calls), ...added].slice(-OPEN_CALLS_MAX)
  return withLane(taint, lane, { calls: Object.fromEntries(calls) })
}

const committed = (taint: Taint, { lane, payload }: EventOf<"ToolCallCommitted">): Taint => {
  const call = laneOf(taint, lane).calls[payload.call_id]
  if (call === undefined) return taint
  const { call_id, compares, writes } = payload
  const change = {
    ran: true,
    ...(writes === undefined ? {} : { writes }),
    ...(compares === undefined ? {} : { compares })
  }
  const begun = withCall(taint, lane, call_id, change)
  return withOrigin(begun, (origin) => withWriteOf(origin, writerOf({ ...call, ...change }), laneOf(taint, lane)))
}

const ended = (taint: Taint, { lane, payload }: EventOf<"ToolResultCommitted">): Taint => {
  const { [payload.call_id]: call, ...calls } = laneOf(taint, lane).calls
  const ran = call?.ran === true
  const before = laneOf(taint, lane)
  const read = ran ? readSources(pendingOf(taint, call), call) : []
  const brought = payload.untrusted === true || read.length > 0
  const tainted = before.tainted || brought
  const sources = brought ? withSources(before.sources, [...(payload.sources ?? []), ...read]) : before.sources
  const next = withLane(taint, lane, { tainted, sources, calls })
  const marked = ran
    ? withOrigin(next, (origin) => withResultOf(origin, writerOf(call), { sources, tainted }, payload))
    : next
  const told = call?.reports === true && payload.status === "success" && lane !== EDGE
  return told ? orTainted(marked, EDGE, tainted, ofJob(lane, sources)) : marked
}

const ofJob = (lane: LaneId, sources: ReadonlyArray<Source>): ReadonlyArray<Source> => {
  const job = jobOf(lane)
  return job === undefined ? sources : [sourceOf("job", job), ...sources]
}

const heard = (taint: Taint, { payload }: EventOf<"UserMsg">): Taint => {
  const brought = messageSources(payload)
  const told = withOrigin(orTainted(taint, EDGE, brought.length > 0, brought), (origin) =>
    withReceived(origin, payload)
  )
  return payload.received === true ? { ...told, received: true } : told
}

const jobEnded = (taint: Taint, { lane, payload: { sources } }: EventOf<"CoreStopped">): Taint => {
  const { [lane]: gone, ...lanes } = taint.lanes
  const isForeign = gone?.tainted === true || sources !== undefined
  return orTainted({ ...taint, lanes }, EDGE, isForeign, ofJob(lane, withSources(gone?.sources ?? [], sources ?? [])))
}

/** A job begins with what edge hands to it, or a resumed one remembers: that is of the log, where text stays that has left edge's window. */
const started = (taint: Taint, { lane, payload: { resumes, start } }: EventOf<"CoreStarted">): Taint => {
  const begun = withLane(taint, lane, { ...laneOf(taint, EDGE), calls: {} })
  const isOfLog = resumes !== undefined || (start.context_bundle.handed ?? []).length > 0
  return orTainted(begun, lane, isOfLog && taint.past.length > 0, taint.past)
}

/**
 * The fold has seen that no text from outside is left where a compaction ends a label. One with sources brings the summary of an earlier session,
 * which had read such text.
 */
const compacted = (taint: Taint, { lane, payload }: EventOf<"CompactionCommitted">): Taint => {
  const { sources: brings = [], split } = payload
  if (brings.length > 0) return orTainted(taint, lane, true, brings)
  const { sources, tainted } = laneOf(taint, lane)
  if ((split?.ended !== true && split?.trusted !== true) || !tainted) return taint
  const past = withSources(taint.past, sources.length === 0 ? UNKNOWN : sources)
  return { ...withLane(taint, lane, { tainted: false, sources: [] }), past }
}

/** After one more event. */
export const taintAfter = (taint: Taint, event: ChoirEvent): Taint => {
  const { lane } = event
  switch (event.event_type) {
    case "UserMsg":
      return heard(taint, event)
    case "ModelOutput":
      return proposed(taint, event)
    case "ToolCallRequested": {
      const { call_id, effect, tool } = event.payload
      return withCall(taint, lane, call_id, {
        effect,
        ...(tool === CORE_REPORT ? { reports: true } : {}),
        ...(isStaged(event.payload) ? { staged: true } : {})
      })
    }
    case "ToolCallCommitted":
      return committed(taint, event)
    case "ToolResultCommitted":
      return ended(taint, event)
    case "CoreStarted":
      return started(taint, event)
    case "CompactionCommitted":
      return compacted(taint, event)
    case "CoreStopped":
      return jobEnded(taint, event)
    case "InjectedInstruction": {
      const { refused, source } = event.payload
      return lane !== EDGE && refused === undefined && source === "edge"
        ? orTainted(taint, lane, laneOf(taint, EDGE).tainted, laneOf(taint, EDGE).sources)
        : taint
    }
    default:
      return taint
  }
}

/** After an event that only a later Choir knows: it may have brought anything, to any lane. */
export const taintAfterUnknown = ({ lanes, ...taint }: Taint): Taint => ({
  ...taint,
  workspace: true,
  received: true,
  files: [],
  workspace_sources: withSources(taint.workspace_sources, sourcesOfAll(new Map(taint.files))),
  lanes: Object.fromEntries(
    Object.entries({ [EDGE]: NEW, ...lanes }).map(([name, lane]) => [name, { ...lane, tainted: true }])
  )
})
