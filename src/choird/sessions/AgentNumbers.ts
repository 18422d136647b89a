/**
 * A number for each agent of this home, from which the runtime makes its uid. An agent keeps its number for good, and no other agent gets it,
 * also when it has left config.json: its files stay. It follows from the home and the agent, so that a database from before the number was
 * recorded gives the same one again.
 */
import { createHash } from "node:crypto"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { AgentId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type DatabaseAway, inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { AGENT_NUMBERS_MAX } from "#src/shared/docker/agentUids.ts"

/** No number is left. */
export class AgentNumbersTaken extends Schema.TaggedError<AgentNumbersTaken>()("AgentNumbersTaken", {
  agent_id: AgentId
}) {
  override get message() {
    return `${AGENT_NUMBERS_MAX} agents have run in this home, and no number is left for ${this.agent_id}`
  }
}

export class AgentNumbers extends Context.Service<
  AgentNumbers,
  {
    /** The agent's number, from 0 and below AGENT_NUMBERS_MAX; recorded with the first question. */
    of(agent_id: AgentId): Effect.Effect<number, AgentNumbersTaken | DatabaseAway>
  }
>()("choir/choird/AgentNumbers") {
  static readonly layer = Layer.effect(
    AgentNumbers,
    Effect.suspend(() => make)
  )
}

/** Agents of two homes that use one engine seldom meet. */
export const derivedNumber = (home: string, agent_id: AgentId): number =>
  createHash("sha256").update(`${home}\0${agent_id}`).digest().readUInt32BE(0) % AGENT_NUMBERS_MAX

/** The first number from `wanted` on that is free, after the last one from 0 on. */
export const freeNumber = (wanted: number, taken: ReadonlySet<number>): number | undefined => {
  for (let step = 0; step < AGENT_NUMBERS_MAX; step++) {
    const number = (wanted + step) % AGENT_NUMBERS_MAX
    if (!taken.has(number)) return number
  }
  return undefined
}

/** Locks the table, so that two agents that begin at once do not choose the same number. */
const record = Effect.fnUntraced(function* (agent_id: AgentId, wanted: number) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`LOCK TABLE choir_control.agent_numbers IN EXCLUSIVE MODE`
  const rows = yield* sql<{
    agent_id: string
    number: number
  }>`SELECT agent_id, number FROM choir_control.agent_numbers`
  const known = rows.find((row) => row.agent_id === agent_id)
  if (known !== undefined) return known.number
  const number = freeNumber(wanted, new Set(rows.map((row) => row.number)))
  if (number === undefined) return yield* new AgentNumbersTaken({ agent_id })
  yield* sql`INSERT INTO choir_control.agent_numbers ${sql.insert({ agent_id, number })}`
  return number
}, inTransaction)

const recorded = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{
    number: number
  }>`SELECT number FROM choir_control.agent_numbers WHERE agent_id = ${agent_id}`
  return row?.number
})

const make = Effect.gen(function* () {
  const { home } = yield* ConfigStore
  const database = yield* useDatabase
  return AgentNumbers.of({
    of: Effect.fn("AgentNumbers.of")(function* (agent_id) {
      const known = yield* database(recorded(agent_id))
      return known ?? (yield* database(record(agent_id, derivedNumber(home, agent_id))))
    })
  })
})
