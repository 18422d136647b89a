/** The rows of plans, and of their times that are over. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import type { Source } from "#schema/Source.ts"
import type { PlanId, PlanKind, PlanSlot, PlanState, PlanSummary, SlotState } from "#schema/Plan.ts"
import type { SentAs } from "#src/choird/queues/Outbox.ts"
import { withSources } from "#src/shared/session/sources.ts"
import type { When } from "#src/shared/plans/When.ts"

/** A plan as the table has it. Instants are milliseconds since 1970. */
export interface PlanRow {
  readonly agent_id: AgentId
  readonly plan_id: PlanId
  readonly kind: PlanKind
  readonly schedule: string
  readonly zone: string
  readonly text: string
  readonly dm: ResourceName
  /** Whether text from outside was in sight of the one who wrote it. */
  readonly labelled: boolean
  /** Where that text came from. */
  readonly sources: ReadonlyArray<Source>
  readonly state: PlanState
  readonly reason: string | null
  readonly made_by: string
  readonly next_ms: number | null
  readonly created_ms: number
}

/** A plan to be made, and the request that makes it once. */
export type PlanToMake = Omit<PlanRow, "plan_id" | "reason" | "state" | "next_ms"> & {
  readonly request: string
  readonly next_ms: number
}

/** The times of a plan, as its row has them. */
export const whenOf = ({ kind, schedule }: Pick<PlanRow, "kind" | "schedule">): When =>
  kind === "once" ? { kind, at_ms: Date.parse(schedule) } : { kind, schedule }

export const scheduleOf = (when: When): string =>
  when.kind === "once" ? new Date(when.at_ms).toISOString() : when.schedule

const at = (ms: number) => new Date(ms).toISOString()
const ms = (column: string) => `(extract(epoch FROM ${column}) * 1000)::float8`

const COLUMNS = `p.agent_id, p.plan_id, p.kind, p.schedule, p.zone, p.text, p.dm, p.labelled, p.sources, p.state, p.reason, p.made_by,
  ${ms("p.next_at")} AS next_ms, ${ms("p.created_at")} AS created_ms`

/** Holds an agent's plans until the transaction ends: their numbers and their count are decided by one at a time. */
const lockPlans = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`SELECT pg_advisory_xact_lock(hashtextextended('choir/plans/' || ${agent_id}, 0))`
})

/** The plan that a request made. */
export const planOfRequest = Effect.fnUntraced(function* (agent_id: AgentId, request: string) {
  const sql = yield* SqlClient.SqlClient
  yield* lockPlans(agent_id)
  const [row] = yield* sql<PlanRow>`SELECT ${sql.literal(COLUMNS)} FROM choir_control.plans AS p
    WHERE agent_id = ${agent_id} AND request = ${request}`
  return row
})

/** The open plan that a request with this beginning made, for a time within a span. */
export const openOfRequests = Effect.fnUntraced(function* (
  agent_id: AgentId,
  prefix: string,
  from_ms: number,
  until_ms: number
) {
  const sql = yield* SqlClient.SqlClient
  yield* lockPlans(agent_id)
  const [row] = yield* sql<PlanRow>`SELECT ${sql.literal(COLUMNS)} FROM choir_control.plans AS p
    WHERE agent_id = ${agent_id} AND state = 'open' AND starts_with(request, ${prefix})
      AND next_at BETWEEN ${at(from_ms)}::timestamptz AND ${at(until_ms)}::timestamptz LIMIT 1`
  return row
})

/** How many plans an agent has that are open or paused, and how many were made since an instant. */
export const countPlans = Effect.fnUntraced(function* (agent_id: AgentId, since_ms: number) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly open: number; readonly made: number }>`SELECT
      count(*) FILTER (WHERE state IN ('open', 'paused'))::int AS open,
      count(*) FILTER (WHERE created_at > ${at(since_ms)}::timestamptz)::int AS made
    FROM choir_control.plans WHERE agent_id = ${agent_id}`
  return row ?? { open: 0, made: 0 }
})

