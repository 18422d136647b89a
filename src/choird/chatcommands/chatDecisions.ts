/**
 * Decisions about approvals from a chat (D16, E7): whether this person may decide, which approval is meant, and the answer in
 * words. They take effect at once, whatever the agent is doing.
 */
import { Effect, Option } from "effect"
import type { GrantScope } from "#schema/Grant.ts"
import { GRANTED_TEXT } from "#src/choird/approvals/grantRows.ts"
import { EDGE, type AgentId } from "#schema/Ids.ts"
import { boundDms } from "#schema/ResourceBindings.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import type { ApprovalRow } from "#src/choird/approvals/approvalRows.ts"
import { isConfirmation } from "#src/choird/approvals/approvalRows.ts"
import type { ApprovalRefused } from "#src/choird/approvals/ApprovalRefused.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { resolutionOf } from "#src/choird/approvals/approvalStatus.ts"
import { APPROVAL_SUMMARY_CHARS_MAX, fitsChat, hash8 } from "#src/choird/approvals/approvalText.ts"
import { byWhom } from "#src/choird/approvals/card.ts"
import { isAdmin, mayDecide } from "#src/choird/approvals/decider.ts"
import { shownText } from "#src/choird/approvals/requestTypes.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { waitsForPerson } from "#src/shared/session/parkTurn.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import type { Answer } from "./Answer.ts"
import type { Speaker } from "./Speaker.ts"
import type { Decide } from "./readCommand.ts"
import { CHARACTER_UNITS_MAX } from "#src/shared/text/placeToCut.ts"

/** The grant that a person gives along, where a button says so. */
interface Given {
  readonly grant?: GrantScope
}

/** The words of a request that was asked in another chat. */
const ELSEWHERE = "asked in another chat"
/** Waiting approvals that one answer lists. */
const LISTED_MAX = 10

const notice = (text: string): Answer => ({ kind: "notice", text })
const refusal = (text: string): Answer => ({ kind: "refusal", text })

const oldestFirst = (rows: ReadonlyArray<ApprovalRow>) => rows.toReversed()

/** True if a summary is cut, so that nobody should approve after reading only that. */
const isCut = ({ summary }: ApprovalRow): boolean =>
  summary.length >= APPROVAL_SUMMARY_CHARS_MAX ||
  // The cut may be before a character of several units.
  (summary.endsWith("…") && summary.length >= APPROVAL_SUMMARY_CHARS_MAX - CHARACTER_UNITS_MAX)

/** The pointer to all of a request that is cut here. */
const seeAll = ({ approval_id }: ApprovalRow): string =>
  `see the request above, or choirctl approval show ${approval_id}`

/** The instructions to decide the only waiting request. */
const toDecide = (row: ApprovalRow): string =>
  `To decide${isCut(row) ? `, ${seeAll(row)}` : `: /approve ${row.approval_id} or /reject ${row.approval_id}`}`

/** A line for each waiting approval; one of another agent than that of the chat names it. */
const listed = (rows: ReadonlyArray<ApprovalRow>, own: AgentId): ReadonlyArray<string> => [
  ...rows.slice(0, LISTED_MAX).map((row) => {
    const whose = row.agent_id === own ? "" : `, ${row.agent_id}`
    return `${row.approval_id}${whose}: ${row.summary}${isCut(row) ? ` (${seeAll(row)})` : ""}`
  }),
  ...(rows.length > LISTED_MAX ? [`and ${rows.length - LISTED_MAX} more: choirctl approval list`] : [])
]

const waitingText = (rows: ReadonlyArray<ApprovalRow>, own: AgentId): string =>
  rows.length === 0
    ? "Nothing is waiting for your approval."
    : ["Waiting for your approval:", ...listed(rows, own)].join("\n")

/** The list of waiting approvals, of which the number that the person sends next names one. */
const which = (
  rows: ReadonlyArray<ApprovalRow>,
  own: AgentId,
  resolution: Decide["resolution"],
  kind: Answer["kind"]
): Answer => {
  if (rows.length === 0) return { kind, text: waitingText(rows, own) }
  const words = resolution === "approved" ? "approve" : "reject"
  const options = rows
    .slice(0, LISTED_MAX)
    .map(({ approval_id, summary }) => ({ number: approval_id, value: approval_id, label: summary }))
  return { kind, text: `${waitingText(rows, own)}\nSend the number to ${words} it.`, choices: { words, options } }
}

