/** The push stream: rows of the `signals` table per session, and two signals that are computed and have no row (docs/protocol.md, Push stream). */
import { Context, Effect, Layer, Option, Predicate, Schema, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { type InboxId, type SessionId, SignalId } from "#schema/Ids.ts"
import type { SessionStatus } from "#schema/SessionStatus.ts"
import { Signal, type SignalOf } from "#schema/Signal.ts"
import { canonicalJson, storableJson } from "#src/shared/text/canonicalJson.ts"
import { type DatabaseAway, inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { rowId } from "#src/choird/database/rowId.ts"
import { makeNotifier } from "./Notifier.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** Requests to one session that no event carries yet; the next is refused politely. */
export const SIGNALS_PENDING_MAX = 100
/** Signals of one read. */
export const SIGNALS_PAGE_MAX = 100

/** A signal with its row id; the computed ones have none. */
export interface Pushed {
  readonly id: string | undefined
  readonly signal: Signal
}

/** A person's request to a running agent; it becomes a signal with an id. */
export type SignalBody =
  | Omit<SignalOf<"Inject">, "signal_id">
  | Omit<SignalOf<"StartSkill">, "signal_id">
  | Omit<SignalOf<"CancelCore">, "signal_id">
  | Omit<SignalOf<"StopTurn">, "signal_id">
  | Omit<SignalOf<"Compact">, "signal_id">
  | Omit<SignalOf<"NewSession">, "signal_id">
  | Omit<SignalOf<"Trust">, "signal_id">

/** A stored signal. */
export interface Asked {
  readonly signal_id: SignalId
  readonly body: SignalBody
  /** The event that it ended in. */
  readonly acked_rev: number | null
}

export type Sent =
  /** A repeated request id answers its first signal, whatever it asked for. */
  | ({ readonly type: "queued" } & Asked)
  /** The session is not active, so no agent would receive it. */
  | { readonly type: "inactive"; readonly status: SessionStatus }
  /** SIGNALS_PENDING_MAX wait already. */
  | { readonly type: "full"; readonly pending: number }

/** Queues signals for agents and streams them. */
export class Signals extends Context.Service<
  Signals,
  {
    /** Queues a person's request to the agent of an active session, once for each request id. */
    send(session_id: SessionId, request_id: string, body: SignalBody): Effect.Effect<Sent, DatabaseAway>
    /** The signal of an earlier request with this id. */
    asked(session_id: SessionId, request_id: string): Effect.Effect<Asked | undefined, DatabaseAway>
    /** The oldest message of a session that no stored event carries yet. */
    nextMessage(session_id: SessionId): Effect.Effect<InboxId | undefined, DatabaseAway>
    /** Asks for a graceful stop within the time; sent again at each connect until the session ends. */
    stop(session_id: SessionId, deadline_ms: number): Effect.Effect<void>
    /** Drops the computed signals of a session; called when it ends, since a resumed one keeps its id. */
    forget(session_id: SessionId): Effect.Effect<void>
    /** Unacknowledged rows after the given id, then new ones as they come. Never ends by itself. */
    stream(session_id: SessionId, after: string | undefined): Stream.Stream<Pushed, DatabaseAway>
    /** Makes the streams of a session look at the table again; called after a commit that added rows. */
    wake(session_id: SessionId): Effect.Effect<void>
  }
>()("choir/choird/Signals") {
  static readonly layer = Layer.effect(
    Signals,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const onDatabase = yield* useDatabase
      const { wake, wakes } = yield* makeNotifier
      const stops = new Map<SessionId, { readonly at_ms: number }>()

      const page = Effect.fnUntraced(function* (session_id: SessionId, after: bigint) {
        const rows =
          yield* sql<Stored>`SELECT s.signal_id, s.kind, s.payload, i.dm, i.text, i.attachments, i.forwarded, i.carried, i.created_at, c.voice
          FROM choir_control.signals AS s
          LEFT JOIN choir_control.inbox AS i
            ON s.kind = 'UserMessage' AND i.inbox_id = (s.payload ->> 'inbox_id')::bigint
          LEFT JOIN choir_control.chat_settings AS c ON c.dm = i.dm
          WHERE s.session_id = ${session_id} AND s.acked_rev IS NULL AND s.signal_id > ${after}
          ORDER BY s.signal_id LIMIT ${SIGNALS_PAGE_MAX}`
        return yield* Effect.forEach(rows, pushed)
      }, onDatabase)

      const stream = (session_id: SessionId, after: string | undefined): Stream.Stream<Pushed, DatabaseAway> =>
        Stream.suspend(() => {
          let cursor = rowId(after ?? "") ?? 0n
          let told: { readonly at_ms: number } | undefined
          const rows = Stream.paginate(undefined, () =>
            Effect.map(page(session_id, cursor), (found) => {
              cursor = BigInt(found.at(-1)?.id ?? cursor)
              return [found, found.length < SIGNALS_PAGE_MAX ? Option.none() : Option.some(undefined)] as const
            })
          )
          const stop = Effect.gen(function* () {
            const asked = stops.get(session_id)
            if (asked === undefined || asked === told) return []
            told = asked
            const deadline_ms = Math.max(0, asked.at_ms - (yield* monotonicMs))
            return [{ id: undefined, signal: { type: "Stop" as const, deadline_ms } }]
          })
          return Stream.flatMap(wakes(session_id), () => Stream.concat(Stream.fromIterableEffect(stop), rows))
        })

      return Signals.of({
        stream,
        wake,
        send: Effect.fn("Signals.send")(function* (session_id, request_id, body) {
          const sent = yield* inTransaction(insertSignal(session_id, request_id, body))
          if (sent.type === "queued") yield* wake(session_id)
          return sent
        }, onDatabase),
        asked: (session_id, request_id) => onDatabase(findSignal(session_id, request_id)),
        nextMessage: Effect.fn("Signals.nextMessage")(function* (session_id) {
          const [row] = yield* sql<{ readonly inbox_id: InboxId }>`SELECT payload ->> 'inbox_id' AS inbox_id
            FROM choir_control.signals WHERE session_id = ${session_id} AND acked_rev IS NULL AND kind = 'UserMessage'
            ORDER BY signal_id LIMIT 1`
          return row?.inbox_id
        }, onDatabase),
        stop: Effect.fn("Signals.stop")(function* (session_id, deadline_ms) {
          stops.set(session_id, { at_ms: (yield* monotonicMs) + deadline_ms })
          yield* wake(session_id)
        }),
        forget: (session_id) => Effect.sync(() => void stops.delete(session_id))
      })
    })
  )
}

