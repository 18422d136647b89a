/** The rows beside a session's log that hold words of it: facts, chunks, and what queues and results still keep. */
import { Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import { FORGOTTEN } from "#src/choird/sessions/reducedPayload.ts"
import { agentTable, asAgent } from "./agentTables.ts"
import type { Reached, Target } from "./forgetTarget.ts"
import { ForgetWords } from "./forgetWords.ts"
import { NO_ID } from "#src/choird/database/rowId.ts"

/** Rows of a table that are read at once. */
const ROWS_MAX = 500

type Key = string

interface Candidate {
  readonly id: Key
  readonly text: string
}

/** Whether a text, as the database folds it, may hold one of the phrases; `ForgetWords` decides. */
const mayHold = (text: Statement.Fragment, { phrases }: ForgetWords) =>
  Effect.map(SqlClient.SqlClient, (sql) =>
    phrases.length === 0
      ? sql`false`
      : sql`EXISTS (SELECT FROM unnest(${phrases}::text[]) AS phrase
        WHERE position(phrase IN lower(regexp_replace(normalize(${text}, NFC), '\\s+', ' ', 'g'))) > 0)`
  )

/** The ids of rows whose texts hold a phrase, read in pages by id. */
const idsOf = Effect.fnUntraced(function* (
  words: ForgetWords,
  read: (after: Key) => Effect.Effect<ReadonlyArray<Candidate>, SqlError.SqlError, SqlClient.SqlClient>,
  first: Key
) {
  const found: Array<Key> = []
  let after = first
  for (;;) {
    const rows = yield* read(after)
    found.push(...rows.filter(({ text }) => words.in(text)).map(({ id }) => id))
    const last = rows.at(-1)
    if (last === undefined || rows.length < ROWS_MAX) return found
    after = last.id
    yield* Effect.yieldNow
  }
})

/** Facts whose key or text holds a phrase, and those that were written from a part of a session which goes as a whole. */
const namedFacts = Effect.fnUntraced(function* (agent_id: AgentId, { facts, phrases, spans }: Target) {
  const sql = yield* SqlClient.SqlClient
  const table = sql(agentTable(agent_id, "knowledge_documents"))
  const words = new ForgetWords(phrases)
  const text = sql`coalesce(key, '') || ' ' || text`
  const named = yield* mayHold(text, words)
  const held = yield* idsOf(
    words,
    (after) => sql<Candidate>`SELECT id::text AS id, ${text} AS text FROM ${table}
      WHERE id > ${after}::uuid AND ${named} ORDER BY id LIMIT ${ROWS_MAX}`,
    NO_ID
  )
  // The turn of a forgotten fact goes too, and other facts may come from the same turn.
  const whole = facts.length > 0 ? [] : spans
  const derived = yield* Effect.forEach(
    whole,
    ({ first_rev, last_rev, session_id }) =>
      sql<{ readonly id: string }>`SELECT id::text AS id FROM ${table} WHERE source ->> 'session_id' = ${session_id}
      AND (source ->> 'rev')::bigint BETWEEN ${first_rev} AND ${last_rev}`
  )
  return [...new Set([...facts, ...held, ...derived.flat().map(({ id }) => id)])]
})

/** A fact that a target names. */
export interface NamedFact {
  readonly id: string
  readonly key: string | null
  readonly text: string
}

export const factsOf = (agent_id: AgentId, target: Target) =>
  asAgent(
    agent_id,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* namedFacts(agent_id, target)
      return yield* sql<NamedFact>`SELECT id::text AS id, key, text FROM ${sql(agentTable(agent_id, "knowledge_documents"))}
        WHERE id = ANY(${ids}::uuid[]) ORDER BY created_at, id`
    })
  )

interface Count {
  readonly rows: number
  readonly vectors: number
}

/** How much an order has removed. */
export interface Removed {
  readonly facts: number
  readonly events: number
  readonly chunks: number
  readonly vectors: number
  readonly texts: number
}

const NOTHING: Removed = { facts: 0, events: 0, chunks: 0, vectors: 0, texts: 0 }

/** Adds to what an order has removed; in the transaction that removes it, so that no death between two steps loses count. */
export const countRemoved = Effect.fnUntraced(function* (order_id: string, removed: Partial<Removed>) {
  const sql = yield* SqlClient.SqlClient
  const { chunks, events, facts, texts, vectors } = { ...NOTHING, ...removed }
  // A step of the agent's own tables leaves its transaction with the agent's role.
  yield* sql`SET LOCAL ROLE NONE`
  yield* sql`UPDATE choir_control.forgets SET facts = facts + ${facts}::int, events = events + ${events}::int, chunks = chunks + ${chunks}::int,
    vectors = vectors + ${vectors}::int, texts = texts + ${texts}::int WHERE id = ${order_id}`
})

export const removedBy = Effect.fnUntraced(function* (order_id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] =
    yield* sql<Removed>`SELECT facts, events, chunks, vectors, texts FROM choir_control.forgets WHERE id = ${order_id}`
  return row ?? NOTHING
})

/** Deletes documents with their vectors. */
const deleteDocuments = Effect.fnUntraced(function* (
  agent_id: AgentId,
  kind: "knowledge" | "memory",
  where: Statement.Fragment
) {
  const sql = yield* SqlClient.SqlClient
  const [count] = yield* sql<Count>`WITH gone AS (
      DELETE FROM ${sql(agentTable(agent_id, `${kind}_documents`))} WHERE ${where} RETURNING id
    )
    SELECT (SELECT count(*) FROM gone)::int AS rows, (SELECT count(*) FROM ${sql(agentTable(agent_id, `${kind}_embeddings`))} AS e
      WHERE e.document_id IN (SELECT id FROM gone))::int AS vectors`
  return count ?? { rows: 0, vectors: 0 }
})