const DONE = { approved: "Approved", rejected: "Rejected" } as const

const decidedAnswer = (row: ApprovalRow, resolution: "approved" | "rejected", before: string): Answer => {
  const more = resolution === "approved" && !isConfirmation(row) ? " You will get a message with the result." : before
  return notice(`${DONE[resolution]} ${row.approval_id}: ${row.summary}.${more}`)
}

/** The requests to decide before an approved call runs: its turn was set aside, and the turn ahead of it waits for a person too. */
const decidedBefore = ({ edge }: SessionState, row: ApprovalRow, waiting: ReadonlyArray<ApprovalRow>): string => {
  const isAside = edge.parked?.calls.some(({ call_id }) => call_id === row.call_id) === true
  if (!isAside || !waitsForPerson(edge)) return ""
  const first = waiting.filter((other) => edge.calls.some(({ call_id }) => call_id === other.call_id))
  if (first.length === 0) return ""
  const chat = edge.turn?.kind === "turn" ? ` in the chat ${edge.turn.dm}` : ""
  const which = first.map(({ approval_id }) => approval_id).join(" and ")
  const are = first.length === 1 ? `request ${which}${chat} is` : `requests ${which}${chat} are`
  return ` It will run after ${are} decided.`
}

/** `gateway:bot/phone` as the people in the chat know it. */
const deciderWords = (resolved_by: string | null, speaker: Speaker): string =>
  resolved_by === decider(speaker) ? " by you" : byWhom(resolved_by)

/** The decider, for the row and the audit: in a group the person who wrote, never the group. */
const decider = ({ gateway, writer }: Pick<Speaker, "gateway" | "writer">) => `gateway:${gateway}/${writer}`

/** The reason why a decision did not count. */
const refusedText = (row: ApprovalRow, { kind, reason }: ApprovalRefused, speaker: Speaker): string => {
  const { approval_id, resolved_by, status, summary } = row
  switch (kind) {
    case "ALREADY_DECIDED":
      return `Approval ${approval_id} was already ${resolutionOf(status) ?? "decided"}${deciderWords(resolved_by, speaker)}: ${summary}.`
    case "EXPIRED":
      return `Approval ${approval_id} has expired and nothing was done. Ask ${row.agent_id} again if you still want it.`
    case "SESSION_ENDED":
      return `The session that asked for approval ${approval_id} has ended and nothing was done. Ask ${row.agent_id} again.`
    default:
      return `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`
  }
}

/** Whether a person speaks in a group, whose DM is not their own. */
const isInGroup = ({ dm, writer }: Pick<Speaker, "dm" | "writer">) => dm !== writer

/** Finds the approvals of a speaker's agent. */
const makeFinder = Effect.gen(function* () {
  const approvals = yield* Approvals
  const config = yield* ConfigStore
  const events = yield* EventStore

  const waitingFor = (agent_id: AgentId) => Effect.map(approvals.list({ agent_id, all: false }), oldestFirst)

  /**
   * The requests that wait, as a speaker may see them: a request that was asked in another chat is there without its words, but for an admin in
   * private. In a group others read along.
   */
  const waitingHere = Effect.fnUntraced(function* (speaker: Pick<Speaker, "agent_id" | "dm" | "writer">) {
    const rows = yield* waitingFor(speaker.agent_id)
    if (rows.length === 0) return rows
    if (!isInGroup(speaker) && isAdmin((yield* config.current).config, speaker.writer)) return rows
    const here = yield* approvals.askedAt(speaker.dm)
    return rows.map((row) => (here.has(row.approval_id) ? row : { ...row, summary: ELSEWHERE }))
  })

  /**
   * To a person who is not an admin an approval of another agent is as unknown as one that does not exist, and to everybody in a group, where others
   * read along.
   */
  const find = Effect.fnUntraced(function* (approval_id: string, speaker: Pick<Speaker, "agent_id" | "dm" | "writer">) {
    const found = yield* Effect.result(approvals.get(approval_id))
    if (found._tag === "Failure") return undefined
    if (found.success.agent_id === speaker.agent_id) return found.success
    return !isInGroup(speaker) && isAdmin((yield* config.current).config, speaker.writer) ? found.success : undefined
  })

  /** The time when an approved call runs, for the person who approved it. */
  const whenItRuns = Effect.fnUntraced(function* (row: ApprovalRow) {
    if (row.status !== "approved" || row.lane !== EDGE || !isConfirmation(row)) return ""
    const state = yield* Effect.option(databaseDefect(events.state(row.session_id)))
    return Option.isNone(state) ? "" : decidedBefore(state.value, row, yield* waitingFor(row.agent_id))
  })

  /** The requests that an admin in private may mean: those of the agent there, or else of every other one. */
  const waitingAnywhere = Effect.fnUntraced(function* (speaker: Speaker) {
    const own = yield* waitingHere(speaker)
    if (own.length > 0 || !speaker.admin || isInGroup(speaker)) return own
    return oldestFirst(yield* approvals.list({ all: false }))
  })

  return { waitingHere, waitingAnywhere, find, whenItRuns }
})

