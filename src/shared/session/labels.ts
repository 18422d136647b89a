/**
 * How a lane is labelled by text from outside, and when that ends: with the text. Everything that the lane says while such text is in its window
 * may repeat it, so that a label ends only when all of that has left; people's own words stay.
 */
import type { Source } from "#schema/Source.ts"
import { withSources } from "./sources.ts"
import type { EdgeLane, LaneMemory, SessionState } from "./State.ts"
import type { Label } from "./Label.ts"

/** How long text from outside stays in a window once nothing of its kind comes any more. */
export const LABEL_MS_MAX = 86_400_000

type Labelled = Pick<LaneMemory, "label" | "sources" | "tainted">

/** A lane after an event that brings text from outside. */
export const brought = (
  { label, sources }: Labelled,
  added: ReadonlyArray<Source>,
  { created_at, rev }: { readonly created_at: string; readonly rev: number }
): Labelled & { readonly label: Label } => ({
  tainted: true,
  sources: withSources(sources, added),
  label: { from_rev: label?.from_rev ?? rev, rev, at: created_at, mixed: label?.mixed ?? false }
})

/** A label as people are shown it: where the text is from, and when it leaves if no more of it comes. */
export const shownLabel = (lane: Labelled | undefined) =>
  lane?.label === undefined
    ? undefined
    : { sources: lane.sources, until: new Date(Date.parse(lane.label.at) + LABEL_MS_MAX).toISOString() }

/** Whether edge's next prompts show text from elsewhere than its window, so that its label cannot end. */
const isShownElsewhere = ({ cores, edge, reports }: SessionState, label: Label): boolean => {
  const { calls, parked, skill, turn } = edge
  if (calls.length > 0 || parked !== undefined || skill !== undefined || reports.length > 0) return true
  if (turn !== undefined && (turn.kind === "report" || label.rev >= turn.rev)) return true
  return [...cores.values()].some(({ tainted }) => tainted)
}

/** Whether a compaction up to a boundary that keeps these revisions and quotes nothing leaves edge without text from outside. */
export const endsLabel = (state: SessionState, boundary_rev: number, kept: ReadonlyArray<number>): boolean => {
  const { label, turn, window } = state.edge
  if (label === undefined || label.rev > boundary_rev || isShownElsewhere(state, label)) return false
  // The open turn's message came after all such text, and is the person's own.
  return window.every(
    (rev) => rev < label.from_rev || rev === turn?.rev || (rev <= boundary_rev && !kept.includes(rev))
  )
}

/** Whether the time of the text from outside in edge's window is over. */
export const hasExpired = ({ label }: EdgeLane, now_ms: number): boolean =>
  label !== undefined && now_ms >= Date.parse(label.at) + LABEL_MS_MAX

/** Whether that text is to leave with the next compaction: one has summed it up before, or its time is over. */
export const isDue = (edge: EdgeLane, now_ms: number): boolean =>
  edge.label !== undefined && (edge.label.rev <= edge.boundary || hasExpired(edge, now_ms))

/** The newest revision that leaves with the end of edge's label: the open turn's message stays where the person said it. */
export const endOfLabel = ({ edge: { turn } }: SessionState, limit_rev: number): number =>
  turn === undefined ? limit_rev : Math.min(limit_rev, turn.rev - 1)

/** Whether all of it could leave just now. */
export const mayEnd = (state: SessionState): boolean =>
  state.edge.label !== undefined && !isShownElsewhere(state, state.edge.label)