export const insertPlan = Effect.fnUntraced(function* (plan: PlanToMake) {
  const sql = yield* SqlClient.SqlClient
  const { agent_id, created_ms, dm, kind, labelled, made_by, next_ms, request, schedule, sources, text, zone } = plan
  const [row] = yield* sql<PlanRow>`INSERT INTO choir_control.plans AS p
      (agent_id, plan_id, kind, schedule, zone, text, dm, labelled, sources, made_by, request, next_at, created_at, changed_at)
    SELECT ${agent_id}, coalesce(max(plan_id), 0) + 1, ${kind}, ${schedule}, ${zone}, ${text}, ${dm}, ${labelled},
      ${JSON.stringify(sources)}::jsonb, ${made_by}, ${request}, ${at(next_ms)}::timestamptz, ${at(created_ms)}::timestamptz, ${at(created_ms)}::timestamptz
    FROM choir_control.plans WHERE agent_id = ${agent_id}
    RETURNING ${sql.literal(COLUMNS)}`
  return row as PlanRow
})

/** A plan, held until the transaction ends. */
export const readPlan = Effect.fnUntraced(function* (agent_id: AgentId, plan_id: PlanId) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<PlanRow>`SELECT ${sql.literal(COLUMNS)} FROM choir_control.plans AS p
    WHERE agent_id = ${agent_id} AND plan_id = ${plan_id} FOR UPDATE`
  return row
})

/** The open plans whose time has come, the oldest first. */
export const duePlans = Effect.fnUntraced(function* (now_ms: number, count_max: number) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Pick<PlanRow, "agent_id" | "plan_id">>`SELECT agent_id, plan_id FROM choir_control.plans
    WHERE state = 'open' AND next_at <= ${at(now_ms)}::timestamptz ORDER BY next_at, agent_id, plan_id LIMIT ${count_max}`
})

/** The next time of all open plans after an instant. */
export const nextOfAll = Effect.fnUntraced(function* (after_ms: number) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly next_ms: number | null }>`SELECT ${sql.literal(ms("min(next_at)"))} AS next_ms
    FROM choir_control.plans WHERE state = 'open' AND next_at > ${at(after_ms)}::timestamptz`
  return row?.next_ms ?? undefined
})

/** The plan that a message in a chat was a time of. Another bot behind the gateway counts from 1 again. */
export const planAbout = Effect.fnUntraced(function* (gateway: ResourceName, { chat_id, message_id }: SentAs) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Pick<PlanRow, "agent_id" | "plan_id">>`SELECT p.agent_id, p.plan_id
    FROM choir_control.outbox AS o JOIN choir_control.plans AS p
      ON p.agent_id = o.agent_id AND starts_with(o.source_id, 'plan:' || p.agent_id || ':' || p.plan_id || ':')
    WHERE o.sent_chat IS NOT NULL AND o.source = 'choird' AND o.gateway = ${gateway}
      AND o.sent_chat = ${chat_id} AND o.sent_id = ${message_id} ORDER BY o.outbox_id DESC LIMIT 1`
  return row
})

/** Where text of an agent's plans came from, if that is outside. */
export const sourcesOfPlans = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<Pick<PlanRow, "sources">>`SELECT sources FROM choir_control.plans
    WHERE agent_id = ${agent_id} AND labelled AND state IN ('open', 'paused')`
  return rows.reduce<ReadonlyArray<Source>>(
    (known, { sources }) => withSources(known, sources.length === 0 ? ["memory"] : sources),
    []
  )
})

/** The open plans that repeat. */
export const repeatingPlans = Effect.fnUntraced(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<PlanRow>`SELECT ${sql.literal(COLUMNS)} FROM choir_control.plans AS p
    WHERE state = 'open' AND kind <> 'once'`
})

/** Claims a time of a plan, once. Answers whether it was free until now. */
export const claimTime = Effect.fnUntraced(function* (
  { agent_id, plan_id }: Pick<PlanRow, "agent_id" | "plan_id">,
  slot_ms: number,
  state: SlotState,
  missed: number
) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`INSERT INTO choir_control.plan_slots (agent_id, plan_id, slot, state, missed)
    VALUES (${agent_id}, ${plan_id}, ${at(slot_ms)}::timestamptz, ${state}, ${missed})
    ON CONFLICT DO NOTHING RETURNING 1`
  return rows.length > 0
})

/** The times of a plan after an instant that a person left out. */
export const skippedTimes = Effect.fnUntraced(function* (
  { agent_id, plan_id }: Pick<PlanRow, "agent_id" | "plan_id">,
  after_ms: number
) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly slot_ms: number }>`SELECT ${sql.literal(ms("slot"))} AS slot_ms
    FROM choir_control.plan_slots WHERE agent_id = ${agent_id} AND plan_id = ${plan_id}
      AND state = 'skipped' AND slot > ${at(after_ms)}::timestamptz`
  return new Set(rows.map(({ slot_ms }) => slot_ms))
})

