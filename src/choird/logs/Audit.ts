/** A row for each action that was refused, and for each that changed who may do what (R77). */
import { type Cause, Clock, Context, Effect, Layer, Result, Schedule, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { AuditRow } from "#schema/SystemApi.ts"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import { canonicalJson, storableJson } from "#src/shared/text/canonicalJson.ts"
import { isConnectionLost, sqlProblem } from "#src/choird/database/sqlState.ts"
import { count, makeLabels } from "./metrics.ts"
import { AUDIT_WINDOW_MS, makeAuditSums, refusalIn, type Sum } from "./auditSums.ts"

/** Canonical bytes of an audit row's detail; a larger one is left out. */
export const AUDIT_DETAIL_BYTES_MAX = 8 * 1024
/** How long an audit row may take before what is audited goes on without it. */
const AUDIT_MS_MAX = 2000
export const AUDIT_RETRY_MS = 5000

export interface AuditEntry {
  /** Who asked: `agent:<id>`, `operator`, `gateway:<name>`, `choird`. */
  readonly who: string
  /** What was asked, such as `rpc.GET_SECRETS`. */
  readonly action: string
  readonly session_id?: SessionId
  readonly agent_id?: AgentId
  /** Names and reasons, never a secret's value. `refused`, the kind of a refusal, is what repetitions are summed by. */
  readonly detail: Readonly<Record<string, Schema.Json>>
}

/** What the rest of choird knows of the request that a fiber answers, so that a refusal has one row and its asker. */
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
 * Writes audit rows; no failure stops what is audited. Up to AUDIT_KEPT_MAX rows wait for a database that is away, and what cannot be kept
 * is logged.
 */
export class Audit extends Context.Service<
  Audit,
  {
    /**
     * A row at once, but of equal refusals only the first: those that follow within AUDIT_WINDOW_MS are counted in one row more, with
     * the newest one's detail, so that no flood fills the table.
     */
    record(entry: AuditEntry): Effect.Effect<void>
    /** The newest rows, the oldest of them first. */
    last(options: { readonly count: number; readonly agent_id?: AgentId }): Effect.Effect<ReadonlyArray<AuditRow>>
  }
>()("choir/choird/Audit") {
  static readonly layer = Layer.effect(
    Audit,
    Effect.suspend(() => make())
  )
}

/** Says that the request which this fiber answers, if it does, has its row. */
export const markRecorded = Effect.map(Effect.service(CurrentAuditedRequest), (request) => {
  if (request !== undefined) request.recorded = true
})

const make = Effect.fnUntraced(function* () {
  const sql = yield* SqlClient.SqlClient
  const sums = makeAuditSums()
  const actions = makeLabels()
  const kinds = makeLabels()

  const kept = makeKeptRows()

  const insert = ({ count, entry, since_ms }: Sum) =>
    Effect.suspend(() => {
      const { action, agent_id, session_id, who } = entry
      const since = new Date(since_ms).toISOString()
      const detail = detailText(entry.detail)
      // A try whose answer was lost may have written the row that is kept.
      const unless = kept.isEmpty()
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

  const keep = (row: Sum) =>
    Effect.suspend(() => {
      const crowdedOut = kept.add(row)
      return crowdedOut === undefined ? Effect.void : lost(crowdedOut)
    })

  /** What the database does not take while it is away is kept until it is back; nobody waits for it meanwhile. */
  const write = (row: Sum) =>
    Effect.gen(function* () {
      if (kept.isEmpty()) yield* insert(row)
      else yield* keep(row)
    }).pipe(
      Effect.catchTag(["SqlError", "TimeoutError"], (error) =>
        Effect.andThen(Effect.logWarning("audit rows wait for the database", problem(error)), keep(row))
      ),
      Effect.catchCause((cause) => lost(row, cause))
    )

  /** Ends at the first sign that the database is still away; a row that it refuses for itself does not hold up the others. */
  const writeKept = Effect.gen(function* () {
    for (const row of kept.all()) {
      const result = yield* Effect.result(insert(row))
      if (Result.isSuccess(result)) kept.remove(row)
      else if (result.failure._tag === "TimeoutError" || isConnectionLost(result.failure)) return
    }
  })

  const flush = Effect.gen(function* () {
    const due = sums.due(yield* Clock.currentTimeMillis)
    yield* Effect.forEach(due, write, { discard: true })
  })

  yield* flush.pipe(Effect.repeat(Schedule.spaced(AUDIT_WINDOW_MS)), Effect.forkScoped)
  yield* writeKept.pipe(Effect.repeat(Schedule.spaced(AUDIT_RETRY_MS)), Effect.forkScoped)
  // What was counted or kept must not be lost with the process; a database that is away gets its one try, and then the log has them.
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      yield* Effect.forEach(sums.all(), write, { discard: true })
      yield* writeKept
      yield* Effect.forEach(kept.all(), (row) => lost(row), { discard: true })
    })
  )

  return Audit.of({
    record: Effect.fn("Audit.record")(function* (entry) {
      yield* markRecorded
      const refused = refusalIn(entry)
      if (refused !== undefined) yield* count("refusals", { action: actions(entry.action), kind: kinds(refused) })
      const first = sums.note(entry, yield* Clock.currentTimeMillis)
      if (first !== undefined) yield* write(first)
    }),
    last: Effect.fn("Audit.last")(function* ({ agent_id, count }) {
      const rows = yield* sql<AuditRow>`SELECT id::text AS audit_id, who, action, session_id, agent_id, detail, count,
          to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS at,
          to_char(coalesce(since, at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS since
        FROM choir_control.audit WHERE ${agent_id === undefined ? sql`true` : sql`agent_id = ${agent_id}`}
        ORDER BY id DESC LIMIT ${count}`
      return rows.toReversed()
    }, Effect.orDie)
  })
})

const problem = (error: SqlError.SqlError | Cause.TimeoutError): string =>
  error._tag === "TimeoutError" ? `it did not answer in ${AUDIT_MS_MAX} ms` : sqlProblem(error)

/** What was refused may hold anything, so that it is made storable and bounded before it is kept. */
const detailText = (detail: AuditEntry["detail"]): string => {
  const text = canonicalJson(storableJson(detail))
  const bytes = Buffer.byteLength(text)
  return bytes <= AUDIT_DETAIL_BYTES_MAX ? text : canonicalJson({ left_out_bytes: bytes })
}

/** Audit rows that wait for a database that is away, and how often it is asked for them. */
const AUDIT_KEPT_MAX = 1000

interface KeptRows {
  isEmpty(): boolean
  /** Answers the row that has to go for it, when there are AUDIT_KEPT_MAX. */
  add(row: Sum): Sum | undefined
  remove(row: Sum): void
  all(): ReadonlyArray<Sum>
}

const makeKeptRows = (): KeptRows => {
  const rows = new Set<Sum>()
  return {
    isEmpty: () => rows.size === 0,
    add: (row) => {
      rows.add(row)
      const out = rows.size > AUDIT_KEPT_MAX ? rows.values().next().value : undefined
      if (out !== undefined) rows.delete(out)
      return out
    },
    remove: (row) => void rows.delete(row),
    all: () => [...rows]
  }
}
