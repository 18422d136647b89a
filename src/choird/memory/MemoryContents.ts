/** The rows of an agent's memory as the operator reads them: how many there are, and all of them in pages. */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, LaneId, Rev, SessionId } from "#schema/Ids.ts"
import type { DocumentId, MemoryHit, MemoryTier } from "#schema/Memory.ts"
import { MEMORY_PAGE_MAX, type MemoryPage, type MemorySummary } from "#schema/MemoryApi.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { agentTable, asAgent } from "./agentTables.ts"
import { hasMemory } from "./embeddingRows.ts"
import { readFacts } from "./factRows.ts"
import { NO_ID } from "#src/choird/database/rowId.ts"

export class MemoryContents extends Context.Service<
  MemoryContents,
  {
    /** How much an agent remembers; nothing before its first start. */
    summary(agent_id: AgentId): Effect.Effect<MemorySummary, DatabaseAway>
    /** A page of everything, after the place that the page before named. An unknown place begins at the beginning. */
    page(agent_id: AgentId, after: string | undefined): Effect.Effect<MemoryPage, DatabaseAway>
  }
>()("choir/choird/MemoryContents") {
  static readonly layer = Layer.effect(
    MemoryContents,
    Effect.gen(function* () {
      const onDatabase = yield* useDatabase
      return MemoryContents.of({
        summary: Effect.fn("MemoryContents.summary")(countMemory, onDatabase),
        page: Effect.fn("MemoryContents.page")(memoryPage, onDatabase)
      })
    })
  )
}

const NOTHING: MemorySummary = { facts: 0, sessions: 0, chunks: 0, summaries: 0, detail: 0 }

const countMemory = Effect.fnUntraced(function* (agent_id: AgentId) {
  if (!(yield* hasMemory(agent_id))) return NOTHING
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* asAgent(
    agent_id,
    sql<MemorySummary>`SELECT
        (SELECT count(*) FROM ${sql(agentTable(agent_id, "knowledge_documents"))} WHERE valid_to IS NULL)::int AS facts,
        count(DISTINCT session_id)::int AS sessions,
        (count(*) FILTER (WHERE tier = 'mid_term'))::int AS chunks,
        (count(*) FILTER (WHERE tier = 'long_term_summary'))::int AS summaries,
        (count(*) FILTER (WHERE tier = 'long_term_detail'))::int AS detail
      FROM ${sql(agentTable(agent_id, "memory_documents"))}`
  )
  return row ?? NOTHING
})

interface PartRow {
  readonly id: DocumentId
  readonly tier: MemoryTier
  readonly session_id: SessionId
  readonly lane: LaneId
  readonly first_rev: Rev
  readonly last_rev: Rev
  readonly said_at: Date
  readonly text: string
  readonly untrusted: boolean
}

const PART_COLUMNS = "id::text AS id, tier, session_id, lane, first_rev, last_rev, said_at, text, untrusted"

const partOf = ({ said_at, untrusted, ...row }: PartRow): MemoryHit => ({
  ...row,
  store: "session",
  said_at: said_at.toISOString(),
  ...(untrusted ? { untrusted } : {})
})

/** `facts <id>` or `parts <id>`: which table a page continues in, and after which row. */
const CURSOR = /^(facts|parts) ([0-9a-f-]{36})$/u

const memoryPage = Effect.fnUntraced(function* (agent_id: AgentId, cursor: string | undefined) {
  if (!(yield* hasMemory(agent_id))) return { facts: [], parts: [], next: null } satisfies MemoryPage
  const sql = yield* SqlClient.SqlClient
  const [, table = "facts", after = NO_ID] = CURSOR.exec(cursor ?? "") ?? []
  const page = yield* asAgent(
    agent_id,
    Effect.gen(function* () {
      if (table === "parts") {
        const rows =
          yield* sql<PartRow>`SELECT ${sql.literal(PART_COLUMNS)} FROM ${sql(agentTable(agent_id, "memory_documents"))}
          WHERE id > ${after}::uuid ORDER BY id LIMIT ${MEMORY_PAGE_MAX}`
        const next = rows.length < MEMORY_PAGE_MAX ? null : `parts ${rows.at(-1)?.id ?? NO_ID}`
        return { facts: [], parts: rows.map(partOf), next }
      }
      const rows = yield* readFacts(
        agent_id,
        Effect.succeed(sql`id > ${after}::uuid ORDER BY id LIMIT ${MEMORY_PAGE_MAX}`)
      )
      const next = rows.length < MEMORY_PAGE_MAX ? `parts ${NO_ID}` : `facts ${rows.at(-1)?.id ?? NO_ID}`
      return { facts: rows, parts: [], next }
    })
  )
  return page satisfies MemoryPage
})
