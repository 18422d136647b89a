import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { AgentId } from "#schema/Ids.ts"
import { agentSchema, AgentSchemas } from "#src/choird/database/AgentSchemas.ts"
import { sqlState } from "#src/choird/database/sqlState.ts"
import { describeEngines } from "../../support/engines.ts"

const INSUFFICIENT_PRIVILEGE = "42501"
const agent = AgentId.make(`agent-${process.pid}`)
const other = AgentId.make(`other-${process.pid}`)

const asAgent = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.withTransaction(Effect.andThen(sql`SET LOCAL ROLE ${sql(agentSchema(agent))}`, work))
  )

describeEngines("AgentSchemas", (it) => {
  it.effect("are made once, however often and at once they are asked for", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { ensure } = yield* AgentSchemas
      yield* Effect.forEach([agent, agent, other, agent, other], ensure, { concurrency: 5, discard: true })
      const rows = yield* sql<{ name: string }>`SELECT nspname AS name FROM pg_namespace
        WHERE nspname LIKE 'choir\\_%' AND nspname <> 'choir_control' ORDER BY nspname`
      assert.deepStrictEqual(
        rows.map(({ name }) => name),
        [agentSchema(agent), agentSchema(other)]
      )
    }).pipe(Effect.provide(AgentSchemas.layer))
  )

  it.effect("confine the agent's role to its own tables", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { ensure } = yield* AgentSchemas
      yield* Effect.forEach([agent, other], ensure, { discard: true })
      const own = sql(`${agentSchema(agent)}.notes`)
      const foreign = sql(`${agentSchema(other)}.notes`)
      yield* sql`CREATE TABLE ${own} (text text)`
      yield* sql`CREATE TABLE ${foreign} (text text)`
      yield* asAgent(sql`INSERT INTO ${own} VALUES ('mine')`)
      assert.deepStrictEqual(yield* asAgent(sql`SELECT text FROM ${own}`), [{ text: "mine" }])
      const refused = yield* Effect.forEach(
        [
          sql`SELECT * FROM ${foreign}`,
          sql`SELECT * FROM choir_control.sessions`,
          sql`DROP TABLE ${own}`,
          sql`CREATE TABLE ${sql(`${agentSchema(agent)}.more`)} (id int)`
        ],
        (statement) => Effect.map(Effect.flip(asAgent(statement)), sqlState)
      )
      assert.deepStrictEqual(new Set(refused), new Set([INSUFFICIENT_PRIVILEGE]))
    }).pipe(Effect.provide(AgentSchemas.layer))
  )
})