/** Finds out why a person cannot decide here, and audits it. */
const makeHindrance = Effect.gen(function* () {
  const approvals = yield* Approvals
  const audit = yield* Audit
  const config = yield* ConfigStore
  const lifecycle = yield* Lifecycle

  /** Why this person cannot decide it here, or undefined. An admin can; others what was asked in their own chat, or in this group by an agent of theirs. */
  const whyNot = Effect.fnUntraced(function* (
    { dm, writer }: Pick<Speaker, "dm" | "writer">,
    row: Pick<ApprovalRow, "agent_id" | "approval_id" | "request_type">,
    { on_card }: { readonly on_card?: true }
  ) {
    const { config: running } = yield* config.current
    if (!mayDecide(running, writer, row)) return "it is about the configuration, which is for an admin"
    if (isAdmin(running, writer)) return undefined
    if (isInGroup({ dm, writer })) {
      const view = (yield* lifecycle.list).find(({ agent_id }) => agent_id === row.agent_id)
      const isBound = view !== undefined && view.bindings !== null && boundDms(view.bindings).includes(writer)
      if (!isBound) return `${row.agent_id} does not talk with you alone`
    }
    // A card is seen by those alone who are in its chat.
    if (on_card === true) return undefined
    const places = yield* Effect.all([approvals.askedAt(dm), approvals.askedAt(writer)])
    return places.some((asked) => asked.has(row.approval_id)) ? undefined : "it was asked in another chat"
  })

  /** Whether this person can have read all of a request: in one message, or in the file that went before its card to this chat or to theirs. */
  const wasShown = Effect.fnUntraced(function* (row: ApprovalRow, { dm, writer }: Pick<Speaker, "dm" | "writer">) {
    const document = yield* approvals.document(row.approval_id)
    return document?.dm === dm || document?.dm === writer ? document.isDelivered : fitsChat(shownText(row))
  })

  const refuse = Effect.fnUntraced(function* (
    kind: string,
    text: string,
    { approval_id, resolution }: Decide,
    speaker: Speaker
  ) {
    yield* audit.record({
      who: decider(speaker),
      action: resolution === "approved" ? "approval.approve" : "approval.reject",
      agent_id: speaker.agent_id,
      detail: { refused: kind, ...(approval_id === undefined ? {} : { approval_id }) }
    })
    return refusal(text)
  })

  /** The reason why this person cannot decide it here. */
  const hindrance = Effect.fnUntraced(function* (row: ApprovalRow, command: Decide, speaker: Speaker) {
    const { approval_id } = row
    const why = yield* whyNot(speaker, row, command)
    if (why !== undefined) {
      const text = `You may not decide this here, because ${why}. An admin can decide it, as approval ${approval_id}.`
      return yield* refuse("NOT_ADMIN", text, { ...command, approval_id }, speaker)
    }
    if (row.status !== "pending" || command.resolution !== "approved" || (yield* wasShown(row, speaker)))
      return undefined
    const text = `Approval ${approval_id} is too long for a chat, so only a part of it was shown here. Read all of it with choirctl approval show ${approval_id} and approve it there, or send /reject ${approval_id}.`
    return yield* refuse("NOT_SHOWN", text, command, speaker)
  })

  return { hindrance, whyNot, refuse }
})

