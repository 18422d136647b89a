/** The messages of people: a row per message, written before it is acknowledged to the gateway (D6). */
import { Clock, Context, Effect, flow, Layer, type Stream } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { AgentId, InboxId, ResourceName, SessionId } from "#schema/Ids.ts"
import { type DatabaseAway, inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { correctionOf, editStep, isEditOpen, overtaken, replaceText, settleEdit } from "./editRows.ts"
import { append, heldOf, letGo, nextDue, rowsDue } from "./heldRows.ts"
import { heldUntil, opened } from "./messageJoin.ts"
import { makeNotifier } from "./Notifier.ts"
import { Signals } from "./Signals.ts"
import { canonicalJson, storableJson } from "#src/shared/text/canonicalJson.ts"
import type { Incoming } from "./Incoming.ts"

/** Messages of an agent that wait at once; the next one is refused politely (R45). */
export const INBOX_PENDING_MAX = 500

/** The interval of the looks at messages whose edit may come too late for the agent. */
const EDIT_LOOK_MS = 2000

/** The fate of an edit: the agent takes the new text, or a message that corrects the old one; or there is nothing to change. */
export type Edited = "replaced" | "corrected" | "unchanged" | "unknown" | "full"

export type Received =
  /** `position` 0 is next; a repeated client_id answers its first row, which is `taken` where the agent already has it. */
  | { readonly type: "queued"; readonly inbox_id: InboxId; readonly position: number; readonly taken?: boolean }
  /** INBOX_PENDING_MAX messages wait already (R45). */
  | { readonly type: "full"; readonly pending: number }

/** The readers of agents' messages, to be woken. */
class Readers extends Context.Service<
  Readers,
  {
    /** Wakes an agent's session, or those who wait until it has one. */
    wake(agent_id: AgentId, session_id: SessionId | undefined): Effect.Effect<void>
    /** Emits at once and then whenever an agent without a session is woken. */
    wakes(agent_id: AgentId): Stream.Stream<void>
  }
>()("choir/choird/Inbox/Readers") {
  static readonly layer = Layer.effect(
    Readers,
    Effect.gen(function* () {
      const signals = yield* Signals
      const { wake, wakes } = yield* makeNotifier
      return Readers.of({
        wake: (agent_id, session_id) => (session_id === undefined ? wake(agent_id) : signals.wake(session_id)),
        wakes
      })
    })
  )
}

/** Keeps the inbox and turns its rows into signals of the agent's active session. */
export class Inbox extends Context.Service<
  Inbox,
  {
    /** Stores the message and its signal in one transaction, and wakes the agent's push stream; without a session, the readers of `wakes`. */
    receive(message: Incoming): Effect.Effect<Received, DatabaseAway>
    /** Messages of an agent that no event carries yet. */
    pending(agent_id: AgentId): Effect.Effect<number, DatabaseAway>
    /** Emits at once and then whenever an agent without a session may have new messages. */
    wakes(agent_id: AgentId): Stream.Stream<void>
    /** Stores messages in one transaction, in order. One that is stored already is found. */
    receiveAll(messages: ReadonlyArray<Incoming>): Effect.Effect<ReadonlyArray<Received>, DatabaseAway>
    /** Takes the new text of a message that the person edited: it has the number and the place of that message, and an id of its own. */
    edit(message: Incoming): Effect.Effect<Edited, DatabaseAway>
    /**
     * Lets the messages go that were held for long enough, and stores the corrections that edits became which the agent did not hear of in time;
     * answers when the next look is due.
     * @param ready gateways that bring nothing more just now; the messages of others are held up to JOIN_MS_MAX
     */
    release(ready: ReadonlyArray<ResourceName>): Effect.Effect<number | undefined, DatabaseAway>
  }
>()("choir/choird/Inbox") {
  static readonly layer = Layer.effect(
    Inbox,
    Effect.gen(function* () {
      const useSql = yield* useDatabase
      const readers = yield* Readers
      const onDatabase = flow(useSql, Effect.provideService(Readers, readers))
      return Inbox.of({
        receive: Effect.fn("Inbox.receive")(function* (message) {
          const [received] = yield* inTransaction(storeAll([message]))
          return received ?? (yield* Effect.die(new Error("the message was not stored")))
        }, onDatabase),
        pending: (agent_id) => onDatabase(countPending(agent_id)),
        wakes: readers.wakes,
        receiveAll: Effect.fn("Inbox.receiveAll")((messages) => inTransaction(storeAll(messages)), onDatabase),
        edit: Effect.fn("Inbox.edit")((message) => inTransaction(edit(message)), onDatabase),
        release: Effect.fn("Inbox.release")(release, onDatabase)
      })
    })
  ).pipe(Layer.provide(Readers.layer))
}

/** Wakes the agent's session, or the run that waits to start one, when the transaction is committed. */
const wakeReader = Effect.fnUntraced(function* (agent_id: AgentId, session_id: SessionId | undefined) {
  const readers = yield* Readers
  const sql = yield* SqlClient.SqlClient
  yield* sql.afterCommit(readers.wake(agent_id, session_id))
})

/** Stores a message once, as a row of its own or with the one that it joins. */
const store = Effect.fnUntraced(function* (message: Incoming) {
  const { agent_id } = message
  const earlier = yield* find(message)
  if (earlier !== undefined) {
    // A repeated message may mean that the answer to its commit was lost, also for choird; then no reader was woken.
    yield* wakeReader(agent_id, yield* lockActiveSession(agent_id))
    const { taken, ...place } = earlier
    return { type: "queued", ...place, ...(taken ? { taken } : {}) } as const
  }
  const held = yield* heldOf(message)
  if (held !== undefined && (yield* append(held, message))) {
    yield* signal(agent_id)
    return { type: "queued", inbox_id: held.inbox_id, position: 0 } as const
  }
  if (held !== undefined) yield* letGo(held.inbox_id)
  const pending = yield* countPending(agent_id)
  if (pending < INBOX_PENDING_MAX) {
    const inbox_id = yield* insert(message)
    yield* signal(agent_id)
    return { type: "queued", inbox_id, position: pending } as const
  }
  if (held !== undefined) yield* signal(agent_id)
  return { type: "full", pending } as const
})

/** Signals what waits for the agent, if it has a session, and wakes its reader. */
const signal = Effect.fnUntraced(function* (agent_id: AgentId) {
  const session_id = yield* lockActiveSession(agent_id)
  if (session_id !== undefined) yield* signalInbox(agent_id, session_id)
  yield* wakeReader(agent_id, session_id)
})

/** Lets go what is due of an agent, under its lock. */
const releaseAgent = Effect.fnUntraced(function* (agent_id: AgentId, ready: ReadonlyArray<ResourceName>) {
  yield* lockAgent(agent_id)
  const due = yield* rowsDue(ready, yield* Clock.currentTimeMillis, agent_id)
  yield* Effect.forEach(due, ({ inbox_id }) => letGo(inbox_id), { discard: true })
  for (const late of yield* overtaken(agent_id)) {
    const stored = yield* store(correctionOf(late))
    if (stored.type === "queued") yield* settleEdit(late.inbox_id)
  }
  yield* signal(agent_id)
})

const release = Effect.fnUntraced(function* (ready: ReadonlyArray<ResourceName>) {
  const now_ms = yield* Clock.currentTimeMillis
  const due = [...(yield* rowsDue(ready, now_ms)), ...(yield* overtaken())]
  for (const agent_id of new Set(due.map((row) => row.agent_id))) yield* inTransaction(releaseAgent(agent_id, ready))
  const times = [yield* nextDue, (yield* isEditOpen) ? now_ms + EDIT_LOOK_MS : undefined]
  return times.reduce((a, b) => (a === undefined || b === undefined ? (a ?? b) : Math.min(a, b)))
})

/** The session is locked before any row of the inbox, as where its events are stored. */
const edit = Effect.fnUntraced(function* (
  message: Incoming
): Effect.fn.Return<Edited, SqlError.SqlError, Readers | SqlClient.SqlClient> {
  yield* lockAgent(message.agent_id)
  const session_id = yield* lockActiveSession(message.agent_id)
  const step = yield* editStep(message)
  if (step.type === "replace") {
    yield* replaceText(step, session_id)
    yield* wakeReader(message.agent_id, session_id)
    return "replaced"
  }
  if (step.type !== "correct") return step.type
  const { corrects, text } = step
  const received = yield* store({ ...message, text, corrects, attachments: [] })
  return received.type === "full" ? "full" : "corrected"
})

/** All agents are locked first, in order, so that two gateways never wait for each other. */
const storeAll = Effect.fnUntraced(function* (messages: ReadonlyArray<Incoming>) {
  const agents = [...new Set(messages.map(({ agent_id }) => agent_id))].sort()
  yield* Effect.forEach(agents, (agent_id) => lockAgent(agent_id), { discard: true })
  return yield* Effect.forEach(messages, store)
})

const countPending = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly pending: number }>`SELECT count(*)::int AS pending FROM choir_control.inbox
    WHERE agent_id = ${agent_id} AND acked_rev IS NULL`
  return row?.pending ?? 0
})

