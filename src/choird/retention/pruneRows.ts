/** Applies the rules to the tables in statements of a bounded size. */
import { Effect } from "effect"
import { type SqlClient, type Statement } from "effect/sql"
import type { RetentionConfig } from "#schema/Config.ts"
import { PRUNE_PAUSE_MS, PRUNE_ROWS_MAX } from "./limits.ts"
import type { Rule } from "./rules.ts"

const DAY_MS = 86_400_000

/** Instants as the database writes them, so many days before `now_ms`. */
export const daysBefore =
  (sql: SqlClient.SqlClient, now_ms: number) =>
  (days: number): Statement.Fragment =>
    sql`${new Date(now_ms - days * DAY_MS).toISOString()}::timestamptz`

export const makePruneRows = (sql: SqlClient.SqlClient, retention: RetentionConfig, now_ms: number) => {
  const looking = { sql, retention, before: daysBefore(sql, now_ms) }
  const table = (rule: Rule) => sql(`choir_control.${rule.table}`)
  const step = (rule: Rule) => {
    const found = sql`ctid = ANY(ARRAY(SELECT t.ctid FROM ${table(rule)} AS t WHERE ${rule.due(looking)} LIMIT ${PRUNE_ROWS_MAX}))`
    const statement =
      rule.empties === undefined
        ? sql`DELETE FROM ${table(rule)} WHERE ${found} RETURNING 1`
        : sql`UPDATE ${table(rule)} SET ${sql.literal(rule.empties)} WHERE ${found} RETURNING 1`
    return Effect.map(statement, (rows) => rows.length)
  }
  return {
    count: (rule: Rule) =>
      Effect.map(
        sql<{
          readonly count: number
        }>`SELECT count(*)::int AS count FROM ${table(rule)} AS t WHERE ${rule.due(looking)}`,
        ([row]) => row?.count ?? 0
      ),
    /** Goes on until nothing is due, or for `steps_max` statements. */
    remove: Effect.fnUntraced(function* (rule: Rule, steps_max: number) {
      let removed = 0
      for (let steps = 0; steps < steps_max; steps += 1) {
        const rows = yield* step(rule)
        removed += rows
        if (rows < PRUNE_ROWS_MAX) break
        yield* Effect.sleep(PRUNE_PAUSE_MS)
      }
      return removed
    })
  }
}
