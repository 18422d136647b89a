/** The end of a session that another one follows: at a limit, or by the order of a person; and the beginning of the one that continues it. */
import type { EventDraft } from "#schema/Event.ts"
import { EDGE, type InboxId, SignalId } from "#schema/Ids.ts"
import type { Summary } from "#schema/Summary.ts"
import type { PendingReport, SessionState, Turn } from "#src/shared/session/State.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"
import { accept, type Command, type Decision, type Find, reject, type Situation } from "./Command.ts"
import { factsOf } from "./decideCores.ts"
import { endedWithLane } from "./decideSkills.ts"
import { leftOpen } from "./leftOpen.ts"
import { plainReport } from "./plainReport.ts"

/** Reports on jobs that the end of a session still makes, one message each, and the characters of each. */
const REPORTS_TOLD_MAX = 32
const REPORT_CHARS_MAX = 2000

type OpenTurn = Extract<Turn, { readonly kind: "turn" }>

/**
 * Whether the next session answers the message of a turn. It does so once: a message that had a session to itself, or that one
 * carried to the next, needs more than a session may spend, and would go from one to the next for ever.
 */
const isCarried = (turn: Turn | undefined, find: Find): turn is OpenTurn => {
  if (turn?.kind !== "turn" || turn.rev === 1) return false
  const message = find(turn.rev)
  return message?.event_type === "UserMsg" && message.payload.carried !== true
}

const notice = (text: string, inbox_id: InboxId | undefined): EventDraft => {
  const about = inbox_id === undefined ? {} : { in_reply_to: inbox_id }
  return { event_type: "AgentMessage", lane: EDGE, payload: { kind: "notice", text, ...about } }
}

/** The ends of jobs that nobody has heard of, each where its work was asked for. */
const untold = (reports: ReadonlyArray<PendingReport>, find: Find): ReadonlyArray<EventDraft> => {
  const told = reports.slice(0, REPORTS_TOLD_MAX).map((report) => {
    const { facts } = factsOf(report, find)
    const text = firstPart(plainReport(report, find(report.rev)), REPORT_CHARS_MAX)
    return notice(facts === undefined ? text : `${text}\n\n${facts}`, report.inbox_id)
  })
  const more = reports.length - told.length
  return more > 0
    ? [...told, notice(`${more} further reports on jobs are in the log of the session.`, undefined)]
    : told
}

const reply = ({ inbox_id }: OpenTurn, text: string, failed: "final" | "stopped"): EventDraft => ({
  event_type: "AgentMessage",
  lane: EDGE,
  payload: { kind: "reply", text, in_reply_to: inbox_id, failed }
})

/** The end of a turn that was set aside; the reply to the open one, which is before it, takes it up again. */
const setAside = (
  { edge: { parked } }: SessionState,
  reason: string,
  text: string,
  failed: "final" | "stopped"
): ReadonlyArray<EventDraft> => {
  if (parked?.turn.kind !== "turn") return []
  const closed = parked.calls.map(({ call_id }): EventDraft => ({
    event_type: "ToolResultCommitted",
    lane: EDGE,
    payload: { call_id, status: "cancelled", summary: reason, duration_ms: 0 }
  }))
  return [...closed, reply(parked.turn, text, failed)]
}

/** The message that ends the open turn, or tells of the end where none is open. */
const lastWords = (
  state: SessionState,
  text: string,
  failed: "final" | "stopped",
  find: Find
): ReadonlyArray<EventDraft> => {
  const { turn } = state.edge
  if (turn?.kind === "turn") return [reply(turn, text, failed)]
  if (turn?.kind !== "report") return []
  const { inbox_id } = turn.report
  return [
    {
      event_type: "AgentMessage",
      lane: EDGE,
      payload: {
        kind: "report",
        text: plainReport(turn.report, find(turn.report.rev)),
        ...(inbox_id === undefined ? {} : { in_reply_to: inbox_id }),
        ...factsOf(turn.report, find)
      }
    }
  ]
}

