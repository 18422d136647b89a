/** Writes the whole database into one stream while choird runs (R70). */
import { createHash, type Hash } from "node:crypto"
import { gzip } from "node:zlib"
import { Clock, Context, DateTime, Effect, Layer, Queue, Schema, Semaphore, Stream } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import type { SessionId } from "#schema/Ids.ts"
import { BACKUP_FORMAT, type BackupRecord, EVENTS, recordLine } from "#src/shared/events/backupFormat.ts"
import { hex } from "#src/shared/events/hashChain.ts"
import { agentSchemas, readRows, type StoredTable, storedTables } from "./backupTables.ts"
import { Database } from "./Database.ts"
import { ReadsOnly } from "./DatabaseFence.ts"
import { latestMigration } from "./Migrations.ts"
import { sqlProblem } from "./sqlState.ts"
import { BACKUP_LINE_BYTES_MAX } from "#src/shared/events/BackupReader.ts"

const BACKUP_PIECE_BYTES = 1024 * 1024
/** Compressed pieces of a backup that wait for their reader. */
const BACKUP_PIECES_MAX = 4

/** The database could not be read to its end. The part of the backup that was written is worthless. */
export class BackupFailed extends Schema.TaggedError<BackupFailed>()("BackupFailed", { problem: Schema.String }) {
  override get message() {
    return `the backup did not finish: ${this.problem}. Run it again`
  }
}

/** Backups of the whole database. */
export class Backup extends Context.Service<
  Backup,
  {
    /**
     * The file of a backup (`src/shared/events/backupFormat.ts`), compressed. It is one moment of the database: the one at which its last
     * transaction begins, which reads everything but the earlier events, since those never change. Only that transaction keeps the
     * embedded database from others. One backup runs at a time; another waits.
     */
    file(version: string): Stream.Stream<Uint8Array, BackupFailed>
  }
>()("choir/choird/Backup") {
  static readonly layer = Layer.effect(
    Backup,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { kind } = yield* Database
      const turn = yield* Semaphore.make(1)
      return Backup.of({
        file: (version) =>
          Stream.callback<Uint8Array, BackupFailed>(
            (queue) =>
              writeAll(kind, version, (piece) => Queue.offer(queue, piece)).pipe(
                Effect.mapError((error) =>
                  SqlError.isSqlError(error) ? new BackupFailed({ problem: sqlProblem(error) }) : error
                ),
                turn.withPermit,
                Effect.provideService(SqlClient.SqlClient, sql),
                Effect.matchCauseEffect({
                  onSuccess: () => Queue.end(queue),
                  onFailure: (cause) => Queue.failCause(queue, cause)
                })
              ),
            { bufferSize: BACKUP_PIECES_MAX, strategy: "suspend" }
          )
      })
    })
  )
}

const compressed = (text: string) =>
  Effect.callback<Uint8Array>((resume) => {
    gzip(text, { level: 1 }, (error, bytes) => resume(error === null ? Effect.succeed(bytes) : Effect.die(error)))
  })

/** Collects lines into pieces. Each is a gzip member of its own, which together are one file. */
const makeWriter = (offer: (piece: Uint8Array) => Effect.Effect<unknown>) => {
  const whole = createHash("sha256")
  let text = ""
  const flush = Effect.suspend(() => {
    const piece = text
    text = ""
    return piece === "" ? Effect.void : Effect.flatMap(compressed(piece), offer)
  })
  /** `part` is the digest of the rows of one table. */
  const lines = (added: ReadonlyArray<string>, part?: Hash) =>
    Effect.suspend(() => {
      const piece = `${added.join("\n")}\n`
      whole.update(piece)
      part?.update(piece)
      text += piece
      return text.length < BACKUP_PIECE_BYTES ? Effect.void : flush
    })
  return {
    lines,
    record: (record: BackupRecord) => lines([recordLine(record)]),
    end: Effect.suspend(() =>
      Effect.andThen(lines([recordLine({ type: "end", sha256: whole.copy().digest("hex") })]), flush)
    )
  }
}
type Writer = ReturnType<typeof makeWriter>

