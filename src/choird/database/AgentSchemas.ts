import { Context, Effect, Layer } from "effect"
import { type SqlError, SqlClient } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import { memoryTables } from "./memoryTables.ts"
import { sqlState } from "./sqlState.ts"

/** The name of an agent's schema and of its role. Always quoted with `sql(..)`: an agent id may hold a hyphen (D36). */
export const agentSchema = (agent: AgentId): string => `choir_${agent}`

/** The same between quotes, for statements that are not built of fragments. */
const quoted = (agent: AgentId): string => `"${agentSchema(agent)}"`

/** The advisory lock under which roles and schemas change: concurrent grants fail each other. */
const LOCK = 0x6167656e74
const DUPLICATE_OBJECT = "42710"

const isDuplicate = (error: SqlError.SqlError) =>
  error.reason._tag === "UniqueViolation" || sqlState(error) === DUPLICATE_OBJECT

/** Each agent's own corner of the database. */
export class AgentSchemas extends Context.Service<
  AgentSchemas,
  {
    /**
     * Creates the agent's schema with the tables of its memory, and its role, which can log in nowhere and may only read and write the tables of that schema.
     * Doing it again changes nothing. The role is for `SET LOCAL ROLE`: a seat belt, since `RESET ROLE` undoes it (D36).
     */
    ensure(agent: AgentId): Effect.Effect<void, SqlError.SqlError>
  }
>()("choir/choird/AgentSchemas") {
  static readonly layer = Layer.effect(
    AgentSchemas,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ensure = Effect.fn("AgentSchemas.ensure")(function* (agent: AgentId) {
        const name = sql(agentSchema(agent))
        yield* sql`SELECT pg_advisory_xact_lock(${LOCK})`
        const roles = yield* sql`SELECT 1 FROM pg_roles WHERE rolname = ${agentSchema(agent)}`
        // Roles belong to the whole server: another Choir there may make this one just now, hence the savepoint.
        if (roles.length === 0) {
          yield* Effect.catchIf(sql.withTransaction(sql`CREATE ROLE ${name} NOLOGIN`), isDuplicate, () => Effect.void)
        }
        yield* sql`GRANT ${name} TO CURRENT_USER`
        yield* sql`CREATE SCHEMA IF NOT EXISTS ${name}`
        yield* sql`GRANT USAGE ON SCHEMA ${name} TO ${name}`
        yield* sql`ALTER DEFAULT PRIVILEGES IN SCHEMA ${name} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO ${name}`
        for (const statement of memoryTables(quoted(agent))) yield* sql.unsafe(statement)
      }, sql.withTransaction)
      return AgentSchemas.of({ ensure })
    })
  )
}
