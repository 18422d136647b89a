/** The messages about an approval at the DM where the agent's work was asked for, within the transaction of its row. */
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { Config } from "#schema/Config.ts"
import { type InboxId, jobOf, ResourceName } from "#schema/Ids.ts"
import { insertOutbox, type OutboxMessage } from "#src/choird/queues/Outbox.ts"
import { type Place, unaskedPlace } from "#src/choird/queues/unaskedPlace.ts"
import { rowId } from "#src/choird/database/rowId.ts"
import { traitsOf } from "#src/shared/config/channelTraits.ts"
import { zoneOf } from "#src/shared/config/people.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import type { ApprovalRow } from "./approvalRows.ts"
import { adminDecidesText, type Asking, askingText } from "./approvalText.ts"
import { CARD_FACTS_CHARS_MAX, type Card, cardDigits, cardOf, decidedCard, documentName } from "./card.ts"
import { cardSource } from "./cardRows.ts"
import { briefText, grantOfRow, shownText } from "./requestTypes.ts"
import { isAdmin, mayDecide } from "./decider.ts"

interface Asked extends Place {
  readonly in_reply_to: InboxId | null
}

const sourceOf = ({ approval_id }: ApprovalRow) => cardSource(approval_id)

/** The source of the file that holds all of a request. */
export const documentSource = (approval_id: string) => `approval/${approval_id}/document`

/** The source of the message that tells the person who asked that an admin decides. */
const askerSource = (row: ApprovalRow) => `${sourceOf(row)}/asker`

/** The agent and the lane that ask, and for what. */
type Asker = Pick<ApprovalRow, "agent_id" | "lane" | "request_type">

/** The message that the lane of an approval works for. */
const askedIn = ({ cores, edge }: SessionState, { lane }: Asker): InboxId | undefined => {
  const job = jobOf(lane)
  if (job !== undefined) return cores.get(job)?.inbox_id
  return edge.turn?.kind === "turn" ? edge.turn.inbox_id : edge.turn?.report.inbox_id
}

/** The place of the inbox row; else where what nobody asked for goes. */
const placeOf = Effect.fnUntraced(function* (
  config: Config,
  asker: Asker,
  { dms, state }: { readonly state: SessionState; readonly dms: ReadonlyArray<ResourceName> }
) {
  const sql = yield* SqlClient.SqlClient
  const inbox_id = askedIn(state, asker)
  const [place] = yield* sql<Asked>`SELECT gateway, dm, inbox_id::text AS in_reply_to FROM choir_control.inbox
    WHERE agent_id = ${asker.agent_id} AND inbox_id = ${rowId(inbox_id ?? "") ?? 0n}`
  if (place !== undefined) return place
  const elsewhere = yield* unaskedPlace(config, asker.agent_id, dms)
  return elsewhere === undefined ? undefined : ({ ...elsewhere, in_reply_to: null } satisfies Asked)
})

/**
 * Where a request is decided, and, where nobody there may decide it, the place of the person who asked: then the first is an admin's, best of
 * those bound to the agent. Where no DM is an admin's, it is asked at the person's place with the words for an operator.
 */
const placesOf = Effect.fnUntraced(function* (
  config: Config,
  asker: Asker,
  facts: { readonly state: SessionState; readonly dms: ReadonlyArray<ResourceName> }
) {
  const place = yield* placeOf(config, asker, facts)
  if (place === undefined || mayDecide(config, place.dm, asker)) return { place }
  const bound = facts.dms.filter((dm) => isAdmin(config, dm))
  const all = Object.keys(config.dms)
    .map((name) => ResourceName.make(name))
    .filter((dm) => isAdmin(config, dm))
  const admins = yield* unaskedPlace(config, asker.agent_id, bound.length > 0 ? bound : all)
  return admins === undefined ? { place } : { place: { ...admins, in_reply_to: null } satisfies Asked, told: place }
})

/** Messages about approvals of an agent that wait at a DM and that no person decided; a further request there is refused. */
export const APPROVALS_UNREAD_MAX = 100

/**
 * How many of these wait where an approval would be asked for. What a person decided counts no more, also where they decide with choirctl and
 * never open the chat: an agent alone cannot make more of it.
 */
export const countUnread = Effect.fnUntraced(function* (
  config: Config,
  asker: Asker,
  facts: { readonly state: SessionState; readonly dms: ReadonlyArray<ResourceName> }
) {
  const { place } = yield* placesOf(config, asker, facts)
  if (place === undefined) return 0
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly count: number }>`SELECT count(*)::int AS count FROM choir_control.outbox AS o
    WHERE o.agent_id = ${asker.agent_id} AND o.dm = ${place.dm} AND o.delivered_at IS NULL AND o.failed_at IS NULL
      AND o.source = 'choird' AND starts_with(o.source_id, 'approval/')
      AND EXISTS (SELECT 1 FROM choir_control.pending_approvals AS a
        WHERE a.id = split_part(o.source_id, '/', 2)::bigint AND (a.resolved_by IS NULL OR a.resolved_by = 'choird' OR starts_with(a.resolved_by, 'agent:')))`
  return row?.count ?? 0
})

