/** The rows of schedules: each time of a skill once, and its outcome. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import type { SkillName } from "#schema/Skill.ts"
import type { LastSlot } from "./decideSlot.ts"

export interface Slot {
  readonly agent_id: AgentId
  readonly skill: SkillName
  readonly slot_ms: number
}

/**
 * `passed`: when the schedule came, not a time of it. `claimed`: to be ordered in a session. `ordered`: the session has the signal. `started`, `refused`:
 * the agent's answer. `skipped`: too late.
 */
export type SlotState = "passed" | "claimed" | "ordered" | "started" | "refused" | "skipped"

/** A time whose outcome is not known yet. */
export interface OpenSlot extends Slot {
  readonly state: "claimed" | "ordered"
  readonly schedule: string
  readonly session_id: SessionId
}

const at = (slot_ms: number) => new Date(slot_ms).toISOString()

const MILLISECONDS = "(extract(epoch FROM slot) * 1000)::float8 AS slot_ms"

/** The newest time of each skill of an agent. */
export const lastSlots = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<LastSlot & { readonly skill: SkillName }>`SELECT DISTINCT ON (skill) skill, schedule,
      ${sql.literal(MILLISECONDS)}
    FROM choir_control.schedule_slots WHERE agent_id = ${agent_id} ORDER BY skill, slot DESC`
  return new Map(rows.map((row) => [row.skill, row] as const))
})

/** The times of an agent that wait for the order or for the answer, the oldest first. */
export const openSlots = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<OpenSlot>`SELECT agent_id, skill, schedule, state, session_id, ${sql.literal(MILLISECONDS)}
    FROM choir_control.schedule_slots WHERE agent_id = ${agent_id} AND state IN ('claimed', 'ordered')
    ORDER BY slot, skill`
})

/** Claims a time, once. Answers whether it was free until now. A row of an earlier schedule at the same time gets the new words. */
export const claimSlot = Effect.fnUntraced(function* (
  { agent_id, skill, slot_ms }: Slot,
  row: {
    readonly state: SlotState
    readonly schedule: string
    readonly session_id: SessionId | null
    readonly missed: number
  }
) {
  const sql = yield* SqlClient.SqlClient
  const [claimed] = yield* sql<{ readonly isNew: boolean }>`INSERT INTO choir_control.schedule_slots AS s
      (agent_id, skill, slot, schedule, state, session_id, missed)
    VALUES (${agent_id}, ${skill}, ${at(slot_ms)}::timestamptz, ${row.schedule}, ${row.state}, ${row.session_id}, ${row.missed})
    ON CONFLICT (agent_id, skill, slot) DO UPDATE SET schedule = excluded.schedule
    RETURNING s.xmax = 0 AS "isNew"`
  return claimed?.isNew === true
})

/** Moves a time on, unless another one did. Answers whether it was moved. */
export const moveSlot = Effect.fnUntraced(function* (
  { agent_id, session_id, skill, slot_ms, state }: OpenSlot,
  to: { readonly state: SlotState; readonly session_id?: SessionId; readonly reason?: string }
) {
  const sql = yield* SqlClient.SqlClient
  const moved = yield* sql`UPDATE choir_control.schedule_slots
    SET state = ${to.state}, session_id = ${to.session_id ?? session_id}, reason = ${to.reason ?? null}
    WHERE agent_id = ${agent_id} AND skill = ${skill} AND slot = ${at(slot_ms)}::timestamptz
      AND state = ${state} AND session_id = ${session_id} RETURNING 1`
  return moved.length > 0
})

/** Forgets the times of skills that have no schedule any more, so that one that comes back begins with its next time. */
export const forgetSlots = Effect.fnUntraced(function* (agent_id: AgentId, kept: ReadonlyArray<SkillName>) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`DELETE FROM choir_control.schedule_slots
    WHERE agent_id = ${agent_id} AND NOT (skill = ANY(${kept}::text[])) AND state NOT IN ('claimed', 'ordered')`
})
