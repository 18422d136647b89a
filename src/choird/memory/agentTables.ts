/** Work on the tables of one agent's memory. */
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import { agentSchema } from "#src/choird/database/AgentSchemas.ts"

/** Does work in a transaction that may read and write the tables of this agent's schema and no others (D36). */
export const asAgent = <A, E, R>(
  agent_id: AgentId,
  work: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SqlError.SqlError, R | SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.withTransaction(Effect.andThen(sql`SET LOCAL ROLE ${sql(agentSchema(agent_id))}`, work))
  )

/** A table of an agent's memory, with its schema. Given to `sql`, which quotes both. */
export const agentTable = (agent_id: AgentId, table: string): string => `${agentSchema(agent_id)}.${table}`
