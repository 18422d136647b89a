/** The effect of a compaction on a state: the oldest part of a lane's window gives way to the summary that replaces it. */
import { Result } from "effect"
import type { EventOf } from "#schema/Event.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import type { Source } from "#schema/Source.ts"
import { waitsForPerson } from "./parkTurn.ts"
import { type Folded, laneOf, withLane } from "./lanes.ts"
import { brought, endsLabel } from "./labels.ts"
import type { Label } from "./Label.ts"
import { applyDelta, boundedWords, emptySummary } from "./memory.ts"
import { withSources } from "./sources.ts"
import type { CoreLane, EdgeLane, LaneMemory, ReferenceSummary, SessionState } from "./State.ts"

/** The outputs of a lane that its next steps continue from, by revision: its newest one, and the one of a turn that was set aside. */
export const openOutputs = (memory: EdgeLane | CoreLane): ReadonlyArray<number> =>
  ("job_id" in memory ? [memory.output.rev] : [memory.output_rev, memory.parked?.output_rev ?? 0]).filter(
    (rev) => rev > 0
  )

/** The outputs up to a boundary that stay in the window with their results, since their calls are open. */
export const passedOutputs = (memory: EdgeLane | CoreLane, boundary_rev: number): ReadonlyArray<number> =>
  openOutputs(memory).filter((rev) => rev <= boundary_rev)

/**
 * The outputs that a compaction passes: those that one has already passed, and the one of a turn that waits for a person. That may take as
 * long as the person likes, and others are answered meanwhile, so that it must not hold up what came after it.
 */
export const heldOutputs = (memory: EdgeLane | CoreLane): ReadonlyArray<number> => {
  const passed = passedOutputs(memory, memory.boundary)
  if ("job_id" in memory) return passed
  const waiting = [memory.parked?.output_rev ?? 0, waitsForPerson(memory) ? memory.output_rev : 0]
  return [...new Set([...passed, ...waiting.filter((rev) => rev > 0)])]
}

/**
 * The newest revision that a compaction of a lane is to reach: before the newest output, from which the lane continues, unless that one is
 * held. The open turn's message and a job's task are shown from their own revisions, whatever the window holds.
 */
export const compactionLimit = (state: SessionState, lane: LaneId): number => {
  const memory = laneOf(state, lane)
  if (memory === undefined) return 0
  const held = heldOutputs(memory)
  return openOutputs(memory)
    .filter((rev) => !held.includes(rev))
    .reduce((limit, rev) => Math.min(limit, rev - 1), state.rev)
}

/** Why revisions cannot be those that stay below a compaction's boundary. */
const keptRefused = (memory: EdgeLane | CoreLane, boundary_rev: number, kept: ReadonlyArray<number>) => {
  if (kept.some((rev) => rev > boundary_rev || !memory.window.includes(rev)))
    return "a compaction keeps revisions that are not in the part of the window that leaves"
  return passedOutputs(memory, boundary_rev).every((rev) => kept.includes(rev))
    ? undefined
    : "an output whose calls are open would leave the window"
}

type Payload = EventOf<"CompactionCommitted">["payload"]

/** Why a compaction cannot part trusted text from the rest as it says. */
const splitRefused = (state: SessionState, { lane, payload }: EventOf<"CompactionCommitted">): string | undefined => {
  const { boundary_rev, kept = [], split } = payload
  if (split === undefined) return undefined
  if (lane !== EDGE) return "only edge parts its summary"
  // What was forgotten of a session may be all that labelled it.
  if (split.ended !== true || state.edge.label === undefined) return undefined
  return split.rest === undefined && endsLabel(state, boundary_rev, kept)
    ? undefined
    : "text from outside would be left in a window without a label"
}

/** The summary that a delta changes: one that was not parted from text of outside gives way to one that is. */
const summaryBefore = ({ label, summary }: LaneMemory, split: Payload["split"]): ReferenceSummary => {
  if (split === undefined) return summary
  const { rest: _, ...trusted } = label?.mixed === true ? emptySummary : summary
  return trusted
}

