/** The end of a turn by an order of the user's: its calls, the order and the turn's one answer, in one batch. */
import type { EventDraft } from "#schema/Event.ts"
import { EDGE, SignalId } from "#schema/Ids.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { findTurn, skillToEnd } from "#src/shared/session/turns.ts"
import { closingCall, endOfCall } from "./decideCalls.ts"
import { endedWithLane } from "./decideSkills.ts"
import { isCorrecting } from "./finalWords.ts"
import { factsOf } from "./decideCores.ts"
import { accept, type Decision, type Command, type Find, type Situation } from "./Command.ts"

/** Why its calls and its skill end, and what the event says. */
export const TURN_STOPPED = "the user stopped the turn"

const SKILL_STOPPED = "the user ended the skill"

/** Jobs are not part of the turn that started them, so the person who stops the turn learns that they run. */
const runningJobsText = ({ cores }: SessionState): string => {
  const [first, ...others] = cores.keys()
  if (first === undefined) return ""
  return others.length === 0
    ? ` The job ${first} keeps running; /cancel ${first} ends it.`
    : ` These jobs keep running: ${[first, ...others].join(", ")}. /cancel NAME ends one.`
}

const stoppedText = (state: SessionState, report: string | undefined): string => {
  const { skill, turn } = state.edge
  const untold = turn?.kind === "turn" || report === undefined ? "" : ` ${report}`
  const ended = skill === undefined ? "" : ` The skill ${skill.name} ended with it.`
  return `Stopped.${untold}${ended}${runningJobsText(state)}`
}

/** The turn's one answer. */
const lastWord = (state: SessionState, report: string | undefined, find: Find): EventDraft => {
  const { turn } = state.edge
  const text = stoppedText(state, report)
  if (turn?.kind === "turn")
    return {
      event_type: "AgentMessage",
      lane: EDGE,
      payload: { kind: "reply", text, in_reply_to: turn.inbox_id, failed: "stopped" }
    }
  const owed = turn?.report ?? state.reports[0]
  const in_reply_to = owed?.inbox_id === undefined ? {} : { in_reply_to: owed.inbox_id }
  const facts = factsOf(owed, find)
  return { event_type: "AgentMessage", lane: EDGE, payload: { kind: "report", text, ...in_reply_to, ...facts } }
}

/**
 * The end of a turn that was set aside: once the user stops the agent's work, none of its calls may run on a later approval. The answer
 * to the open turn, which is before it, takes it up again.
 */
const asideStopped = (
  { edge: { parked } }: SessionState,
  report: string | undefined,
  find: Find
): ReadonlyArray<EventDraft> => {
  if (parked === undefined) return []
  const { calls, turn } = parked
  const rev = turn.kind === "turn" ? turn.rev : turn.report.rev
  const inbox_id = turn.kind === "turn" ? turn.inbox_id : turn.report.inbox_id
  const in_reply_to = inbox_id === undefined ? {} : { in_reply_to: inbox_id }
  const text = turn.kind === "turn" || report === undefined ? "Stopped." : `Stopped. ${report}`
  return [
    ...calls.map((call): EventDraft => {
      const { call_id, result } = closingCall(EDGE, call, TURN_STOPPED)
      return { event_type: "ToolResultCommitted", lane: EDGE, payload: { call_id, ...result } }
    }),
    { event_type: "Cancelled", lane: EDGE, payload: { target: EDGE, by: "user", reason: TURN_STOPPED, turn: rev } },
    {
      event_type: "AgentMessage",
      lane: EDGE,
      payload:
        turn.kind === "turn"
          ? { kind: "reply", text, ...in_reply_to, failed: "stopped" }
          : { kind: "report", text, ...in_reply_to, ...factsOf(turn.report, find) }
    }
  ]
}

export const stopTurn = (
  state: SessionState,
  { report, signal_id, turn }: Extract<Command, { type: "StopTurn" }>,
  situation: Situation
): Decision => {
  const { find } = situation
  const signal = { signal_id: SignalId.make(signal_id), target: EDGE, by: "user" } as const
  const found = findTurn(state, turn, isCorrecting(state, find))
  const idle = skillToEnd(state)
  if (idle !== undefined && "report_rev" in turn && turn.report_rev === idle.started_rev)
    return accept(
      ...endedWithLane(EDGE, state.edge, SKILL_STOPPED),
      { event_type: "Cancelled", lane: EDGE, payload: { ...signal, reason: SKILL_STOPPED, turn: 0 } },
      {
        event_type: "AgentMessage",
        lane: EDGE,
        payload: { kind: "notice", text: `Stopped. The skill ${idle.name} ended.${runningJobsText(state)}` }
      }
    )
  if (found.place !== "open")
    return accept({
      event_type: "Cancelled",
      lane: EDGE,
      payload: { ...signal, reason: "no_such_turn", turn: 0 }
    })
  return accept(
    ...state.edge.calls.flatMap((call) => endOfCall(state, closingCall(EDGE, call, TURN_STOPPED), situation)),
    ...endedWithLane(EDGE, state.edge, TURN_STOPPED),
    { event_type: "Cancelled", lane: EDGE, payload: { ...signal, reason: TURN_STOPPED, turn: found.rev } },
    lastWord(state, report, find),
    ...asideStopped(state, report, find)
  )
}