export const makeChatDecisions = Effect.gen(function* () {
  const approvals = yield* Approvals
  const { find, waitingAnywhere, waitingHere, whenItRuns } = yield* makeFinder
  const { hindrance, refuse, whyNot } = yield* makeHindrance

  /** The approval that the person means, or the answer if that is not clear. */
  const target = Effect.fnUntraced(function* (command: Decide, speaker: Speaker) {
    const { approval_id } = command
    const { agent_id } = speaker
    const waiting = yield* waitingAnywhere(speaker)
    if (command.astray === true) {
      const { text, ...list } = which(waiting, agent_id, command.resolution, "refusal")
      return { answer: { ...list, text: `The message that you replied to asks for no approval. ${text}` } }
    }
    if (approval_id === undefined) {
      // A person who gives no number means what they have seen, not what is still on its way.
      const [seen, ...more] = yield* approvals.delivered(agent_id)
      const row = more.length === 0 ? waiting.find((one) => one.approval_id === seen) : undefined
      return row === undefined ? { answer: which(waiting, agent_id, command.resolution, "notice") } : { row }
    }
    const row = yield* find(approval_id, speaker)
    if (row !== undefined) return { row }
    const text = `There is no approval ${approval_id}. ${waitingText(waiting, agent_id)}`
    return { answer: yield* refuse("UNKNOWN_APPROVAL", text, command, speaker) }
  })

  const decide = Effect.fn("chatDecisions.decide")(function* (command: Decide & Given, speaker: Speaker) {
    const { dm } = speaker
    const { reason, resolution } = command
    const request_id = `${speaker.gateway}:${speaker.request_id}`
    const earlier = yield* approvals.decidedBy(request_id)
    if (earlier !== undefined) return decidedAnswer(earlier, resolution, yield* whenItRuns(earlier))
    const { answer, row } = yield* target(command, speaker)
    if (row === undefined) return answer
    const hindered = yield* hindrance(row, command, speaker)
    if (hindered !== undefined) return hindered
    const { approval_id } = row
    // An approval's payload never changes: what its messages showed is what its row holds.
    const decision = { approval_id, resolution, hash8: hash8(row.hash), reason, request_id, dm, who: decider(speaker) }
    const { grant } = command
    const more = { only: command.approval_id === undefined, ...(grant === undefined ? {} : { grant }) }
    const decided = yield* Effect.result(approvals.decide({ ...decision, ...more }))
    if (decided._tag === "Success") {
      const before = yield* whenItRuns(decided.success)
      return decidedAnswer(decided.success, resolution, grant === undefined ? before : ` ${GRANTED_TEXT}${before}`)
    }
    if (decided.failure.kind === "NOT_ALONE")
      return which(yield* waitingHere(speaker), speaker.agent_id, resolution, "refusal")
    const now = (yield* find(approval_id, speaker)) ?? row
    return refusal(refusedText(now, decided.failure, speaker))
  })

  /** The approvals of the agent that wait for a person, as `/status` lists them, and whether edge itself waits. */
  const waiting = Effect.fn("chatDecisions.waiting")(function* (speaker: Speaker) {
    const rows = yield* waitingHere(speaker)
    const [first, ...more] = rows
    const may = first !== undefined && (yield* whyNot(speaker, first, {})) === undefined
    const lines =
      first === undefined
        ? []
        : more.length === 0
          ? [
              `It is waiting for ${may ? "your approval" : "approval"} (number ${first.approval_id}): ${first.summary}.`,
              ...(may ? [toDecide(first)] : [])
            ]
          : [
              `${rows.length} requests are waiting for ${may ? "your approval" : "approval"}:`,
              ...listed(rows, speaker.agent_id)
            ]
    return { lines, edge: rows.some((row) => isConfirmation(row) && row.lane === EDGE) }
  })

  /** The waiting approvals: for an admin in private those of every agent, else those of the speaker's own. */
  const list = Effect.fn("chatDecisions.list")(function* (speaker: Speaker) {
    const { admin, agent_id } = speaker
    if (!admin || isInGroup(speaker)) return notice(waitingText(yield* waitingHere(speaker), agent_id))
    const rows = oldestFirst(yield* approvals.list({ all: false }))
    const others = rows.filter((row) => row.agent_id !== agent_id)
    const own = rows.filter((row) => row.agent_id === agent_id)
    if (others.length === 0) return notice(waitingText(own, agent_id))
    const first = own.length === 0 ? [] : [waitingText(own, agent_id)]
    return notice([...first, "From other agents:", ...listed(others, agent_id)].join("\n"))
  })

  return { decide, list, waiting }
})