/** Writes one part of a table: its record, the rows that `read` finds, and their digest. */
const makeParts = (writer: Writer) =>
  Effect.fnUntraced(function* (
    stored: StoredTable,
    read: (
      take: (lines: ReadonlyArray<string>) => Effect.Effect<void, BackupFailed>
    ) => Effect.Effect<void, BackupFailed | SqlError.SqlError, SqlClient.SqlClient>
  ) {
    const sql = yield* SqlClient.SqlClient
    const { columns, schema, table } = stored
    const [first, ...others] = columns
    if (first === undefined || stored.keys.length === 0)
      return yield* new BackupFailed({ problem: `the table ${stored.name} has no primary key` })
    const counters = yield* Effect.forEach(stored.counters, ({ column, sequence }) =>
      Effect.map(
        sql<{ value: string | null }>`SELECT pg_sequence_last_value(${sequence}::regclass)::text AS value`,
        ([row]) => [column, row?.value ?? "0"] as const
      )
    )
    yield* writer.record({
      type: "table",
      schema,
      table,
      columns: [first, ...others],
      counters: Object.fromEntries(counters)
    })
    const hash = createHash("sha256")
    let rows = 0
    yield* read((lines) => {
      if (lines.some((line) => line.length > BACKUP_LINE_BYTES_MAX))
        return Effect.fail(
          new BackupFailed({ problem: `a row of ${stored.name} is larger than ${BACKUP_LINE_BYTES_MAX} bytes` })
        )
      rows += lines.length
      return writer.lines(lines, hash)
    })
    yield* writer.record({ type: "table_end", rows, sha256: hash.digest("hex") })
  })

interface Head {
  readonly session_id: SessionId
  readonly last_rev: number
  readonly head_hash: Uint8Array | null
}

const REV = [{ name: "rev", type: "integer" }]

type Part = ReturnType<typeof makeParts>

const isEvents = ({ schema, table }: StoredTable) => schema === EVENTS.schema && table === EVENTS.table

/** Writes the events that were not written yet, each time it is asked to, and knows the heads up to which it did. */
const makeEventsPart = (tables: ReadonlyArray<StoredTable>, part: Part) => {
  // The events of an archived session are in a file of the home (docs/retention.md). An older database has none.
  const archives = tables.some(({ columns, table }) => table === "sessions" && columns.includes("archive"))
  const copied = new Map<SessionId, number>()
  /** Also of sessions that are archived or deleted in the meantime: their events are already copied. */
  const newest = new Map<SessionId, Head>()
  /** The events of each session that are not copied yet. */
  const events =
    (all: ReadonlyArray<Head>) => (take: (lines: ReadonlyArray<string>) => Effect.Effect<void, BackupFailed>) =>
      Effect.forEach(
        all,
        ({ last_rev, session_id }) => {
          const from = copied.get(session_id) ?? 0
          copied.set(session_id, last_rev)
          const table = tables.find(isEvents)
          if (table === undefined || from === last_rev) return Effect.void
          const where = {
            text: "session_id = $1::text AND rev > $2::int AND rev <= $3::int",
            values: [session_id, from, last_rev]
          }
          return readRows({ table, keys: REV, where }, take)
        },
        { discard: true }
      )
  const write = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const all = yield* sql<Head>`SELECT session_id, last_rev, head_hash FROM choir_control.sessions
      WHERE ${archives ? sql.literal("archive IS NULL") : sql.literal("true")} ORDER BY session_id`
    for (const head of all) newest.set(head.session_id, head)
    yield* Effect.forEach(tables.filter(isEvents), (table) => part(table, events(all)), { discard: true })
  })
  return { write, heads: () => newest.values() }
}

const writeAll = Effect.fnUntraced(function* (
  engine: "embedded" | "postgres",
  version: string,
  offer: (piece: Uint8Array) => Effect.Effect<unknown>
) {
  const sql = yield* SqlClient.SqlClient
  const writer = makeWriter(offer)
  const part = makeParts(writer)
  const agents = yield* agentSchemas
  const tables = yield* storedTables(agents)
  const events = makeEventsPart(tables, part)

  const migration = yield* latestMigration()
  const created_at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
  yield* writer.record({
    type: "header",
    format: BACKUP_FORMAT,
    choird: version,
    migration,
    engine,
    created_at,
    agents
  })
  yield* events.write
  yield* sql
    .withTransaction(
      Effect.gen(function* () {
        yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`
        yield* events.write
        for (const table of tables.filter((each) => !isEvents(each)))
          yield* part(table, (take) => readRows({ table, keys: table.keys }, take))
        for (const { head_hash, last_rev, session_id } of events.heads())
          yield* writer.record({
            type: "session",
            session_id,
            last_rev,
            head: head_hash === null ? null : hex(head_hash)
          })
      })
    )
    .pipe(Effect.provideService(ReadsOnly, true))
  yield* writer.end
})