const CONTINUES = "This conversation continues in a new session, with a summary of what was said so far"

/** The words on the end of a session at a limit. */
const limitWords = (limit: string) => ({
  carried: `${sentence(limit)}. ${CONTINUES}; your message is answered there.`,
  idle: `${sentence(limit)}. ${CONTINUES}.`,
  alone: `I have to stop: ${limit}, and this message alone would need more than that. Ask for it in smaller steps; the limit is in config.json.`,
  aside: `I have to stop: ${limit}. This waited for a decision, so please send it again.`
})

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

const NEW_SESSION_WORDS = "I did not finish this, since a new conversation was started."

export const end = (
  state: SessionState,
  { by, reason, signal_id }: Extract<Command, { type: "End" }>,
  { find }: Situation
): Decision => {
  const { turn } = state.edge
  const carried = by === "budget" && isCarried(turn, find) ? turn.inbox_id : undefined
  const words = limitWords(reason)
  const failed = by === "budget" ? "final" : "stopped"
  const last = by === "budget" ? words.alone : NEW_SESSION_WORDS
  const [open, ...others] = state.reports
  const left = turn?.kind === "report" ? others : state.reports
  const unfinished = leftOpen(state, carried !== undefined, find)
  return accept(
    ...endedWithLane(EDGE, state.edge, reason),
    {
      event_type: "Cancelled",
      lane: EDGE,
      payload: {
        target: EDGE,
        by,
        reason,
        ...(signal_id === undefined ? {} : { signal_id: SignalId.make(signal_id) }),
        ...(carried === undefined ? {} : { carried }),
        ...(unfinished.length === 0 ? {} : { open: unfinished })
      }
    },
    ...(carried === undefined ? lastWords(state, last, failed, find) : []),
    ...setAside(state, reason, by === "budget" ? words.aside : NEW_SESSION_WORDS, failed),
    ...untold(left, find),
    ...(by === "user" || (turn?.kind === "turn" && carried === undefined)
      ? []
      : [notice(carried === undefined ? words.idle : words.carried, carried ?? open?.inbox_id)])
  )
}

/** The one event that an order for a new conversation ends in where nothing comes of it, and why. */
export const refuseNewSession = (
  { cores, ended }: SessionState,
  { signal_id }: Extract<Command, { type: "NewSession" }>
): Decision => {
  if (ended !== undefined) return reject("the session has ended")
  const names = [...cores.keys()].join(", ")
  return accept(
    {
      event_type: "Cancelled",
      lane: EDGE,
      payload: { signal_id: SignalId.make(signal_id), target: EDGE, by: "user", reason: "jobs_run", turn: 0 }
    },
    notice(
      `No new conversation was started, since a job began meanwhile: ${names}. Wait for its report, or send /new yes to end it.`,
      undefined
    )
  )
}

const listed = (title: string, entries: ReadonlyArray<string>): ReadonlyArray<string> =>
  entries.length === 0 ? [] : [`${title}:`, ...entries.map((entry) => `- ${entry}`)]

/** A summary as the session that continues begins with it. */
const summaryText = ({ decisions, facts, open_points, summary, title }: Summary): string =>
  [
    `Summary of the session before, which reached its limit; this one continues it: ${title}`,
    summary,
    ...listed("Decisions", decisions),
    ...listed("Open", open_points),
    ...listed("Facts", facts)
  ].join("\n")

export const continued = (
  { edge }: SessionState,
  { session_id, signal_id, sources, summary }: Extract<Command, { type: "Continue" }>
): EventDraft => ({
  event_type: "CompactionCommitted",
  lane: EDGE,
  payload: {
    signal_id,
    delta: { mode: "append", summary_update: summaryText(summary), add_references: [session_id] },
    boundary_rev: edge.boundary,
    ...(sources === undefined || sources.length === 0 ? {} : { sources })
  }
})
