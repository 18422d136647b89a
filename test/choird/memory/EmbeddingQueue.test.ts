import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import { agentSchema } from "#src/choird/database/AgentSchemas.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { EmbeddingQueue } from "#src/choird/memory/EmbeddingQueue.ts"
import { Embeddings } from "#src/choird/memory/Embeddings.ts"
import { EMBEDDED_BUILD_ROWS_MAX, indexName } from "#src/choird/memory/VectorIndexes.ts"
import { describeStores } from "../../support/engines.ts"
import { embeddingServer, type EmbeddingServerOptions } from "../../support/embeddingServer.ts"
import { makeMemory, vectorsOf, writeChunk, writeFact } from "../../support/memoryRows.ts"
import { CONFIG, makeHome, newAgent, SECRETS } from "../../support/stores.ts"

const KEY = "embedding-key"
const SMALL: EmbeddingServerOptions = { model: "small", dimensions: 8, key: KEY }
const LARGE: EmbeddingServerOptions = { model: "large", dimensions: 12, key: KEY }
const nameOf = ({ dimensions, model }: EmbeddingServerOptions) => `openai:${model}:${dimensions}`

/** A choird with these agents and an embedding model at an endpoint: building it again is a restart. */
const choird = (agents: ReadonlyArray<AgentId>, embedding: object) => {
  const [entry] = Object.values(CONFIG.agents)
  const config = { ...CONFIG, agents: Object.fromEntries(agents.map((id) => [id, entry])), embedding }
  const home = makeHome(config, { ...SECRETS, "embedding-key": KEY })
  const store = Layer.unwrap(Effect.map(home, (home) => ConfigStore.layer({ home })))
  return Layer.fresh(Layer.provideMerge(EmbeddingQueue.layer, Embeddings.layer)).pipe(
    Layer.provideMerge(store),
    Layer.orDie
  )
}
const at = (endpoint: string, { dimensions, model }: EmbeddingServerOptions) => ({
  provider: "openai",
  model,
  dimensions,
  endpoint,
  secret: "embedding-key"
})

const drain = Effect.flatMap(EmbeddingQueue, ({ drain }) => drain)
const status = Effect.flatMap(EmbeddingQueue, ({ status }) => status)
const servingModel = (agent_id: AgentId) =>
  Effect.flatMap(Embeddings, ({ serving }) => serving(agent_id)).pipe(Effect.map((found) => found?.model))

