/** The audit table: a row for each refused action, and for each change of permissions (R77). Equal refusals are counted in one row. */
import { type Cause, Clock, Context, Effect, Layer, Result, Schedule, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { AuditRow } from "#schema/SystemApi.ts"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import { restarted } from "#src/shared/background.ts"
import { canonicalJson, storableJson } from "#src/shared/text/canonicalJson.ts"
import { DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { isConnectionLost, sqlProblem } from "#src/choird/database/sqlState.ts"
import { count, makeLabels } from "./metrics.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** Canonical bytes of an audit row's detail; a larger one is left out. */
export const AUDIT_DETAIL_BYTES_MAX = 8 * 1024
/** Time that the write of an audit row may delay the audited action. */
const AUDIT_MS_MAX = 2000
/** Pause between two attempts to write the rows that wait for the database. */
export const AUDIT_RETRY_MS = 5000

export interface AuditEntry {
  /** The asker: `agent:<id>`, `operator`, `gateway:<name>`, `choird`. */
  readonly who: string
  /** The action, such as `rpc.GET_SECRETS`. */
  readonly action: string
  readonly session_id?: SessionId
  readonly agent_id?: AgentId
  /** Names and reasons, never a secret's value. `refused`, the kind of a refusal, is what repetitions are summed by. */
  readonly detail: Readonly<Record<string, Schema.Json>>
  /** The kind that repetitions are summed by although nothing was refused: for an action that an agent can repeat at will. */
  readonly repeats?: string
}

/** The facts about the request that a fiber answers, so that a refusal has one row and its asker. */
export interface AuditedRequest {
  recorded: boolean
  agent_id: AgentId | undefined
  session_id: SessionId | undefined
}

export const CurrentAuditedRequest = Context.Reference<AuditedRequest | undefined>(
  "choir/choird/CurrentAuditedRequest",
  {
    defaultValue: () => undefined
  }
)

/**
 * Writes audit rows; no failure stops the audited action. Up to AUDIT_KEPT_MAX rows wait for a database that is away, and rows beyond them
 * are logged.
 */
export class Audit extends Context.Service<
  Audit,
  {
    /**
     * Writes a row at once, but of equal refusals and repetitions only the first: those within AUDIT_WINDOW_MS after it are counted in one
     * further row, with the detail of the newest, so that no flood fills the table.
     */
    record(entry: AuditEntry): Effect.Effect<void>
    /**
     * Writes one row for `count` entries that its caller summed, this one the newest, or fails: nothing of it waits in memory, so that the
     * caller can mark afterwards what it audited.
     */
    recordSum(entry: AuditEntry, count: number): Effect.Effect<void, DatabaseAway>
    /** The newest rows, the oldest of them first. */
    last(options: { readonly count: number; readonly agent_id?: AgentId }): Effect.Effect<ReadonlyArray<AuditRow>>
  }
>()("choir/choird/Audit") {
  static readonly layer = Layer.effect(
    Audit,
    Effect.suspend(() => make())
  )
}

/** Marks the request that this fiber answers, if any, as having its row. */
export const markRecorded = Effect.map(Effect.service(CurrentAuditedRequest), (request) => {
  if (request !== undefined) request.recorded = true
})

const repeated = (work: Effect.Effect<void>, every_ms: number, name: string) =>
  work.pipe(Effect.repeat(Schedule.spaced(every_ms)), restarted(name), Effect.forkScoped)

/** Writes rows, of which those that the database does not take now wait in memory. */
const makeRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const retries = makeRetryBuffer()

  const insert = ({ count, entry, since_ms }: Sum) =>
    Effect.suspend(() => {
      const { action, agent_id, session_id, who } = entry
      const since = new Date(since_ms).toISOString()
      const detail = detailText(entry.detail)
      // An attempt whose answer was lost may have written a buffered row.
      const unless = retries.isEmpty()
        ? sql`true`
        : sql`NOT EXISTS (SELECT 1 FROM choir_control.audit AS old WHERE old.since = ${since}::timestamptz
            AND old.who = ${storableJson(who)} AND old.action = ${storableJson(action)} AND old.detail = ${detail}::jsonb
            AND old.session_id IS NOT DISTINCT FROM ${session_id ?? null}::text AND old.agent_id IS NOT DISTINCT FROM ${agent_id ?? null}::text)`
      return sql`INSERT INTO choir_control.audit (since, who, action, session_id, agent_id, detail, count)
        SELECT ${since}::timestamptz, ${storableJson(who)}::text, ${storableJson(action)}::text, ${session_id ?? null}::text,
          ${agent_id ?? null}::text, ${detail}::jsonb, ${count}::int WHERE ${unless}`
    }).pipe(Effect.timeout(AUDIT_MS_MAX))

  const lost = ({ count, entry: { action, who } }: Sum, cause?: Cause.Cause<unknown>) =>
    Effect.logError("an audit row was not written", { who, action, count }, ...(cause === undefined ? [] : [cause]))

  const buffer = (row: Sum) =>
    Effect.suspend(() => {
      const dropped = retries.add(row)
      return dropped === undefined ? Effect.void : lost(dropped)
    })

  /** Writes a row, or buffers it while the database is away; nobody waits for the database. */
  const write = (row: Sum) =>
    Effect.gen(function* () {
      if (retries.isEmpty()) yield* insert(row)
      else yield* buffer(row)
    }).pipe(
      Effect.catchTag(["SqlError", "TimeoutError"], (error) =>
        Effect.andThen(Effect.logWarning("audit rows wait for the database", problem(error)), buffer(row))
      ),
      Effect.catchCause((cause) => lost(row, cause))
    )

  /** Writes the buffered rows. Stops when the database is still away; a row that the database refuses does not hold up the others. */
  const retry = Effect.gen(function* () {
    for (const row of retries.all()) {
      const result = yield* Effect.result(insert(row))
      if (Result.isSuccess(result)) retries.remove(row)
      else if (result.failure._tag === "TimeoutError" || isConnectionLost(result.failure)) return
    }
  })

  /** One attempt to write what is buffered, then the log has it. */
  const end = Effect.gen(function* () {
    yield* retry
    yield* Effect.forEach(retries.all(), (row) => lost(row), { discard: true })
  })
  return { insert, write, retry, end }
})

