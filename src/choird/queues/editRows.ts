/** The rows of the inbox whose messages a person edited, within the transactions of Inbox.ts. An agent's lock is held. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, InboxId, ResourceName, SessionId } from "#schema/Ids.ts"
import { storableJson } from "#src/shared/text/canonicalJson.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"
import { ownWords } from "#src/shared/text/quotedWords.ts"
import type { Incoming } from "./Incoming.ts"

/** Characters of the earlier text that are quoted. */
const QUOTE_CHARS_MAX = 200

const BEGIN = "[The user edited an earlier message"

const quote = (message: string): string => {
  const text = ownWords(message)
  return JSON.stringify(text.length <= QUOTE_CHARS_MAX ? text : `${firstPart(text, QUOTE_CHARS_MAX)}…`)
}

/**
 * The text of a message that corrects an earlier one, which the agent has already taken.
 * @param before the earlier text; empty where it is not kept any more
 */
const correction = (before: string, now: string): string =>
  `${BEGIN}${before === "" ? "" : `, which was: ${quote(before)}`}. It is now:]\n${now}`

/** A correction that a further edit changes: it quotes the same text. */
const corrected = (earlier: string, now: string): string => `${earlier.split("\n", 1)[0] ?? ""}\n${now}`

/** Corrections that are stored in one transaction. */
const CORRECTIONS_PAGE_MAX = 100
/** Edits of a message whose repetition is known; Telegram repeats those of its last batch. */
const EDITS_KNOWN_MAX = 100

/** A message as it was sent; one that was joined from several has no text of its own piece. */
interface Original {
  readonly inbox_id: InboxId
  readonly text: string
  readonly is_open: boolean
  readonly is_joined: boolean
  /** The edit was here before. */
  readonly is_known: boolean
}

/** The consequence of an edit for the inbox. */
export type EditStep =
  /** The message is not in the inbox: it was a command, was refused, or is not kept any more. */
  | { readonly type: "unknown" }
  | { readonly type: "unchanged" }
  /** The agent has not taken this row yet. */
  | { readonly type: "replace"; readonly inbox_id: InboxId; readonly text: string }
  /** The agent has taken the message, so that a further one corrects it. */
  | { readonly type: "correct"; readonly corrects: InboxId; readonly text: string }

const originalOf = Effect.fnUntraced(function* ({ agent_id, client_id, dm, gateway, message_id }: Incoming) {
  const sql = yield* SqlClient.SqlClient
  const [row] =
    yield* sql<Original>`SELECT whole.inbox_id::text, whole.text, whole.acked_rev IS NULL AS is_open, ${client_id} = ANY(whole.edits) AS is_known,
      (piece.joined_to IS NOT NULL
        OR EXISTS (SELECT 1 FROM choir_control.inbox AS other WHERE other.joined_to = piece.inbox_id)) AS is_joined
    FROM choir_control.inbox AS piece
    JOIN choir_control.inbox AS whole ON whole.inbox_id = COALESCE(piece.joined_to, piece.inbox_id)
    WHERE piece.dm = ${dm} AND piece.message_id = ${message_id ?? null}::bigint AND piece.gateway = ${gateway}
      AND piece.agent_id = ${agent_id} AND piece.corrects IS NULL
    ORDER BY piece.inbox_id DESC LIMIT 1`
  return row
})

const openCorrection = Effect.fnUntraced(function* (corrects: InboxId) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly inbox_id: InboxId; readonly text: string }>`SELECT inbox_id::text, text
    FROM choir_control.inbox WHERE corrects = ${corrects}::bigint AND acked_rev IS NULL
    ORDER BY inbox.inbox_id DESC LIMIT 1`
  return row
})

/** Decides what an edit means, and notes the new text of a message that the agent has taken. */
export const editStep = Effect.fnUntraced(function* (edit: Incoming) {
  const sql = yield* SqlClient.SqlClient
  const original = yield* originalOf(edit)
  if (original === undefined) return { type: "unknown" } satisfies EditStep
  const { inbox_id, is_joined, is_known, is_open, text } = original
  const now = storableJson(edit.text)
  if (is_known || text === now) return { type: "unchanged" } satisfies EditStep
  yield* sql`UPDATE choir_control.inbox SET edits = (ARRAY[${edit.client_id}] || edits)[1:${EDITS_KNOWN_MAX}]
    WHERE inbox_id = ${inbox_id}::bigint`
  if (is_open && !is_joined) return { type: "replace", inbox_id, text: now } satisfies EditStep
  // An emptied text was forgotten, or is too old to be kept.
  if (!is_joined && text !== "")
    yield* sql`UPDATE choir_control.inbox SET text = ${now} WHERE inbox_id = ${inbox_id}::bigint`
  const open = yield* openCorrection(inbox_id)
  return open === undefined
    ? ({ type: "correct", corrects: inbox_id, text: correction(text, now) } satisfies EditStep)
    : ({ type: "replace", inbox_id: open.inbox_id, text: corrected(open.text, now) } satisfies EditStep)
})

/** Replaces the text of a message that the agent has not taken. A session that has its signal gets another one. */
export const replaceText = Effect.fnUntraced(function* (
  { inbox_id, text }: Extract<EditStep, { readonly type: "replace" }>,
  session_id: SessionId | undefined
) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE choir_control.inbox SET text = ${text}, edited = true WHERE inbox_id = ${inbox_id}::bigint`
  if (session_id === undefined) return
  yield* sql`INSERT INTO choir_control.signals (session_id, kind, payload)
    SELECT session_id, 'UserMessage', jsonb_build_object('inbox_id', inbox_id::text)
    FROM choir_control.inbox WHERE inbox_id = ${inbox_id}::bigint AND session_id = ${session_id}`
})

interface Overtaken {
  readonly inbox_id: InboxId
  readonly agent_id: AgentId
  readonly gateway: ResourceName
  readonly client_id: string
  readonly dm: ResourceName
  readonly text: string
  readonly taken_text: string
  readonly forwarded: boolean
  readonly message_id: number | null
  readonly thread_id: number | null
}

/** Messages that the agent took with another text, while the edit was on its way to it. */
export const overtaken = Effect.fnUntraced(function* (agent_id: AgentId | null = null) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Overtaken>`SELECT inbox_id::text, agent_id, gateway, client_id, dm, text, taken_text, forwarded,
      message_id::float8, thread_id::float8 FROM choir_control.inbox
    WHERE edited AND taken_text IS NOT NULL AND (${agent_id}::text IS NULL OR agent_id = ${agent_id})
    ORDER BY inbox.inbox_id LIMIT ${CORRECTIONS_PAGE_MAX}`
})

/** The correction that an overtaken edit becomes. */
export const correctionOf = ({ inbox_id, message_id, taken_text, text, thread_id, ...row }: Overtaken): Incoming => ({
  ...row,
  client_id: `${row.client_id}/edit/${inbox_id}`,
  text: correction(taken_text, text),
  attachments: [],
  corrects: inbox_id,
  ...(message_id === null ? {} : { message_id }),
  ...(thread_id === null ? {} : { thread_id })
})

/** Ends the edit of a message. */
export const settleEdit = Effect.fnUntraced(function* (inbox_id: InboxId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE choir_control.inbox SET edited = false, taken_text = NULL WHERE inbox_id = ${inbox_id}::bigint`
})

/** Whether an agent may still take a message with the text before its edit. */
export const isEditOpen = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return (yield* sql`SELECT 1 FROM choir_control.inbox WHERE edited LIMIT 1`).length > 0
})