/** Deletes the facts of a target, every value of them, with their vectors. */
export const deleteFacts = (agent_id: AgentId, target: Target) =>
  asAgent(
    agent_id,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* namedFacts(agent_id, target)
      return yield* deleteDocuments(agent_id, "knowledge", sql`id = ANY(${ids}::uuid[])`)
    })
  )

/** The sessions of chunks and summaries that hold a phrase, whatever their logs say: those of archived sessions stay searchable. */
export const chunkedSessions = Effect.fnUntraced(function* (agent_id: AgentId, words: ForgetWords) {
  const sql = yield* SqlClient.SqlClient
  const table = sql(agentTable(agent_id, "memory_documents"))
  const held = yield* mayHold(sql`text`, words)
  const rows = yield* asAgent(
    agent_id,
    idsOf(
      words,
      (after) => sql<Candidate>`SELECT id::text AS id, text FROM ${table}
        WHERE id > ${after}::uuid AND ${held} ORDER BY id LIMIT ${ROWS_MAX}`,
      NO_ID
    ).pipe(
      Effect.flatMap(
        (ids) =>
          sql<{
            readonly session_id: SessionId
          }>`SELECT DISTINCT session_id FROM ${table} WHERE id = ANY(${ids}::uuid[])`
      )
    )
  )
  return rows.map(({ session_id }) => session_id)
})

/** Deletes the chunks and summaries of sessions with their vectors. */
export const deleteChunks = (agent_id: AgentId, sessions: ReadonlyArray<SessionId>) =>
  asAgent(
    agent_id,
    Effect.flatMap(SqlClient.SqlClient, (sql) =>
      deleteDocuments(agent_id, "memory", sql`session_id = ANY(${sessions}::text[])`)
    )
  )

/** The tables of `choir_control` that keep texts of a session for a while, and what is left of a row that loses its own. */
const emptied = (agent_id: AgentId, { calls, inbox, revs, session_id }: Reached) =>
  Effect.map(SqlClient.SqlClient, (sql) => [
    {
      table: "inbox",
      id: sql`inbox_id`,
      text: sql`text`,
      of: sql`agent_id = ${agent_id} AND acked_rev IS NOT NULL AND text <> ''`,
      named: sql`inbox_id::text = ANY(${[...inbox]}::text[])`,
      left: sql`text = '', attachments = '[]'`
    },
    {
      table: "outbox",
      id: sql`outbox_id`,
      text: sql`text`,
      of: sql`agent_id = ${agent_id} AND text NOT IN ('', ${FORGOTTEN})`,
      named: sql`source = 'event' AND session_id = ${session_id} AND split_part(source_id, ':', 2) = ANY(${revs.map(String)}::text[])`,
      // One that is still to be delivered says so.
      left: sql`text = CASE WHEN delivered_at IS NULL AND failed_at IS NULL THEN ${FORGOTTEN} ELSE '' END`
    },
    {
      // Words that nobody can read cover no call.
      table: "grants",
      id: sql`grant_id`,
      text: sql`words::text`,
      of: sql`agent_id = ${agent_id} AND words <> '{}'::jsonb`,
      named: sql`approval_id IN (SELECT id FROM choir_control.pending_approvals
      WHERE session_id = ${session_id} AND call_id = ANY(${[...calls]}::text[]))`,
      left: sql`words = '{}'::jsonb`
    },
    {
      table: "signals",
      id: sql`signal_id`,
      text: sql`payload ->> 'content'`,
      of: sql`session_id = ${session_id} AND acked_rev IS NOT NULL AND payload ->> 'content' <> ${FORGOTTEN}`,
      named: sql`acked_rev = ANY(${revs}::int[])`,
      left: sql`payload = jsonb_set(payload, '{content}', to_jsonb(${FORGOTTEN}::text))`
    },
    {
      table: "call_results",
      id: sql`call_id`,
      text: sql`response ->> 'output'`,
      of: sql`session_id = ${session_id} AND response <> 'null'::jsonb AND response ->> 'output' <> ${FORGOTTEN}`,
      named: sql`call_id = ANY(${[...calls]}::text[])`,
      left: sql`response = jsonb_set(response, '{output}', to_jsonb(${FORGOTTEN}::text))`
    }
  ])

/** Removes the texts that queues and results still hold of what was reached; answers how many. */
export const emptyTexts = Effect.fnUntraced(function* (agent_id: AgentId, reached: Reached, words: ForgetWords) {
  const sql = yield* SqlClient.SqlClient
  let count = 0
  for (const { id, left, named, of, table, text } of yield* emptied(agent_id, reached)) {
    const mentions = yield* mayHold(text, words)
    const rows = sql(`choir_control.${table}`)
    const held = yield* idsOf(
      words,
      (after) => sql<Candidate>`SELECT ${id}::text AS id, ${text} AS text FROM ${rows}
        WHERE ${id}::text > ${after} AND ${of} AND ${mentions} ORDER BY ${id}::text LIMIT ${ROWS_MAX}`,
      ""
    )
    const gone =
      yield* sql`UPDATE ${rows} SET ${left} WHERE ${of} AND (${id}::text = ANY(${held}::text[]) OR ${named}) RETURNING 1`
    count += gone.length
  }
  const approvals = yield* sql`DELETE FROM choir_control.pending_approvals WHERE session_id = ${reached.session_id}
    AND status IN ('rejected', 'expired', 'done', 'failed') AND call_id = ANY(${[...reached.calls]}::text[]) RETURNING 1`
  const summaries = yield* sql`UPDATE choir_control.sessions SET summary = NULL
    WHERE session_id = ${reached.session_id} AND summary IS NOT NULL RETURNING 1`
  return count + approvals.length + summaries.length
})