/** The grants that a person at this DM may give along with the approval: of a call, and for an agent as a whole only by an admin. */
const offerOf = Effect.fnUntraced(function* (
  config: Config,
  dm: ResourceName,
  row: ApprovalRow,
  freeOf: (tool: string) => ReadonlyArray<string>
) {
  const words = grantOfRow(row, freeOf)
  if (words === undefined) return undefined
  const now_ms = yield* Clock.currentTimeMillis
  return { words, job: row.job_id !== null, agent: isAdmin(config, dm), now_ms, zone: zoneOf(config, dm) }
})

/** Asks once; returns the DMs that have something new. */
export const tellAsked = Effect.fnUntraced(function* (
  config: Config,
  row: ApprovalRow,
  facts: {
    readonly text: string
    readonly state: SessionState
    readonly dms: ReadonlyArray<ResourceName>
    /** The free arguments of a tool, by the image that asks. */
    freeOf(tool: string): ReadonlyArray<string>
  }
) {
  const { place, told } = yield* placesOf(config, row, facts)
  if (place === undefined) {
    yield* Effect.logWarning(
      `nobody was asked about approval ${row.approval_id}: there is no DM ${facts.dms.join(" or ")}`
    )
    return []
  }
  const { agent_id, session_id } = row
  const asking: Asking = {
    ...row,
    text: facts.text,
    brief: briefText(row, CARD_FACTS_CHARS_MAX, facts.freeOf),
    may_decide: mayDecide(config, place.dm, row),
    zone: zoneOf(config, place.dm)
  }
  const hasButtons = traitsOf(config, place.gateway).buttons && asking.may_decide
  const offer = yield* offerOf(config, place.dm, row, facts.freeOf)
  const card: Card = hasButtons ? cardOf(asking, cardDigits(), offer) : { text: askingText(asking), form: {} }
  const message = { ...place, source: "choird", agent_id, session_id, kind: "notice" } as const
  const document: OutboxMessage | undefined =
    card.caption === undefined
      ? undefined
      : {
          ...message,
          source_id: documentSource(row.approval_id),
          text: card.caption,
          form: { document: { approval_id: row.approval_id, name: documentName(row) } }
        }
  const messages = [
    ...(document === undefined ? [] : [document]),
    { ...message, source_id: sourceOf(row), text: card.text, form: hasButtons ? card.form : null },
    ...(told === undefined
      ? []
      : [{ ...message, ...told, source_id: askerSource(row), text: adminDecidesText(row), form: null }])
  ]
  yield* insertOutbox(config, messages)
  return told === undefined ? [place.dm] : [place.dm, told.dm]
})

/** Puts the outcome on the card of an approval, whose buttons go; returns the DM of the card, if there is one with buttons. */
export const editCard = Effect.fnUntraced(function* (
  config: Config,
  row: ApprovalRow,
  what: "card" | "card-ended",
  outcome: string
) {
  const sql = yield* SqlClient.SqlClient
  const [place] = yield* sql<Asked>`SELECT gateway, dm, in_reply_to::text FROM choir_control.outbox
    WHERE source = 'choird' AND source_id = ${sourceOf(row)} AND form -> 'buttons' IS NOT NULL`
  if (place === undefined) return undefined
  const { agent_id, session_id } = row
  const message: OutboxMessage = {
    ...place,
    source: "choird",
    source_id: `${sourceOf(row)}/${what}`,
    agent_id,
    session_id,
    kind: "notice",
    text: decidedCard(
      { ...row, text: shownText(row), brief: briefText(row, CARD_FACTS_CHARS_MAX, () => []), may_decide: true },
      outcome
    ),
    form: { edits: sourceOf(row) }
  }
  yield* insertOutbox(config, [message])
  return place.dm
})

/**
 * Sends one more message about an approval, once, where it was asked, and of its outcome also to the person who asked for it, unless they hear of it in
 * that DM anyway; returns the DMs. `what` distinguishes the messages.
 */
export const tellMore = Effect.fnUntraced(function* (
  config: Config,
  row: ApprovalRow,
  what: "expired" | "decided" | "ended" | "rehearsed",
  text: string,
  heard_in?: ResourceName
) {
  const sql = yield* SqlClient.SqlClient
  const sources = what === "rehearsed" ? [sourceOf(row)] : [sourceOf(row), askerSource(row)]
  const asked = yield* sql<Asked & { readonly source_id: string }>`SELECT gateway, dm, in_reply_to::text, source_id
    FROM choir_control.outbox WHERE source = 'choird' AND source_id = ANY(${sources}::text[]) AND part = 0 ORDER BY source_id`
  const places = asked.filter(({ dm }) => dm !== heard_in)
  const { agent_id, session_id } = row
  const message = { source: "choird", agent_id, session_id, kind: "notice", text } as const
  yield* insertOutbox(
    config,
    places.map((place) => ({ ...place, ...message, source_id: `${place.source_id}/${what}` }))
  )
  return places.map(({ dm }) => dm)
})
