/** The count of what an order to forget has removed so far, so that its receipt has all of it however often choird died meanwhile. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENT = `ALTER TABLE choir_control.forgets
    ADD COLUMN facts integer NOT NULL DEFAULT 0,
    ADD COLUMN events integer NOT NULL DEFAULT 0,
    ADD COLUMN chunks integer NOT NULL DEFAULT 0,
    ADD COLUMN vectors integer NOT NULL DEFAULT 0,
    ADD COLUMN texts integer NOT NULL DEFAULT 0`

export const forgottenCounts = Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(STATEMENT))