const make = Effect.fnUntraced(function* () {
  const sql = yield* SqlClient.SqlClient
  const onDatabase = yield* useDatabase
  const sums = makeAuditSums()
  const actions = makeLabels()
  const kinds = makeLabels()
  const rows = yield* makeRows

  const flush = Effect.gen(function* () {
    const due = sums.due(yield* monotonicMs)
    yield* Effect.forEach(due, rows.write, { discard: true })
  })

  yield* repeated(flush, AUDIT_WINDOW_MS, "the sums of the audit")
  yield* repeated(rows.retry, AUDIT_RETRY_MS, "the retry of audit rows")
  // Counted and buffered rows must not be lost with the process.
  yield* Effect.addFinalizer(() => Effect.andThen(Effect.forEach(sums.all(), rows.write, { discard: true }), rows.end))

  return Audit.of({
    record: Effect.fn("Audit.record")(function* (entry) {
      yield* markRecorded
      const refused = refusalIn(entry)
      if (refused !== undefined) yield* count("refusals", { action: actions(entry.action), kind: kinds(refused) })
      const first = sums.note(entry, yield* monotonicMs, yield* Clock.currentTimeMillis)
      if (first !== undefined) yield* rows.write(first)
    }),
    recordSum: Effect.fn("Audit.recordSum")(function* (entry, count) {
      yield* onDatabase(rows.insert({ entry, count, since_ms: yield* Clock.currentTimeMillis })).pipe(
        Effect.catchTag("TimeoutError", (error) => Effect.fail(new DatabaseAway({ problem: problem(error) })))
      )
    }),
    last: Effect.fn("Audit.last")(function* ({ agent_id, count }) {
      const found = yield* sql<AuditRow>`SELECT id::text AS audit_id, who, action, session_id, agent_id, detail, count,
          to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS at,
          to_char(coalesce(since, at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS since
        FROM choir_control.audit WHERE ${agent_id === undefined ? sql`true` : sql`agent_id = ${agent_id}`}
        ORDER BY id DESC LIMIT ${count}`
      return found.toReversed()
    }, Effect.orDie)
  })
})

const problem = (error: SqlError.SqlError | Cause.TimeoutError): string =>
  error._tag === "TimeoutError" ? `it did not answer in ${AUDIT_MS_MAX} ms` : sqlProblem(error)

/** A detail as storable JSON of bounded size: a refused request may hold anything. */
const detailText = (detail: AuditEntry["detail"]): string => {
  const text = canonicalJson(storableJson(detail))
  const bytes = Buffer.byteLength(text)
  return bytes <= AUDIT_DETAIL_BYTES_MAX ? text : canonicalJson({ left_out_bytes: bytes })
}

/** Time during which entries that differ only in their detail are counted before they get a row together (R77). */
export const AUDIT_WINDOW_MS = 60_000
/** Kinds of one asker that are distinguished at once; its further ones are counted together, and no other asker's with them. */
export const AUDIT_SUMS_MAX = 200

/** A row: one entry, or the newest of `count` equal ones since `since_ms`. */
interface Sum {
  readonly entry: AuditEntry
  readonly count: number
  readonly since_ms: number
}

