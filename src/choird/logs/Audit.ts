/** A row for each action that was refused, and for each that changed who may do what (R77). */
import { Clock, Context, Effect, Layer, Schedule, type Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { AuditRow } from "#schema/AuditApi.ts"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import { canonicalJson, storableJson } from "#src/shared/canonicalJson.ts"
import {
  AUDIT_DAYS_MAX,
  AUDIT_DETAIL_BYTES_MAX,
  AUDIT_MS_MAX,
  AUDIT_PRUNE_MS,
  AUDIT_PRUNED_ROWS_MAX,
  AUDIT_ROWS_MAX,
  AUDIT_WINDOW_MS
} from "#src/shared/limits.ts"
import { count, makeLabels } from "#src/choird/telemetry/metrics.ts"
import { makeAuditSums, refusalIn, type Sum } from "./auditSums.ts"

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

/** Writes audit rows; a failure is logged and never stops what is audited. */
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

  const write = ({ count, entry, since_ms }: Sum) => {
    const { action, agent_id, session_id, who } = entry
    const since = new Date(since_ms).toISOString()
    return Effect.suspend(
      () => sql`INSERT INTO choir_control.audit (since, who, action, session_id, agent_id, detail, count)
        VALUES (${since}, ${storableJson(who)}, ${storableJson(action)}, ${session_id ?? null}, ${agent_id ?? null},
          ${detailText(entry.detail)}::jsonb, ${count})`
    ).pipe(
      Effect.timeout(AUDIT_MS_MAX),
      Effect.catchCause((cause) => Effect.logError("an audit row was not written", { who, action, count }, cause))
    )
  }

  const flush = Effect.gen(function* () {
    const due = sums.due(yield* Clock.currentTimeMillis)
    yield* Effect.forEach(due, write, { discard: true })
  })

  /** A few thousand rows at a time, so that no statement takes long. */
  const prune = sql`DELETE FROM choir_control.audit WHERE id IN (
      SELECT id FROM choir_control.audit
      WHERE id <= (SELECT max(id) FROM choir_control.audit) - ${AUDIT_ROWS_MAX}::bigint
        OR at < now() - make_interval(days => ${AUDIT_DAYS_MAX}::int)
      ORDER BY id LIMIT ${AUDIT_PRUNED_ROWS_MAX}) RETURNING id`.pipe(
    Effect.repeat({ while: (rows) => rows.length === AUDIT_PRUNED_ROWS_MAX }),
    Effect.catchCause((cause) => Effect.logWarning("old audit rows were not removed", cause))
  )

  yield* flush.pipe(Effect.repeat(Schedule.spaced(AUDIT_WINDOW_MS)), Effect.forkScoped)
  yield* prune.pipe(Effect.repeat(Schedule.spaced(AUDIT_PRUNE_MS)), Effect.forkScoped)
  // What was counted last must not be lost with the process; a database that is away gets its one try.
  yield* Effect.addFinalizer(() => Effect.forEach(sums.all(), write, { discard: true }))

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

/** What was refused may hold anything, so that it is made storable and bounded before it is kept. */
const detailText = (detail: AuditEntry["detail"]): string => {
  const text = canonicalJson(storableJson(detail))
  const bytes = Buffer.byteLength(text)
  return bytes <= AUDIT_DETAIL_BYTES_MAX ? text : canonicalJson({ left_out_bytes: bytes })
}
