/** The messages to people, in order, until a channel has delivered them (D6). */
import { Clock, Context, Effect, Layer, type Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, InboxId, ResourceName, SessionId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type DatabaseAway, inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { rowId } from "#src/choird/database/rowId.ts"
import { makeNotifier } from "./Notifier.ts"
import type { Config } from "#schema/Config.ts"
import { traitsOf } from "#src/shared/config/channelTraits.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { placeToCut } from "#src/shared/text/placeToCut.ts"
import { MARK_CHARS } from "./chatText.ts"
import { needsForm, type OutboxForm } from "./OutboxForm.ts"
import { type Crowd, crowds } from "./outboxRoom.ts"
import { unaskedPlace } from "./unaskedPlace.ts"
import { readFiled, readNext, readPage, readWaiting } from "./outboxRows.ts"
import { daysBefore } from "#src/shared/days.ts"

/** For how long `status` shows messages that were given up. Retention keeps their rows at least as long. */
export const OUTBOX_FAILED_TOLD_DAYS = 7

/** For how long before retention removes it `status` warns of a message that nobody reads; at most half of the time that it is kept. */
const OUTBOX_UNREAD_TOLD_DAYS = 30

/** The stored reason why a message was given up. */
const OUTBOX_FAILURE_CHARS_MAX = 300

export interface Outgoing {
  readonly outbox_id: string
  readonly source: "event" | "choird"
  readonly source_id: string
  readonly part: number
  readonly gateway: ResourceName
  readonly dm: ResourceName
  readonly agent_id: AgentId
  readonly kind: "reply" | "notice" | "report" | "refusal" | "error" | "outage" | "stopped"
  readonly text: string
  readonly in_reply_to: InboxId | null
  /** The beginning of the message that it answers, where the row is read. */
  readonly question?: string | null
  /** The message that it answers and the topic of that, as its channel numbers them. */
  readonly reply_to?: number | null
  readonly thread_id?: number | null
  /** Whether nothing is shown between that message and this one, where the row is read. */
  readonly follows?: boolean
  /** Its parts that the channel has taken. */
  readonly sent_parts?: number
  /** Why the channel refused one of those parts for good, where one was. */
  readonly failure?: string | null
  /** Absent where it is only a text. */
  readonly form?: OutboxForm | null
  /** The channel's id of the message that this one edits, where it was delivered and the row is read. */
  readonly edited_id?: string | null
  /** In milliseconds since 1970. */
  readonly created_ms: number
}

/** A message that a channel took, by the channel's own ids. */
export interface SentAs {
  readonly chat_id: string
  readonly message_id: string
}

/** A notice of an agent that is bound to these DMs. */
interface Notice {
  readonly agent_id: AgentId
  readonly dms: ReadonlyArray<ResourceName>
  readonly source_id: string
  readonly text: string
  /** A sentence after the text that depends on the DM that gets it. */
  readonly advice?: Advice
}

export type Advice = (config: Config, dm: ResourceName) => string

/** Messages of a DM that were given up. */
export interface Undeliverable {
  readonly dm: ResourceName
  readonly count: number
  /** Why the newest of them was. */
  readonly reason: string
}

/** Messages of a console's DM that retention removes soon, since nobody reads them. */
export interface Unread {
  readonly dm: ResourceName
  readonly count: number
  /** When the oldest of them was written. */
  readonly since: string
}

/** Keeps the outbox. Rows from events are written by the EventStore, in the transaction of the event. */
export class Outbox extends Context.Service<
  Outbox,
  {
    /** A message of choird's own, once per source_id. */
    tell(
      message: Omit<Outgoing, "outbox_id" | "part" | "sent_parts" | "failure" | "source" | "created_ms">
    ): Effect.Effect<void, DatabaseAway>
    /**
     * A notice of an agent that belongs to nobody's message, once per source_id, where {@link unaskedPlace} says.
     * Nothing is stored where config.json has none of the DMs.
     */
    notify(notice: Notice): Effect.Effect<void, DatabaseAway>
    /** Whether a message of choird's own with this source was stored. */
    told(source_id: string): Effect.Effect<boolean, DatabaseAway>
    /**
     * Whether the words of a message that a gateway sent may repeat text from outside. All do of which it is not known: cards and answers of
     * choird's own, which quote such text, and parts of a long answer.
     */
    mayRepeat(gateway: ResourceName, message: SentAs): Effect.Effect<boolean, DatabaseAway>
    /** Undelivered rows of a DM in order after an id: at most OUTBOX_PAGE_MAX, and OUTBOX_PAGE_BYTES_MAX where there is more than one. */
    undelivered(dm: ResourceName, after: string | undefined): Effect.Effect<ReadonlyArray<Outgoing>, DatabaseAway>
    /** The undelivered row of a DM that is sent next: answers first. */
    next(dm: ResourceName): Effect.Effect<Outgoing | undefined, DatabaseAway>
    /** The ids of the first undelivered rows of a DM in order, and the bytes of their texts. */
    waiting(
      dm: ResourceName,
      rows_max: number
    ): Effect.Effect<ReadonlyArray<{ readonly outbox_id: string; readonly bytes: number }>, DatabaseAway>
    /** The first undelivered rows of a DM that have files, at most OUTBOX_PAGE_MAX. */
    filed(
      dm: ResourceName
    ): Effect.Effect<ReadonlyArray<Pick<Outgoing, "outbox_id" | "agent_id" | "form">>, DatabaseAway>
    /** Ends rows; answers how many were not delivered before. @param sent where the message is now, of a single row. */
    delivered(outbox_ids: ReadonlyArray<string>, sent?: SentAs): Effect.Effect<number, DatabaseAway>
    /**
     * Notes that the first parts of a row are over, so that a death does not send them again. @param failure why one of them was refused for good: the row
     * is not delivered then.
     */
    sentParts(outbox_id: string, count: number, failure?: string): Effect.Effect<void, DatabaseAway>
    /** Ends a row that its channel will never take; answers whether it was open until now. */
    giveUp(outbox_id: string, reason: string): Effect.Effect<boolean, DatabaseAway>
    /** Ends the rows of all DMs but these, since the others have no reader; answers how many. */
    abandon(kept: ReadonlyArray<string>): Effect.Effect<number, DatabaseAway>
    /** The messages that were given up within the last OUTBOX_FAILED_TOLD_DAYS, by DM. */
    readonly undeliverable: Effect.Effect<ReadonlyArray<Undeliverable>, DatabaseAway>
    /** The messages at consoles that `retention.unread_days` ends soon, by DM. */
    readonly unread: Effect.Effect<ReadonlyArray<Unread>, DatabaseAway>
    /** The DMs where an agent's next answer may have to wait until somebody reads. */
    readonly crowded: Effect.Effect<ReadonlyArray<Crowd>, DatabaseAway>
    /** The ids of messages with files that are neither delivered nor given up. */
    readonly withFiles: Effect.Effect<ReadonlyArray<string>, DatabaseAway>
    /** Counts a failed attempt. */
    failed(outbox_id: string): Effect.Effect<void, DatabaseAway>
    /** Emits at once and then whenever a DM may have new rows. */
    wakes(dm: ResourceName): Stream.Stream<void>
    /** Wakes the readers of a DM; called after a commit that added rows. */
    wake(dm: ResourceName): Effect.Effect<void>
  }
>()("choir/choird/Outbox") {
  static readonly layer = Layer.effect(
    Outbox,
    Effect.gen(function* () {
      const onDatabase = yield* useDatabase
      const store = yield* ConfigStore
      const { wake, wakes } = yield* makeNotifier
      return Outbox.of({
        wake,
        wakes,
        tell: Effect.fn("Outbox.tell")(function* (message) {
          const { config } = yield* store.current
          const row = { ...message, source: "choird", session_id: null } as const
          yield* inTransaction(insertOutbox(config, [row]))
          yield* wake(message.dm)
        }, onDatabase),
        notify: Effect.fn("Outbox.notify")(function* (notice) {
          const { config } = yield* store.current
          const dm = yield* inTransaction(insertNotice(config, notice))
          if (dm !== undefined) yield* wake(dm)
        }, onDatabase),
        told: Effect.fn("Outbox.told")(wasTold, onDatabase),
        mayRepeat: Effect.fn("Outbox.mayRepeat")(mayRepeat, onDatabase),
        undelivered: Effect.fn("Outbox.undelivered")(function* (dm, after) {
          return yield* readPage<Outgoing>(dm, after)
        }, onDatabase),
        next: Effect.fn("Outbox.next")(function* (dm) {
          return yield* readNext<Outgoing>(dm)
        }, onDatabase),
        waiting: Effect.fn("Outbox.waiting")(readWaiting, onDatabase),
        filed: Effect.fn("Outbox.filed")(readFiled, onDatabase),
        delivered: Effect.fn("Outbox.delivered")(markDelivered, onDatabase),
        sentParts: Effect.fn("Outbox.sentParts")(markSentParts, onDatabase),
        giveUp: Effect.fn("Outbox.giveUp")(giveUp, onDatabase),
        abandon: Effect.fn("Outbox.abandon")(abandon, onDatabase),
        undeliverable: onDatabase(undeliverable),
        unread: Effect.flatMap(store.current, ({ config }) => onDatabase(unreadAtConsoles(config))),
        crowded: onDatabase(crowds),
        withFiles: onDatabase(withFiles),
        failed: Effect.fn("Outbox.failed")(countFailure, onDatabase)
      })
    })
  )
}

/** Whether a message of choird's own with this source was stored. */
const wasTold = Effect.fnUntraced(function* (source_id: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`SELECT 1 FROM choir_control.outbox
    WHERE source = 'choird' AND source_id = ${source_id} AND part = 0`
  return rows.length > 0
})

const mayRepeat = Effect.fnUntraced(function* (gateway: ResourceName, { chat_id, message_id }: SentAs) {
  const sql = yield* SqlClient.SqlClient
  // Another bot behind the gateway counts from 1 again.
  const [row] = yield* sql<{ readonly labelled: boolean }>`SELECT labelled FROM choir_control.outbox
    WHERE sent_chat IS NOT NULL AND labelled IS NOT NULL AND gateway = ${gateway}
      AND sent_chat = ${chat_id} AND sent_id = ${message_id} ORDER BY outbox_id DESC LIMIT 1`
  return row?.labelled ?? true
})

/** A mark of a delivery counts only from the choird that has the database. */
const fenced = inTransaction

const markDelivered = Effect.fnUntraced(function* (outbox_ids: ReadonlyArray<string>, sent?: SentAs) {
  const sql = yield* SqlClient.SqlClient
  const ids = outbox_ids.map(rowId).filter((id) => id !== undefined)
  const rows = yield* fenced(sql`UPDATE choir_control.outbox
    SET delivered_at = now(), sent_id = ${sent?.message_id ?? null}, sent_chat = ${sent?.chat_id ?? null}
    WHERE outbox_id = ANY(${ids}::bigint[]) AND delivered_at IS NULL AND failed_at IS NULL RETURNING 1`)
  return rows.length
})

const markSentParts = Effect.fnUntraced(function* (outbox_id: string, count: number, failure?: string) {
  const sql = yield* SqlClient.SqlClient
  yield* fenced(sql`UPDATE choir_control.outbox
    SET sent_parts = ${count}, failure = coalesce(${failure?.slice(0, OUTBOX_FAILURE_CHARS_MAX) ?? null}, failure)
    WHERE outbox_id = ${rowId(outbox_id) ?? 0n}`)
})

const giveUp = Effect.fnUntraced(function* (outbox_id: string, reason: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* fenced(sql`UPDATE choir_control.outbox
    SET failed_at = now(), failure = ${reason.slice(0, OUTBOX_FAILURE_CHARS_MAX)}
    WHERE outbox_id = ${rowId(outbox_id) ?? 0n} AND delivered_at IS NULL AND failed_at IS NULL RETURNING 1`)
  return rows.length > 0
})

const abandon = Effect.fnUntraced(function* (kept: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* fenced(sql`UPDATE choir_control.outbox
    SET failed_at = now(), failure = 'the DM is not in config.json any more'
    WHERE delivered_at IS NULL AND failed_at IS NULL AND NOT (dm = ANY(${kept}::text[])) RETURNING 1`)
  return rows.length
})

const countFailure = Effect.fnUntraced(function* (outbox_id: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE choir_control.outbox SET attempts = attempts + 1 WHERE outbox_id = ${rowId(outbox_id) ?? 0n}`
})

const undeliverable = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Undeliverable>`SELECT dm, count(*)::int AS count,
      (array_agg(failure ORDER BY failed_at DESC, outbox_id DESC))[1] AS reason
    FROM choir_control.outbox
    WHERE failed_at > now() - make_interval(days => ${OUTBOX_FAILED_TOLD_DAYS})
    GROUP BY dm ORDER BY dm`
})

const unreadAtConsoles = Effect.fnUntraced(function* (config: Config) {
  const days = config.retention.unread_days
  if (days === null) return []
  const sql = yield* SqlClient.SqlClient
  const told_days = days - Math.min(OUTBOX_UNREAD_TOLD_DAYS, days / 2)
  const before = daysBefore(yield* Clock.currentTimeMillis, told_days)
  const rows = yield* sql<Omit<Unread, "since"> & { readonly since: Date }>`SELECT dm, count(*)::int AS count,
      min(created_at) AS since
    FROM choir_control.outbox
    WHERE delivered_at IS NULL AND failed_at IS NULL AND gateway = ANY(${consolesOf(config)}::text[])
      AND created_at < ${before}::timestamptz
    GROUP BY dm ORDER BY dm`
  return rows.map((row) => ({ ...row, since: row.since.toISOString() }))
})

const withFiles = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly outbox_id: string }>`SELECT outbox_id::text FROM choir_control.outbox
    WHERE delivered_at IS NULL AND failed_at IS NULL AND form -> 'files' IS NOT NULL`
  return rows.map(({ outbox_id }) => outbox_id)
})

/** The gateways at which a message waits until somebody opens them, however long that takes. */
export const consolesOf = (config: Pick<Config, "gateways">): ReadonlyArray<string> =>
  Object.keys(config.gateways).filter((name) => traitsOf(config, name).is_local)

/**
 * Splits a text into parts of at most `chars_max` (2 or more) UTF-16 units, at the ends of paragraphs, lines or words, and never
 * inside a surrogate pair (R43). Only blank space at the cuts is lost. A blank text has no parts.
 */
export const chunkText = (text: string, chars_max: number): ReadonlyArray<string> => {
  const parts: Array<string> = []
  let rest = text
  while (rest.length > chars_max) {
    const { end, next } = placeToCut(rest, 0, chars_max)
    parts.push(rest.slice(0, end))
    rest = rest.slice(next)
  }
  return [...parts, rest].filter((part) => part.trim() !== "")
}

/** A message before it is split into the rows that its gateway can show. */
export type OutboxMessage = Omit<
  Outgoing,
  "outbox_id" | "part" | "sent_parts" | "failure" | "created_ms" | "edited_id"
> & {
  readonly session_id: SessionId | null
  /** Whether its agent wrote it in sight of text from outside; absent where nobody knows. */
  readonly labelled?: boolean
}

/**
 * The texts of a message's rows. Where a message has a longest text, each part of choird's own is a row, with room for the mark, since the last one has the
 * buttons; an agent's text is split when it is sent, since only then its marks are known. A console shows a text as it is.
 */
const partsOf = (config: Config, { form, gateway, source, text }: OutboxMessage): ReadonlyArray<string> => {
  const { buttons, text_chars_max } = traitsOf(config, gateway)
  if (needsForm(form)) return buttons ? [text] : []
  if (form?.files !== undefined || text_chars_max === undefined) return [text]
  if (source === "event") return text.trim() === "" ? [] : [text]
  return chunkText(text, text_chars_max - MARK_CHARS)
}

/**
 * Stores messages once for each (source, source_id, part), within the caller's transaction. Their DMs are locked first, in order:
 * so the ids of a DM commit in order, and a reader that continues after an id misses none.
 */
export const insertOutbox = Effect.fnUntraced(function* (config: Config, messages: ReadonlyArray<OutboxMessage>) {
  const sql = yield* SqlClient.SqlClient
  const rows = messages.flatMap((message) =>
    partsOf(config, message).map((text, part, parts) => ({
      ...message,
      text,
      part,
      // Buttons are below the last part.
      shown: part === parts.length - 1 && message.form ? canonicalJson(message.form) : "",
      session: message.session_id ?? "",
      reply: String(rowId(message.in_reply_to ?? "") ?? ""),
      labels: message.labelled === undefined ? "" : String(message.labelled)
    }))
  )
  if (rows.length === 0) return
  const dms = [...new Set(rows.map(({ dm }) => dm))].sort()
  const column = <K extends keyof (typeof rows)[number]>(key: K) => rows.map((row) => row[key])
  yield* sql`INSERT INTO choir_control.outbox
      (source, source_id, part, gateway, dm, agent_id, session_id, kind, text, in_reply_to, form, labelled)
    SELECT source, source_id, part, gateway, dm, agent_id, nullif(session, ''), kind, text, nullif(reply, '')::bigint,
      nullif(shown, '')::jsonb, nullif(labels, '')::boolean
    FROM (
      SELECT count(pg_advisory_xact_lock(hashtextextended('choir/dm/' || name, 0))) AS locks
      FROM unnest(${dms}::text[]) AS name
    ) AS dms, unnest(
      ${column("source")}::text[], ${column("source_id")}::text[], ${column("part")}::int[],
      ${column("gateway")}::text[], ${column("dm")}::text[], ${column("agent_id")}::text[],
      ${column("session")}::text[], ${column("kind")}::text[], ${column("text")}::text[],
      ${column("reply")}::text[], ${column("shown")}::text[], ${column("labels")}::text[]
    ) AS row (source, source_id, part, gateway, dm, agent_id, session, kind, text, reply, shown, labels)
    WHERE dms.locks > 0
    ON CONFLICT (source, source_id, part) DO NOTHING`
})

/** Stores a notice where it belongs; answers the DM, if config.json has one. */
const insertNotice = Effect.fnUntraced(function* (config: Config, { advice, dms, text, ...notice }: Notice) {
  const place = yield* unaskedPlace(config, notice.agent_id, dms)
  if (place === undefined) return undefined
  const words = advice === undefined ? text : `${text} ${advice(config, place.dm)}`
  const row = {
    ...notice,
    ...place,
    text: words,
    kind: "notice",
    source: "choird",
    session_id: null,
    in_reply_to: null
  } as const
  yield* insertOutbox(config, [row])
  return place.dm
})
