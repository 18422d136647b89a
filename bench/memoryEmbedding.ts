/** D37: how long choird's event loop is held at once while an agent's texts get vectors, and while they get those of another model. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { AgentId } from "#schema/Ids.ts"
import { agentSchema } from "#src/choird/database/AgentSchemas.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Database } from "#src/choird/database/Database.ts"
import { EmbeddingQueue } from "#src/choird/memory/EmbeddingQueue.ts"
import { type AnEmbedder, Embeddings } from "#src/choird/memory/Embeddings.ts"
import { type EmbeddingModel, modelName } from "#src/choird/memory/embeddingSettings.ts"
import { ROOT } from "../test/support/installation.ts"
import { makeMemory } from "../test/support/memoryRows.ts"
import { CONFIG, makeHome } from "../test/support/stores.ts"
import { onPostgres } from "./postgres.ts"
import { atMost, type Row } from "./Row.ts"

const AGENT = AgentId.make("helper")
const HOLD_MS_MAX = 50
/** Between two looks at the event loop. */
const RESOLUTION_MS = 1
const NS_OF_MS = 1_000_000

const fill = Effect.fnUntraced(function* (chunks: number) {
  const sql = yield* SqlClient.SqlClient
  yield* makeMemory(AGENT)
  yield* sql.unsafe(`INSERT INTO ${agentSchema(AGENT)}.memory_documents
    (session_id, tier, lane, first_rev, last_rev, source_events, chunk_index, text, text_hash, untrusted, said_at)
    SELECT '0k8v3w9m2p1n0001', 'mid_term', 'edge', g, g, '{}', g, repeat('words of chunk ' || g || ' ', 60), sha256(g::text::bytea), false, now()
    FROM generate_series(1, ${chunks}) AS g`)
})

/** A model that answers at once, so that what is measured is choird's work and not the model's. */
const instant = (dimensions: number, name: string) => {
  const model: EmbeddingModel = { provider: "openai", model: name, dimensions, endpoint: "http://127.0.0.1:1/v1" }
  const embedder: AnEmbedder = {
    model: modelName(model),
    dimensions,
    embed: (texts) =>
      Effect.sync(() => texts.map(() => Float32Array.from({ length: dimensions }, () => Math.random() - 0.5)))
  }
  return Layer.mock(Embeddings, { model, configured: () => embedder, trouble: Effect.undefined })
}

/** Works until every text has its vector of a model; the longest time that a timer waited beyond its own, in ms. */
const longestHold = (dimensions: number, name: string) =>
  Effect.gen(function* () {
    const { drain } = yield* EmbeddingQueue
    const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
    delays.enable()
    const failure = yield* drain
    delays.disable()
    if (failure !== undefined) return yield* Effect.die(new Error(failure))
    return Math.round(delays.max / NS_OF_MS)
  }).pipe(
    Effect.provide(
      Layer.fresh(EmbeddingQueue.layer).pipe(
        Layer.provide(instant(dimensions, name)),
        Layer.provide(Layer.unwrap(Effect.map(makeHome(CONFIG), (home) => ConfigStore.layer({ home }))))
      )
    )
  )

const measure = (kind: string, chunks: number, dimensions: number) =>
  Effect.gen(function* () {
    yield* fill(chunks)
    const first = yield* longestHold(dimensions, "first")
    const second = yield* longestHold(dimensions, "second")
    const row = (what: string, hold_ms: number) =>
      atMost(
        "D37",
        `longest hold of the event loop, ${chunks} texts of ${dimensions} ${what}, ${kind}`,
        hold_ms,
        "ms",
        HOLD_MS_MAX
      )
    return [row("embedded", first), row("embedded again", second)]
  })

const embedded = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-bench-"))),
    (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
  )
  const template = join(ROOT, "dist/postgres-template.tar.gz")
  return yield* measure("embedded", 1000, 512).pipe(
    Effect.provide(Database.layerEmbedded({ folder: join(folder, "data"), template }))
  )
}).pipe(Effect.scoped)

const onServer = onPostgres("D37", (_, server) =>
  measure("Postgres", 5000, 1536).pipe(
    Effect.provide(Database.layerPostgres({ ...server, database: "postgres", ssl: false }))
  )
)

export const memoryEmbedding: Effect.Effect<ReadonlyArray<Row>, unknown> = Effect.gen(function* () {
  return [...(yield* embedded), ...(yield* onServer)]
})