/** The row of a message that came before, with its place among those that wait. */
const find = Effect.fnUntraced(function* ({ client_id, gateway }: Incoming) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{
    readonly inbox_id: InboxId
    readonly position: number
    readonly taken: boolean
  }>`SELECT COALESCE(i.joined_to, i.inbox_id)::text AS inbox_id, i.acked_rev IS NOT NULL AS taken,
      (SELECT count(*)::int FROM choir_control.inbox AS before
        WHERE before.agent_id = i.agent_id AND before.acked_rev IS NULL AND before.inbox_id < i.inbox_id) AS position
    FROM choir_control.inbox AS i WHERE i.gateway = ${gateway} AND i.client_id = ${client_id}`
  return row
})

/** Text is made storable here as it will be in the event (docs/protocol.md, Events). */
const insert = Effect.fnUntraced(function* ({
  agent_id,
  attachments,
  client_id,
  corrects,
  dm,
  forwarded = false,
  gateway,
  join,
  message_id,
  text,
  thread_id
}: Incoming) {
  const sql = yield* SqlClient.SqlClient
  const now_ms = yield* Clock.currentTimeMillis
  const joining = join && opened(join, now_ms)
  const held_s = join && joining && heldUntil(joining, join.quiet_ms, now_ms) / 1000
  const [row] = yield* sql<{ readonly inbox_id: InboxId }>`INSERT INTO choir_control.inbox
      (gateway, client_id, agent_id, dm, text, attachments, forwarded, message_id, thread_id,
       joining, held_until, corrects)
    VALUES (${gateway}, ${client_id}, ${agent_id}, ${dm}, ${storableJson(text)},
      ${canonicalJson(storableJson(attachments))}::jsonb, ${forwarded}, ${message_id ?? null}, ${thread_id ?? null},
      ${joining === undefined ? null : canonicalJson(joining)}::jsonb, to_timestamp(${held_s ?? null}::float8),
      ${corrects ?? null}::bigint)
    RETURNING inbox_id::text`
  return row === undefined ? yield* Effect.die(new Error("the inbox took no row")) : row.inbox_id
})

