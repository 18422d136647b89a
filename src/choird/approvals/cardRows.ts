/**
 * The cards of approvals as the outbox has them: the message that a channel took for each, and the data of its buttons. Everything else is
 * known to the agent that asks, and so proves nothing of a tap (D60).
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { ApprovalId, type ResourceName } from "#schema/Ids.ts"
import { provideDatabase } from "#src/choird/database/DatabaseAway.ts"
import type { OutboxForm } from "#src/choird/queues/OutboxForm.ts"
import type { SentAs } from "#src/choird/queues/Outbox.ts"

/** No gateway's name contains a slash, so no other message of choird has this source. */
export const cardSource = (approval_id: string): string => `approval/${approval_id}`

/** A card with buttons. */
export interface SentCard {
  readonly gateway: ResourceName
  /** Whether its delivery is noted. */
  readonly isDelivered: boolean
  /** Absent until the delivery is noted, and for a card that an earlier Choir sent. */
  readonly sent?: SentAs
  /** The data of its buttons. */
  readonly data: ReadonlyArray<string>
}

interface Stored {
  readonly gateway: ResourceName
  readonly isDelivered: boolean
  readonly sent_chat: string | null
  readonly sent_id: string | null
  readonly form: OutboxForm
}

const findCard = Effect.fnUntraced(function* (approval_id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Stored>`SELECT gateway, delivered_at IS NOT NULL AS "isDelivered", sent_chat, sent_id, form
    FROM choir_control.outbox
    WHERE source = 'choird' AND source_id = ${cardSource(approval_id)} AND form -> 'buttons' IS NOT NULL`
  if (row === undefined) return undefined
  const { form, gateway, isDelivered, sent_chat, sent_id } = row
  const card: SentCard = {
    gateway,
    isDelivered,
    ...(sent_chat === null || sent_id === null ? {} : { sent: { chat_id: sent_chat, message_id: sent_id } }),
    data: (form.buttons ?? []).flat().map(({ data }) => data)
  }
  return card
})

/** The approval that a message is about: its card, its file, or what came of it. Another bot behind the gateway counts from 1 again. */
const findAbout = Effect.fnUntraced(function* (gateway: ResourceName, { chat_id, message_id }: SentAs) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly approval_id: string }>`SELECT split_part(source_id, '/', 2) AS approval_id
    FROM choir_control.outbox
    WHERE sent_chat IS NOT NULL AND starts_with(source_id, 'approval/') AND source = 'choird' AND gateway = ${gateway}
      AND sent_chat = ${chat_id} AND sent_id = ${message_id} ORDER BY outbox_id DESC LIMIT 1`
  return row === undefined ? undefined : ApprovalId.make(row.approval_id)
})

/** The approvals of which a DM was sent a message. */
const findAskedAt = Effect.fnUntraced(function* (dm: ResourceName) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly approval_id: string }>`SELECT split_part(source_id, '/', 2) AS approval_id
    FROM choir_control.outbox WHERE source = 'choird' AND starts_with(source_id, 'approval/') AND dm = ${dm}`
  return new Set(rows.map(({ approval_id }) => approval_id))
})

/** The part of `Approvals` about the messages that people were sent. */
export const makeCards = Effect.gen(function* () {
  const onDatabase = yield* provideDatabase
  return {
    card: Effect.fn("Approvals.card")(findCard, onDatabase, Effect.orDie),
    about: Effect.fn("Approvals.about")(findAbout, onDatabase, Effect.orDie),
    askedAt: Effect.fn("Approvals.askedAt")(findAskedAt, onDatabase, Effect.orDie)
  }
})
