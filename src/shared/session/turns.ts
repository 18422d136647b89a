/** The turn of edge that an order means, and what ending one before its answer does to a state. */
import { Result } from "effect"
import type { EventOf } from "#schema/Event.ts"
import { EDGE, type InboxId } from "#schema/Ids.ts"
import type { TurnName } from "#schema/Signal.ts"
import { openReport } from "./calls.ts"
import { type Folded, move, withEdge } from "./lanes.ts"
import { resumeTurn } from "./parkTurn.ts"
import type { ActiveSkill, PendingReport, SessionState } from "./State.ts"

/** The report that edge makes, or is about to: a report turn is open only from its first output, and its model is asked before. */
export const nextReport = ({ edge, reports }: SessionState): PendingReport | undefined => {
  if (edge.turn !== undefined) return edge.turn.kind === "report" ? edge.turn.report : undefined
  return edge.state === "EDGE_IDLE" ? reports[0] : undefined
}

/** The turn that edge works on, or `undefined` between turns. A report turn is open before its first event (see `openReport`). */
const openTurn = (state: SessionState): TurnName | undefined => {
  const { turn } = state.edge
  if (turn?.kind === "turn") return { inbox_id: turn.inbox_id }
  const report = nextReport(state)
  return report === undefined ? undefined : { report_rev: report.rev }
}

/**
 * The turn that an order without a name means: the open one, or the one that the oldest message which waits is about to begin. `next` was
 * asked for before the state, which has every message that is not waiting any more.
 */
export const turnToStop = (state: SessionState, next: InboxId | undefined): TurnName | undefined => {
  if (state.ended !== undefined) return undefined
  const waits = next !== undefined && BigInt(next) > state.last_inbox_id ? { inbox_id: next } : undefined
  const skill = skillToEnd(state)
  return openTurn(state) ?? waits ?? (skill === undefined ? undefined : { report_rev: skill.started_rev })
}

/** Edge's skill while no turn is open, which an order to stop ends. It is named by the revision at which it began. */
export const skillToEnd = ({ edge, ended }: SessionState): ActiveSkill | undefined =>
  ended === undefined && edge.turn === undefined && edge.state === "EDGE_IDLE" ? edge.skill : undefined

/** The revision that names the open turn in events. */
const openRev = (state: SessionState): number | undefined => {
  const { turn } = state.edge
  return turn?.kind === "turn" ? turn.rev : nextReport(state)?.rev
}

/**
 * The place of the turn that an order names: it is open, it has not begun or was set aside, or it is over. A turn whose answer stands in
 * the log is over, since that answer goes out as it is. `isCorrecting` says that the words in the log are not an answer: the model is asked
 * for them again.
 */
export const findTurn = (
  state: SessionState,
  name: TurnName,
  isCorrecting: boolean
): { readonly place: "open"; readonly rev: number } | { readonly place: "later" | "over" } => {
  if (state.ended !== undefined) return { place: "over" }
  const open = openTurn(state)
  const isOpen =
    "inbox_id" in name
      ? open !== undefined && "inbox_id" in open && open.inbox_id === name.inbox_id
      : open !== undefined && "report_rev" in open && open.report_rev === name.report_rev
  const rev = openRev(state)
  if (isOpen && rev !== undefined)
    return state.edge.state === "EDGE_FINALIZING" && !isCorrecting ? { place: "over" } : { place: "open", rev }
  const aside = state.edge.parked?.turn
  const waits =
    "inbox_id" in name
      ? BigInt(name.inbox_id) > state.last_inbox_id || (aside?.kind === "turn" && aside.inbox_id === name.inbox_id)
      : state.reports.some((report) => report.rev === name.report_rev)
  return { place: waits ? "later" : "over" }
}

/** The end of a turn by an order. Its calls are closed before, and its answer is the next message. */
export const turnCancelled = (state: SessionState, turn: number, { rev }: EventOf<"Cancelled">): Folded => {
  if (turn === 0) return Result.succeed(state)
  if (openRev(state) !== turn) return Result.fail(`no turn about revision ${turn} is open`)
  if (state.edge.calls.length > 0) return Result.fail("calls of the turn are still open")
  const opened = state.edge.turn === undefined ? openReport(state, EDGE, rev) : Result.succeed(state)
  return Result.flatMap(opened, (ready) => move(ready, EDGE, "Cancelled.turn"))
}

/** The state of a session that has ended, without the turn whose message the next session answers. */
export const withoutCarried = (state: SessionState, carried: InboxId | undefined): Folded => {
  if (carried === undefined) return Result.succeed(state)
  const { calls, turn } = state.edge
  if (turn?.kind !== "turn" || turn.inbox_id !== carried) return Result.fail(`the message ${carried} is not open`)
  if (calls.length > 0) return Result.fail("calls of the turn are still open")
  return Result.succeed({ ...resumeTurn(withEdge(state, { turn: undefined, step: 0, output_rev: 0 })), carried })
}