/** Held until the transaction ends. Agents' locks are taken in the order of their ids. */
export const lockAgent = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`SELECT pg_advisory_xact_lock(hashtextextended(${`choir/agent/${agent_id}`}, 0))`
})

/** The agent's active session, with its row locked. */
export const lockActiveSession = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  const [session] = yield* sql<{ readonly session_id: SessionId }>`SELECT session_id FROM choir_control.sessions
    WHERE agent_id = ${agent_id} AND status = 'active' FOR UPDATE`
  return session?.session_id
})

/**
 * Signals for the agent's unacknowledged messages that this session does not have yet, in their order. What came after a held message waits for
 * it, since an agent takes a message only after all with lower ids.
 */
export const signalInbox = Effect.fnUntraced(function* (agent_id: AgentId, session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`WITH waiting AS (
      UPDATE choir_control.inbox SET session_id = ${session_id}
      WHERE agent_id = ${agent_id} AND acked_rev IS NULL AND session_id IS DISTINCT FROM ${session_id}
        AND NOT EXISTS (SELECT 1 FROM choir_control.inbox AS held
          WHERE held.agent_id = ${agent_id} AND held.held_until IS NOT NULL AND held.inbox_id <= inbox.inbox_id)
      RETURNING inbox_id
    )
    INSERT INTO choir_control.signals (session_id, kind, payload)
    SELECT ${session_id}, 'UserMessage', jsonb_build_object('inbox_id', inbox_id::text)
    FROM waiting ORDER BY inbox_id`
})

/** Ends the signals of messages that another session has answered in the meantime, so that this one does not receive them again. */
export const dropAnswered = Effect.fnUntraced(function* (session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE choir_control.signals AS s SET acked_rev = 0
    FROM choir_control.inbox AS i
    WHERE s.session_id = ${session_id} AND s.acked_rev IS NULL AND s.kind = 'UserMessage'
      AND i.inbox_id = (s.payload ->> 'inbox_id')::bigint
      AND (i.acked_rev IS NOT NULL OR i.session_id IS DISTINCT FROM ${session_id})`
})