describeStores("EmbeddingQueue", (it, engine) => {
  it.effect("gives every fact and chunk one vector, in batches, and those of long-term detail none", () =>
    Effect.gen(function* () {
      const server = yield* embeddingServer(SMALL)
      const [one, two] = [newAgent(), newAgent()]
      for (const agent_id of [one, two]) yield* makeMemory(agent_id)
      const ids: Array<string> = []
      for (let n = 0; n < 70; n += 1) ids.push(yield* writeChunk(one, `chunk ${n}`))
      const fact = yield* writeFact(one, "user.preference.theme", "dark")
      yield* writeChunk(one, "old detail", "long_term_detail")
      const other = yield* writeChunk(two, "of another agent")
      yield* Effect.gen(function* () {
        assert.strictEqual((yield* status).waiting, 72)
        assert.strictEqual(yield* drain, undefined)
        assert.deepInclude(yield* status, { model: nameOf(SMALL), waiting: 0 })
        assert.strictEqual(yield* servingModel(one), nameOf(SMALL))
      }).pipe(Effect.provide(choird([one, two], at(server.endpoint, SMALL))))
      const all = yield* vectorsOf(one)
      assert.deepStrictEqual(new Set(all.map(({ id }) => id)), new Set([...ids, fact]))
      assert.strictEqual(all.length, 71)
      assert.deepStrictEqual(yield* vectorsOf(two), [{ id: other, model: nameOf(SMALL), dimensions: 8 }])
      assert.include(server.requests[0]?.input ?? [], "user preference theme: dark")
      // Agents take turns, so that a long queue of one does not hold up the others.
      assert.deepStrictEqual(
        server.requests.map(({ input }) => input.length),
        [32, 1, 32, 7]
      )
      assert.deepStrictEqual(server.takeRefusals(), [])
    })
  )

  it.effect("makes an index that searches use, and counts what an agent's texts cost by day", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const server = yield* embeddingServer({ ...SMALL, cost: 0.25 })
      const agent_id = newAgent()
      yield* makeMemory(agent_id)
      for (let n = 0; n < 40; n += 1) yield* writeChunk(agent_id, `chunk ${n}`)
      yield* drain.pipe(Effect.provide(choird([agent_id], at(server.endpoint, SMALL))))
      const plan = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`SET LOCAL enable_seqscan = off`
          return yield* sql<{ readonly "QUERY PLAN": string }>`EXPLAIN SELECT document_id
            FROM ${sql(`${agentSchema(agent_id)}.memory_embeddings`)} WHERE model = ${nameOf(SMALL)}
            ORDER BY embedding::vector(8) <=> ${"[1,0,0,0,0,0,0,0]"}::vector LIMIT 5`
        })
      )
      assert.include(plan.map((row) => row["QUERY PLAN"]).join("\n"), indexName("memory_embeddings", nameOf(SMALL)))
      const costs = yield* sql`SELECT model, texts::int, tokens::int, cost_usd FROM choir_control.embedding_costs
        WHERE agent_id = ${agent_id} AND day = (now() AT TIME ZONE 'UTC')::date`
      assert.deepStrictEqual(costs, [{ model: nameOf(SMALL), texts: 40, tokens: 80, cost_usd: 0.5 }])
    })
  )

  it.effect("finds the one text that a model refuses, goes on with the others, and does not forget it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const server = yield* embeddingServer({ ...SMALL, refused: "poison" })
      const agent_id = newAgent()
      yield* makeMemory(agent_id)
      yield* writeChunk(agent_id, "first")
      const poison = yield* writeChunk(agent_id, "poison")
      for (let n = 0; n < 4; n += 1) yield* writeChunk(agent_id, `chunk ${n}`)
      yield* Effect.gen(function* () {
        assert.strictEqual(yield* drain, undefined)
        assert.strictEqual((yield* status).waiting, 1)
        const [row] = yield* sql<{
          readonly attempts: number
          readonly later: boolean
        }>`SELECT embed_attempts AS attempts,
          embed_after > now() + interval '30 seconds' AS later
          FROM ${sql(`${agentSchema(agent_id)}.memory_documents`)} WHERE id = ${poison}::uuid`
        assert.deepStrictEqual(row, { attempts: 1, later: true })
        assert.strictEqual((yield* vectorsOf(agent_id)).length, 5)
      }).pipe(Effect.provide(choird([agent_id], at(server.endpoint, SMALL))))
    })
  )

  it.effect("leaves everything in the queue while the provider fails, and says so in the status", () =>
    Effect.gen(function* () {
      let broken = true
      const server = yield* embeddingServer(SMALL, () =>
        broken ? { status: 402, body: JSON.stringify({ error: { message: `no credit left for ${KEY}` } }) } : undefined
      )
      const agent_id = newAgent()
      yield* makeMemory(agent_id)
      yield* writeFact(agent_id, null, "the sky is blue")
      yield* Effect.gen(function* () {
        assert.include(yield* drain, "it answered 402: no credit left for …")
        assert.deepInclude(yield* status, { waiting: 1, problem: "it answered 402: no credit left for …" })
        assert.deepStrictEqual(yield* vectorsOf(agent_id), [])
        broken = false
        assert.strictEqual(yield* drain, undefined)
        assert.notProperty(yield* status, "problem")
        assert.strictEqual((yield* vectorsOf(agent_id)).length, 1)
      }).pipe(Effect.provide(choird([agent_id], at(server.endpoint, SMALL))))
    })
  )

  it.effect("gives a text that was changed while it was embedded a vector of its new words alone", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const agent_id = newAgent()
      yield* makeMemory(agent_id)
      const id = yield* writeChunk(agent_id, "before")
      const table = sql(`${agentSchema(agent_id)}.memory_documents`)
      const change = sql`UPDATE ${table} SET text = 'after', text_hash = sha256('after') WHERE id = ${id}::uuid`
      const changed: Array<Promise<unknown>> = []
      const context = yield* Effect.context<SqlClient.SqlClient>()
      const server = yield* embeddingServer(SMALL, (_, count) => {
        if (count === 1) changed.push(Effect.runPromiseWith(context)(change))
        return undefined
      })
      yield* drain.pipe(Effect.provide(choird([agent_id], at(server.endpoint, SMALL))))
      yield* Effect.promise(() => Promise.all(changed))
      assert.deepStrictEqual(
        server.requests.map(({ input }) => input),
        [["before"], ["after"]]
      )
      assert.strictEqual((yield* vectorsOf(agent_id)).length, 1)
    })
  )

  it.effect("lets the old vectors serve until all have new ones, then flips and removes the old", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      let open = false
      const first = yield* embeddingServer(SMALL)
      const second = yield* embeddingServer(LARGE, (_, count) =>
        open || count === 1 ? undefined : { status: 401, body: "{}" }
      )
      const agent_id = newAgent()
      yield* makeMemory(agent_id)
      yield* writeFact(agent_id, "a", "apples")
      for (let n = 0; n < 40; n += 1) yield* writeChunk(agent_id, `chunk ${n}`)
      yield* drain.pipe(Effect.provide(choird([agent_id], at(first.endpoint, SMALL))))
      const later = choird([agent_id], at(second.endpoint, LARGE))
      yield* Effect.gen(function* () {
        assert.include(yield* drain, "401")
        assert.strictEqual(yield* servingModel(agent_id), nameOf(SMALL))
        assert.deepInclude(yield* status, { waiting: 0, reembedding: { done: 32, total: 41 } })
        const query = yield* Effect.flatMap(Embeddings, ({ serving }) => serving(agent_id))
        assert.strictEqual((yield* query?.embed(["apples"]) ?? Effect.succeed([]))[0]?.length, 8)
      }).pipe(Effect.provide(later))
      open = true
      yield* Effect.gen(function* () {
        assert.strictEqual(yield* drain, undefined)
        assert.strictEqual(yield* servingModel(agent_id), nameOf(LARGE))
        assert.notProperty(yield* status, "reembedding")
      }).pipe(Effect.provide(later))
      const left = yield* vectorsOf(agent_id)
      assert.strictEqual(left.length, 41)
      assert.deepStrictEqual(new Set(left.map(({ model }) => model)), new Set([nameOf(LARGE)]))
      const indexes = yield* sql<{ readonly name: string }>`SELECT indexname AS name FROM pg_indexes
        WHERE schemaname = ${agentSchema(agent_id)} AND indexname LIKE '%hnsw%' ORDER BY 1`
      assert.deepStrictEqual(
        indexes.map(({ name }) => name),
        (["knowledge_embeddings", "memory_embeddings"] as const).map((table) => indexName(table, nameOf(LARGE)))
      )
      // Nothing was embedded twice.
      assert.strictEqual(new Set(second.requests.flatMap(({ input }) => input)).size, 41)
    })
  )

  it.effect("goes back to the old model in the middle of a change, with vectors for what came meanwhile", () =>
    Effect.gen(function* () {
      const first = yield* embeddingServer(SMALL)
      const second = yield* embeddingServer(LARGE, (_, count) =>
        count === 1 ? undefined : { status: 401, body: "{}" }
      )
      const agent_id = newAgent()
      yield* makeMemory(agent_id)
      for (let n = 0; n < 33; n += 1) yield* writeChunk(agent_id, `chunk ${n}`)
      const before = choird([agent_id], at(first.endpoint, SMALL))
      yield* drain.pipe(Effect.provide(before))
      const fresh = yield* writeChunk(agent_id, "came meanwhile")
      yield* drain.pipe(Effect.provide(choird([agent_id], at(second.endpoint, LARGE))))
      assert.isTrue((yield* vectorsOf(agent_id)).some(({ id, model }) => id === fresh && model === nameOf(LARGE)))
      yield* drain.pipe(Effect.provide(before))
      const left = yield* vectorsOf(agent_id)
      assert.strictEqual(left.length, 34)
      assert.deepStrictEqual(new Set(left.map(({ model }) => model)), new Set([nameOf(SMALL)]))
    })
  )

  it.effect("builds a missing index again, unless that would hold the embedded database", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const server = yield* embeddingServer(SMALL)
      const agent_id = newAgent()
      yield* makeMemory(agent_id)
      for (let n = 0; n <= EMBEDDED_BUILD_ROWS_MAX; n += 1) yield* writeChunk(agent_id, `chunk ${n}`)
      const plane = choird([agent_id], at(server.endpoint, SMALL))
      yield* drain.pipe(Effect.provide(plane))
      const name = indexName("memory_embeddings", nameOf(SMALL))
      yield* sql`DROP INDEX ${sql(`${agentSchema(agent_id)}.${name}`)}`
      yield* writeChunk(agent_id, "one more")
      yield* drain.pipe(Effect.provide(plane))
      const found =
        yield* sql`SELECT 1 FROM pg_indexes WHERE schemaname = ${agentSchema(agent_id)} AND indexname = ${name}`
      assert.strictEqual(found.length, engine.kind === "embedded" ? 0 : 1)
      assert.strictEqual((yield* vectorsOf(agent_id)).length, EMBEDDED_BUILD_ROWS_MAX + 2)
    })
  )
})
