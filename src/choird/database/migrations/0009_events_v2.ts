/**
 * A payload is stored once, as its canonical text or a block of it (`storedPayload.ts`), beside the salt of its digest. Earlier rows
 * keep `canonical` and `payload`: only the catalogue changes, however many events there are. `payload_digest` is the chained digest of a
 * payload that was reduced since (D52); `choird_version` is the choird that last began the session.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  // Nothing asks for `id`: the session and the revision name an event. Their index stays, since a primary key would build another.
  `ALTER TABLE choir_control.session_events
    DROP COLUMN id,
    ALTER COLUMN payload DROP NOT NULL,
    ALTER COLUMN canonical DROP NOT NULL,
    ADD COLUMN v smallint,
    ADD COLUMN bytes int,
    ADD COLUMN salt bytea,
    ADD COLUMN payload_digest bytea,
    ADD COLUMN body bytea`,
  `ALTER TABLE choir_control.session_events REPLICA IDENTITY USING INDEX session_events_session_id_rev_key`,
  // It is already compressed.
  `ALTER TABLE choir_control.session_events ALTER COLUMN body SET STORAGE EXTERNAL`,
  `ALTER TABLE choir_control.sessions ADD COLUMN choird_version text`
]

export const eventsV2 = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
