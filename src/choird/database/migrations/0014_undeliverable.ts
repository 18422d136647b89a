/** Messages that a channel will never take: ended with the reason, and neither delivered nor tried again. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.outbox ADD COLUMN failed_at timestamptz, ADD COLUMN failure text`,
  `CREATE INDEX outbox_failed ON choir_control.outbox (failed_at) WHERE failed_at IS NOT NULL`,
  `DROP INDEX choir_control.outbox_undelivered`,
  `CREATE INDEX outbox_undelivered ON choir_control.outbox (dm, outbox_id)
    WHERE delivered_at IS NULL AND failed_at IS NULL`
]

export const undeliverable = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
