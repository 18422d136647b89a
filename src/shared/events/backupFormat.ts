/**
 * The file of `choirctl db backup` (R70): gzip over lines. A line that begins with `#` is a record of this file, any other is a row of
 * the table that the last record named, as a JSON object by column. The order: header, then tables (one may come in several parts),
 * then a line for each session, then the end. All that a digest covers are the lines before it with their line feeds.
 */
import { Effect, Schema, SchemaGetter } from "effect"
import { AgentId, Rev, SessionId, Sha256 } from "#schema/Ids.ts"

/** Raised when an older Choir could not read a file any more. */
export const BACKUP_FORMAT = 2

/** The first character of a record. A row begins with a brace. */
export const RECORD_MARK = "#"

const Name = Schema.String.check(Schema.isPattern(/^[a-z][a-z0-9_-]{0,62}$/u))

export const BackupHeader = Schema.Struct({
  type: Schema.Literal("header"),
  format: Schema.Natural,
  choird: Schema.String,
  /** The newest migration of the database. */
  migration: Schema.Natural,
  engine: Schema.Literals(["embedded", "postgres"]),
  created_at: Schema.String,
  /** The agents that have a schema of their own. */
  agents: Schema.Array(AgentId)
})
export type BackupHeader = typeof BackupHeader.Type

/** The rows up to the next record belong to this table; `counters` is where its identity columns stand. */
export const BackupTable = Schema.Struct({
  type: Schema.Literal("table"),
  schema: Name,
  table: Name,
  columns: Schema.NonEmptyArray(Name),
  counters: Schema.Record(Name, Schema.String.check(Schema.isPattern(/^[0-9]{1,19}$/u)))
})
export type BackupTable = typeof BackupTable.Type

const BackupTableEnd = Schema.Struct({ type: Schema.Literal("table_end"), rows: Schema.Natural, sha256: Sha256 })

/** A session's head, as its own row has it. */
const BackupSession = Schema.Struct({
  type: Schema.Literal("session"),
  session_id: SessionId,
  last_rev: Rev,
  head: Schema.NullOr(Sha256)
})

const BackupEnd = Schema.Struct({ type: Schema.Literal("end"), sha256: Sha256 })

export const BackupRecord = Schema.Union([BackupHeader, BackupTable, BackupTableEnd, BackupSession, BackupEnd])
export type BackupRecord = typeof BackupRecord.Type

/** A record as its line, without the line feed. */
export const recordLine = (record: BackupRecord): string => `${RECORD_MARK}${JSON.stringify(record)}`

/** Bytes as Postgres writes them into JSON. */
const Bytea = Schema.String.check(Schema.isPattern(/^\\x(?:[0-9a-f]{2})*$/u)).pipe(
  Schema.decodeTo(Schema.Uint8Array, {
    decode: SchemaGetter.transform((text) => Buffer.from(text.slice(2), "hex")),
    encode: SchemaGetter.transform((bytes) => `\\x${Buffer.from(bytes).toString("hex")}`)
  })
)
/** A column that rows of before its migration do not have. */
const later = <S extends Schema.Top>(column: S) =>
  Schema.NullOr(column).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null)))

/** A row of `session_events`, as far as its chain is proved from it (`eventRow.ts`). */
export const BackupEvent = Schema.Struct({
  session_id: SessionId,
  rev: Schema.Natural,
  event_type: Schema.String,
  lane: Schema.String,
  created_at: Schema.String,
  canonical: Schema.NullOr(Schema.String),
  hash: Bytea,
  v: later(Schema.Natural),
  salt: later(Bytea),
  payload_digest: later(Bytea),
  body: later(Bytea)
})

/** The table whose rows are events, in any number of parts. */
export const EVENTS = { schema: "choir_control", table: "session_events" } as const