/** Changes a plan: its state, its reason, and its next time. */
export const movePlan = Effect.fnUntraced(function* (
  { agent_id, plan_id }: Pick<PlanRow, "agent_id" | "plan_id">,
  to: { readonly state: PlanState; readonly reason?: string; readonly next_ms: number | undefined },
  now_ms: number
) {
  const sql = yield* SqlClient.SqlClient
  const next = to.next_ms === undefined ? null : at(to.next_ms)
  yield* sql`UPDATE choir_control.plans
    SET state = ${to.state}, reason = ${to.reason ?? null}, next_at = ${next}::timestamptz, changed_at = ${at(now_ms)}::timestamptz
    WHERE agent_id = ${agent_id} AND plan_id = ${plan_id}`
})

/** Ends the plans of agents that are gone from the configuration. */
export const endPlansBut = Effect.fnUntraced(function* (agents: ReadonlyArray<string>, now_ms: number) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE choir_control.plans SET state = 'ended', reason = 'its agent is not in config.json any more',
      next_at = NULL, changed_at = ${at(now_ms)}::timestamptz
    WHERE state IN ('open', 'paused') AND NOT (agent_id = ANY(${agents}::text[]))`
})

/** The source of the message of a plan's time, by which the outbox knows it. */
export const slotSource = ({ agent_id, plan_id }: Pick<PlanRow, "agent_id" | "plan_id">, slot_ms: number): string =>
  `plan:${agent_id}:${plan_id}:${at(slot_ms)}`

/** The same in SQL, of a slot `s`. */
const SLOT_SOURCE = `'plan:' || s.agent_id || ':' || s.plan_id || ':' || to_char(s.slot AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

interface ListedRow extends PlanRow {
  readonly slot_ms: number | null
  readonly slot_state: SlotState
  readonly slot_missed: number
  readonly delivered_ms: number | null
  readonly failure: string | null
}

/** Plans with their newest time and how its message went, if that is still known, those of the next time first. */
export const listPlans = Effect.fnUntraced(function* (
  agent_id: AgentId | undefined,
  options: { readonly all: boolean; readonly plan_id?: PlanId; readonly count_max: number }
) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<ListedRow>`SELECT ${sql.literal(COLUMNS)},
      ${sql.literal(ms("last.slot"))} AS slot_ms, last.state AS slot_state, last.missed AS slot_missed,
      ${sql.literal(ms("last.delivered_at"))} AS delivered_ms, last.failure
    FROM choir_control.plans AS p LEFT JOIN LATERAL (
      SELECT s.slot, s.state, s.missed, o.outbox_id, o.delivered_at, CASE WHEN o.failed_at IS NOT NULL THEN o.failure END AS failure
      FROM choir_control.plan_slots AS s LEFT JOIN choir_control.outbox AS o
        ON o.source = 'choird' AND o.source_id = ${sql.literal(SLOT_SOURCE)} AND o.part = 0
      WHERE s.agent_id = p.agent_id AND s.plan_id = p.plan_id ORDER BY s.slot DESC LIMIT 1
    ) AS last ON last.state <> 'said' OR last.outbox_id IS NOT NULL
    WHERE (${agent_id ?? null}::text IS NULL OR p.agent_id = ${agent_id ?? null})
      AND (${options.plan_id ?? null}::int IS NULL OR p.plan_id = ${options.plan_id ?? null})
      AND (${options.all} OR p.state IN ('open', 'paused'))
    ORDER BY p.next_at NULLS LAST, p.agent_id, p.plan_id LIMIT ${options.count_max}`
  return rows.map(summaryOf)
})

const isoOf = (value: number | null) => (value === null ? null : at(value))

const summaryOf = (row: ListedRow): PlanSummary => {
  const { agent_id, created_ms, dm, kind, made_by, next_ms, plan_id, reason, schedule, state, text, zone } = row
  const { delivered_ms, failure, slot_missed, slot_ms, slot_state } = row
  const delivered_at = isoOf(delivered_ms)
  const last: PlanSlot | null =
    slot_ms === null ? null : { at: at(slot_ms), state: slot_state, missed: slot_missed, delivered_at, failure }
  return {
    agent_id,
    plan_id,
    kind,
    schedule,
    zone,
    text,
    dm,
    state,
    reason,
    next_at: isoOf(next_ms),
    made_by,
    created_at: at(created_ms),
    last
  }
}