interface Stored {
  readonly signal_id: bigint
  readonly kind: string
  readonly payload: Readonly<Record<string, unknown>>
  readonly dm: string | null
  readonly text: string | null
  readonly attachments: unknown
  readonly forwarded: boolean | null
  readonly carried: boolean | null
  readonly created_at: Date | null
  /** How the people of the chat want to hear answers; null where they chose nothing. */
  readonly voice: string | null
}

/** Whether a message has a recording of its sender's voice, by the name that choird gave it. */
const isSpoken = (attachments: unknown): boolean =>
  Array.isArray(attachments) &&
  attachments.some(
    (one: unknown) => Predicate.hasProperty(one, "path") && String(one.path).startsWith(".choirtmp/recv/voice-")
  )

const wantsVoice = ({ attachments, voice }: Stored): boolean =>
  voice === "on" || (voice === "mirror" && isSpoken(attachments))

const decodeSignal = Schema.decodeUnknownEffect(Signal)

/** A row holds only the parts that are not in its message or its own id. */
const pushed = Effect.fnUntraced(function* (row: Stored) {
  const id = String(row.signal_id)
  const rest =
    row.kind === "UserMessage"
      ? {
          dm: row.dm,
          text: row.text,
          attachments: row.attachments,
          created_at: row.created_at?.toISOString(),
          ...(row.forwarded === true ? { forwarded: true } : {}),
          ...(row.carried === true ? { carried: true } : {}),
          ...(wantsVoice(row) ? { speak: true } : {})
        }
      : row.kind === "ApprovalResolved" && !("note" in row.payload)
        ? {}
        : { signal_id: id }
  return { id, signal: yield* Effect.orDie(decodeSignal({ type: row.kind, ...row.payload, ...rest })) }
})

const findSignal = Effect.fnUntraced(function* (session_id: SessionId, request_id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<
    Pick<Stored, "signal_id" | "kind" | "payload"> & { readonly acked_rev: number | null }
  >`SELECT
      signal_id, kind, payload, acked_rev
    FROM choir_control.signals WHERE session_id = ${session_id} AND request_id = ${request_id}`
  if (row === undefined) return undefined
  const signal_id = SignalId.make(String(row.signal_id))
  return { signal_id, body: { type: row.kind, ...row.payload } as SignalBody, acked_rev: row.acked_rev } satisfies Asked
})

/** Under the session's row lock, so that ids commit in order and no stream passes over one. */
const insertSignal = Effect.fnUntraced(function* (session_id: SessionId, request_id: string, body: SignalBody) {
  const sql = yield* SqlClient.SqlClient
  const [session] = yield* sql<{ readonly status: SessionStatus }>`SELECT status FROM choir_control.sessions
    WHERE session_id = ${session_id} FOR UPDATE`
  const earlier = yield* findSignal(session_id, request_id)
  if (earlier !== undefined) return { type: "queued", ...earlier } satisfies Sent
  if (session?.status !== "active") return { type: "inactive", status: session?.status ?? "closed" } satisfies Sent
  const [waiting] = yield* sql<{ readonly pending: number }>`SELECT count(*)::int AS pending FROM choir_control.signals
    WHERE session_id = ${session_id} AND acked_rev IS NULL AND kind NOT IN ('UserMessage', 'ApprovalResolved')`
  const pending = waiting?.pending ?? 0
  if (pending >= SIGNALS_PENDING_MAX) return { type: "full", pending } satisfies Sent
  const { type: kind, ...payload } = storableJson(body)
  const [row] = yield* sql<{ readonly signal_id: bigint }>`INSERT INTO choir_control.signals
    (session_id, kind, payload, request_id)
    VALUES (${session_id}, ${kind}, ${canonicalJson(payload)}::jsonb, ${request_id}) RETURNING signal_id`
  const signal_id = SignalId.make(String(row?.signal_id))
  return { type: "queued", signal_id, body: storableJson(body), acked_rev: null } satisfies Sent
})

/**
 * Takes back a request that no event of its session carries, once that session has ended: it is never sent there again, should the session be
 * continued. Answers whether it was taken back.
 */
export const withdrawSignal = Effect.fnUntraced(function* (session_id: SessionId, request_id: string) {
  const sql = yield* SqlClient.SqlClient
  const [session] = yield* sql<{ readonly status: SessionStatus }>`SELECT status FROM choir_control.sessions
    WHERE session_id = ${session_id} FOR UPDATE`
  if (session === undefined || session.status === "active") return false
  const withdrawn = yield* sql`UPDATE choir_control.signals SET acked_rev = 0
    WHERE session_id = ${session_id} AND request_id = ${request_id} AND acked_rev IS NULL RETURNING 1`
  return withdrawn.length > 0
})