interface Window {
  /** Entries that came after the row was written. */
  more: Sum | undefined
  ends_ms: number
  readonly owner: string
}

interface AuditSums {
  /**
   * The row to write now; `undefined` for an entry that is only counted.
   *
   * @param at_ms the time of day that the row has.
   */
  note(entry: AuditEntry, now_ms: number, at_ms?: number): Sum | undefined
  /** The rows of the windows that are over. One without a further entry is forgotten. */
  due(now_ms: number): ReadonlyArray<Sum>
  /** The rows of all windows, at the end. */
  all(): ReadonlyArray<Sum>
}

/** The kind of all of an asker's entries beyond AUDIT_SUMS_MAX. */
const OVERFLOW = "more kinds"

/** The kind of a refusal; `undefined` for an action that was not refused. */
export const refusalIn = ({ detail }: Pick<AuditEntry, "detail">): string | undefined =>
  typeof detail["refused"] === "string" ? detail["refused"] : undefined

/** The key of equal entries: the whole detail for the operator, who sends no floods, and the kind alone for anybody else. */
const kindOf = ({ detail, repeats, who }: AuditEntry) =>
  who === "operator" ? sha256(canonicalJson(storableJson(detail))) : (refusalIn({ detail }) ?? repeats ?? "")

const keyOf = (entry: AuditEntry) =>
  [entry.who, entry.action, entry.session_id ?? "", entry.agent_id ?? "", kindOf(entry)].join(" ")

/**
 * The owner of a row: each agent, with choird's rows about it apart, and otherwise the sort of asker, so that strangers of many addresses
 * are one. Owners share no bound, here and in the table (`auditOwner` of retention/rules.ts says the same to the database).
 */
const ownerOf = ({ agent_id, session_id, who }: AuditEntry) => {
  const [sort = ""] = who.split(":", 1)
  return sort === "agent" || sort === "choird" ? `${sort} ${agent_id ?? session_id ?? ""}` : sort
}

export const makeAuditSums = (): AuditSums => {
  const windows = new Map<string, Window>()
  const windowsOf = new Map<string, number>()
  const countWindows = (owner: string, change: 1 | -1) => {
    const count = (windowsOf.get(owner) ?? 0) + change
    if (count === 0) windowsOf.delete(owner)
    else windowsOf.set(owner, count)
  }
  const taken = () => {
    const rows: Array<Sum> = []
    for (const window of windows.values()) if (window.more !== undefined) rows.push(window.more)
    return rows
  }
  return {
    note: (entry, now_ms, at_ms = now_ms) => {
      if (refusalIn(entry) === undefined && entry.repeats === undefined) return { entry, count: 1, since_ms: at_ms }
      const own = keyOf(entry)
      const owner = ownerOf(entry)
      const isOwn = windows.has(own) || (windowsOf.get(owner) ?? 0) < AUDIT_SUMS_MAX
      const key = isOwn ? own : `${OVERFLOW} ${owner}`
      const found = windows.get(key)
      if (found === undefined) {
        windows.set(key, { more: undefined, ends_ms: now_ms + AUDIT_WINDOW_MS, owner })
        countWindows(owner, 1)
        return { entry, count: 1, since_ms: at_ms }
      }
      found.more = { entry, count: (found.more?.count ?? 0) + 1, since_ms: found.more?.since_ms ?? at_ms }
      return undefined
    },
    due: (now_ms) => {
      const rows: Array<Sum> = []
      for (const [key, window] of windows) {
        if (window.ends_ms > now_ms) continue
        if (window.more === undefined) {
          windows.delete(key)
          countWindows(window.owner, -1)
        } else rows.push(window.more)
        window.more = undefined
        window.ends_ms = now_ms + AUDIT_WINDOW_MS
      }
      return rows
    },
    all: taken
  }
}

/** Audit rows that wait for a database that is away. */
const AUDIT_KEPT_MAX = 1000

/** The rows that the database has not taken yet, the oldest first. */
interface RetryBuffer {
  isEmpty(): boolean
  /** Adds a row and returns the oldest one, dropped, when there are more than AUDIT_KEPT_MAX. */
  add(row: Sum): Sum | undefined
  remove(row: Sum): void
  all(): ReadonlyArray<Sum>
}

const makeRetryBuffer = (): RetryBuffer => {
  const rows = new Set<Sum>()
  return {
    isEmpty: () => rows.size === 0,
    add: (row) => {
      rows.add(row)
      const dropped = rows.size > AUDIT_KEPT_MAX ? rows.values().next().value : undefined
      if (dropped !== undefined) rows.delete(dropped)
      return dropped
    },
    remove: (row) => void rows.delete(row),
    all: () => [...rows]
  }
}