/** A label once a part of the window is in a summary. */
const labelAfter = (label: Label, { delta, split }: Payload): Label =>
  split === undefined && Object.keys(delta).length === 1 ? label : { ...label, mixed: split === undefined }

/** A lane whose summary brings text from outside that an earlier session had read, and is not parted from it. */
const withMixed = (
  lane: LaneMemory,
  sources: ReadonlyArray<Source>,
  { created_at, payload: { boundary_rev } }: EventOf<"CompactionCommitted">
): ReturnType<typeof brought> => {
  // The text is in the summary, and leaves with the next compaction, but not before what the lane has read itself.
  const labelled = brought(lane, sources, { created_at, rev: Math.max(lane.label?.rev ?? 0, boundary_rev) })
  return { ...labelled, label: { ...labelled.label, mixed: true } }
}

/** The state of a lane without a label, in which no text of outside is left. */
const unlabelled = (state: SessionState): SessionState => {
  const { sources, summary } = state.edge
  return {
    ...withLane(state, EDGE, {
      tainted: false,
      sources: [],
      label: undefined,
      // Names of files that the lane chose in sight of such text.
      written: [],
      summary: { ...summary, files: [] }
    }),
    past_sources: withSources(state.past_sources, sources.length === 0 ? UNKNOWN : sources)
  }
}

/** The state in which a person has taken the text from outside in edge's window for trusted; what is in the log elsewhere stays what it is. */
const trusted = (state: SessionState, { lane, payload: { signal_id } }: EventOf<"CompactionCommitted">): Folded => {
  if (lane !== EDGE || signal_id === undefined) return Result.fail("only a person takes text from outside for trusted")
  const { label, sources } = state.edge
  if (label === undefined) return Result.succeed(state)
  return Result.succeed({
    ...withLane(state, EDGE, { tainted: false, sources: [], label: undefined }),
    past_sources: withSources(state.past_sources, sources.length === 0 ? UNKNOWN : sources)
  })
}

/** Of text whose events name no source. */
export const UNKNOWN: ReadonlyArray<Source> = ["memory"]

export const compactWindow = (state: SessionState, event: EventOf<"CompactionCommitted">): Folded => {
  const { lane, payload, rev } = event
  const { boundary_rev, delta, kept = [], signal_id, sources = [], split, words } = payload
  const memory = laneOf(state, lane)
  if (memory === undefined)
    return signal_id === undefined ? Result.fail(`no job runs on ${lane}`) : Result.succeed(state)
  // An order to compact ends in an event even where there was nothing to do.
  if (split?.trusted === true) return trusted(state, event)
  const isNothing = Object.keys(delta).length === 1 && split === undefined
  if (boundary_rev <= memory.boundary && signal_id !== undefined && isNothing) return Result.succeed(state)
  if (boundary_rev < memory.boundary) return Result.fail(`the window begins after ${memory.boundary} already`)
  if (boundary_rev >= rev) return Result.fail(`a compaction at ${rev} cannot reach ${boundary_rev}`)
  const refused = keptRefused(memory, boundary_rev, kept) ?? splitRefused(state, event)
  if (refused !== undefined) return Result.fail(refused)
  const rest = split?.rest === undefined ? {} : { rest: { text: split.rest, sources: memory.sources } }
  const label = memory.label === undefined ? {} : { label: labelAfter(memory.label, payload) }
  const compacted = withLane(state, lane, {
    boundary: boundary_rev,
    window: memory.window.filter((seen) => seen > boundary_rev || kept.includes(seen)),
    ...(sources.length === 0 ? label : withMixed(memory, sources, event)),
    summary: {
      ...applyDelta(summaryBefore(memory, split), delta),
      files: boundary_rev > memory.boundary ? memory.written : memory.summary.files,
      ...(words === undefined ? {} : { words: boundedWords(words) }),
      ...rest
    }
  })
  return Result.succeed(split?.ended === true && memory.label !== undefined ? unlabelled(compacted) : compacted)
}
