/** P11: how long a search of an agent's memory takes, beside one statement that reads the same rows, and whether the index is used. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { agentSchema } from "#src/choird/database/AgentSchemas.ts"
import { Database } from "#src/choird/database/Database.ts"
import { type AnEmbedder, Embeddings } from "#src/choird/memory/Embeddings.ts"
import { Recall } from "#src/choird/memory/Recall.ts"
import { asAgent } from "#src/choird/memory/agentTables.ts"
import { byVectors, EF_SEARCH, type Scope } from "#src/choird/memory/searchRows.ts"
import { indexName, VectorIndexes } from "#src/choird/memory/VectorIndexes.ts"
import { ROOT } from "../test/support/installation.ts"
import { makeMemory } from "../test/support/memoryRows.ts"
import { onPostgres } from "./postgres.ts"
import { atLeast, atMost, place, ratioAtMost, type Row, spread } from "./Row.ts"

const AGENT = AgentId.make("bench")
const MODEL = "bench:vectors"
const QUERIES = 200
const HITS = 10
const SUBJECTS = 200
const SESSIONS = 10
/** The dimensions that the vectors of texts really fill, of those that they have. */
const LATENT = 24
const NORMAL = "(random() + random() + random() - 1.5)"

interface Size {
  readonly chunks: number
  readonly dimensions: number
}

/** Chunks in sessions: each vector is that of a subject and some noise in a space of few dimensions, as those of real texts lie. */
const fill = Effect.fnUntraced(function* ({ chunks, dimensions }: Size, indexes: Effect.Effect<void, unknown>) {
  const sql = yield* SqlClient.SqlClient
  yield* makeMemory(AGENT)
  const schema = agentSchema(AGENT)
  const count = Math.ceil(chunks / SUBJECTS)
  yield* sql.unsafe("SELECT setseed(0.5)")
  yield* sql.unsafe(`CREATE TABLE public.bases AS SELECT k, d, ${NORMAL} AS x
    FROM generate_series(1, ${LATENT}) AS k, generate_series(1, ${dimensions}) AS d`)
  for (const [table, rows, width] of [
    ["subjects", SUBJECTS, 1],
    ["noises", count, 0.6]
  ] as const)
    yield* sql.unsafe(`CREATE TABLE public.${table} AS
      WITH places AS MATERIALIZED (SELECT g, k, ${width} * ${NORMAL} AS z FROM generate_series(1, ${rows}) AS g, generate_series(1, ${LATENT}) AS k),
        coordinates AS (SELECT g, d, sum(z * x) AS c FROM places JOIN public.bases USING (k) GROUP BY g, d)
      SELECT g, array_agg(c ORDER BY d)::vector AS v FROM coordinates GROUP BY g`)
  const { kind } = yield* Database
  // choird makes the index with the first vectors. On a server that is minutes of work for each ten thousand, and the index is the same at the end.
  if (kind === "embedded") yield* indexes
  yield* sql.unsafe(`WITH made AS (
      SELECT s.g AS subject, n.g AS noise, (n.g - 1) * ${SUBJECTS} + s.g AS number FROM public.subjects AS s CROSS JOIN public.noises AS n
    ), documents AS (
      INSERT INTO ${schema}.memory_documents (session_id, tier, lane, first_rev, last_rev, source_events, chunk_index, text, text_hash, untrusted, said_at)
      SELECT '0k8v3w9m2p1n' || lpad((noise % ${SESSIONS})::text, 4, '0'), 'mid_term', 'edge', number, number, '{}', number,
        'subject' || subject || ' was said of noise' || noise || ' in part ' || number, sha256(number::text::bytea), false, now()
      FROM made RETURNING id, session_id, first_rev
    )
    INSERT INTO ${schema}.memory_embeddings (document_id, model, session_id, tier, embedding)
    SELECT d.id, '${MODEL}', d.session_id, 'mid_term', s.v + n.v FROM documents AS d
      JOIN public.subjects AS s ON s.g = (d.first_rev - 1) % ${SUBJECTS} + 1
      JOIN public.noises AS n ON n.g = (d.first_rev - 1) / ${SUBJECTS} + 1`)
  if (kind === "postgres") {
    yield* sql.unsafe("ALTER SYSTEM SET maintenance_work_mem = '2GB'")
    yield* sql.unsafe("SELECT pg_reload_conf()")
    yield* indexes
  }
  yield* sql.unsafe("VACUUM ANALYZE")
})

interface Query {
  readonly vector: Float32Array
  readonly session_id: SessionId
  readonly words: string
}

/** Each asks for a subject as one of its chunks puts it, in the session of that chunk. */
const queriesOf = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql.unsafe<{ readonly v: string; readonly subject: number; readonly noise: number }>(
    `SELECT (s.v + n.v)::text AS v, s.g AS subject, n.g AS noise FROM public.subjects AS s JOIN public.noises AS n ON n.g = (s.g * 7) % 97 + 1
     ORDER BY s.g LIMIT ${QUERIES}`
  )
  return rows.map(({ noise, subject, v }): Query => ({
    vector: Float32Array.from(JSON.parse(v) as ReadonlyArray<number>),
    session_id: SessionId.make(`0k8v3w9m2p1n${String(noise % SESSIONS).padStart(4, "0")}`),
    words: `subject${subject} of noise${noise}`
  }))
})

const timed = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const started = performance.now()
    const value = yield* work
    return { value, ms: performance.now() - started }
  })

const INDEXED = [`hnsw.ef_search = ${EF_SEARCH}`, "hnsw.iterative_scan = 'relaxed_order'"]

/** One transaction whose statement reads what a search answers with; without the index it is exact. */
const raw = Effect.fnUntraced(function* (
  { session_id, vector }: Query,
  { dimensions }: Size,
  how: "indexed" | "exact"
) {
  const sql = yield* SqlClient.SqlClient
  const schema = agentSchema(AGENT)
  const far = `embedding::vector(${dimensions}) <=> '[${vector.join(",")}]'::vector(${dimensions})`
  const statement = `SELECT d.id::text AS id, d.text, d.said_at FROM ${schema}.memory_documents AS d JOIN (
      SELECT document_id, ${far} AS far FROM ${schema}.memory_embeddings
      WHERE model = '${MODEL}' AND tier = ANY('{mid_term,long_term_summary}') AND session_id = '${session_id}'
      ORDER BY ${how === "exact" ? `(${far}) + 0` : far} LIMIT 50) AS e ON e.document_id = d.id ORDER BY far LIMIT ${HITS}`
  const inOne = <A, E, R>(work: Effect.Effect<A, E, R>) =>
    sql.withTransaction(
      Effect.andThen(
        Effect.forEach(how === "exact" ? [] : INDEXED, (option) => sql.unsafe(`SET LOCAL ${option}`)),
        work
      )
    )
  const lines = yield* inOne(sql.unsafe<Record<string, string>>(`EXPLAIN ${statement}`))
  return {
    rows: yield* timed(inOne(sql.unsafe<{ readonly id: string }>(statement))),
    plan: lines.flatMap((line) => Object.values(line)).join("\n")
  }
})

/** An embedder that knows the vector of each query, so that a search is measured and no model. */
const known = (size: Size, queries: () => ReadonlyArray<Query>) => {
  const embedder: AnEmbedder = {
    model: MODEL,
    dimensions: size.dimensions,
    embed: (texts) =>
      Effect.succeed(
        texts.flatMap((text) =>
          queries()
            .filter(({ words }) => words === text)
            .map(({ vector }) => vector)
        )
      )
  }
  return Layer.mock(Embeddings, {
    model: undefined,
    configured: () => undefined,
    serving: () => Effect.succeed(embedder)
  })
}

const measure = (size: Size) =>
  Effect.gen(function* () {
    let queries: ReadonlyArray<Query> = []
    return yield* Effect.gen(function* () {
      const indexes = yield* VectorIndexes
      yield* fill(size, indexes.ensure(AGENT, { model: MODEL, dimensions: size.dimensions }))
      queries = yield* queriesOf
      const recall = yield* Recall
      const search = (mode: "semantic" | "hybrid", { session_id, words }: Query) =>
        timed(
          recall.search({ store: "session", mode, query: words, limit: HITS, agent: AGENT, cross: false, session_id })
        )
      for (const query of queries.slice(0, 20)) yield* search("hybrid", query)
      const plain: Array<number> = []
      const semantic: Array<number> = []
      const hybrid: Array<number> = []
      const found: Array<number> = []
      let planned = 0
      for (const [at, query] of queries.entries()) {
        const { plan, rows } = yield* raw(query, size, "indexed")
        plain.push(rows.ms)
        if (plan.includes(indexName("memory_embeddings", MODEL))) planned += 1
        semantic.push((yield* search("semantic", query)).ms)
        hybrid.push((yield* search("hybrid", query)).ms)
        if (at % 10 !== 0) continue
        const exact = new Set((yield* raw(query, size, "exact")).rows.value.map(({ id }) => id))
        const near = yield* asAgent(AGENT, byVectors(scopeOf(query), MODEL, query.vector))
        found.push(near.slice(0, HITS).filter(({ id }) => exact.has(id)).length / HITS)
      }
      return {
        plain,
        semantic,
        hybrid,
        planned: planned / queries.length,
        recalled: found.reduce((a, b) => a + b, 0) / found.length
      }
    }).pipe(
      Effect.provide(Layer.mergeAll(VectorIndexes.layer, Recall.layer).pipe(Layer.provide(known(size, () => queries))))
    )
  })

const scopeOf = ({ session_id }: Query): Scope => ({
  agent_id: AGENT,
  store: "session",
  tiers: ["mid_term", "long_term_summary"],
  session_id
})

const p95 = (times: ReadonlyArray<number>) => place(times, 0.95)

const say = (name: string, { hybrid, plain, semantic }: Effect.Success<ReturnType<typeof measure>>) =>
  Effect.sync(() =>
    process.stderr.write(
      `P11 ${name}: ms of a raw statement ${spread(plain)}, by vectors ${spread(semantic)}, by both ${spread(hybrid)}\n`
    )
  )

const CHUNKS = Number(process.env["CHOIR_BENCH_CHUNKS"] ?? 100_000)

const onServer = onPostgres("P11", (_, server) =>
  Effect.gen(function* () {
    const measured = yield* measure({ chunks: CHUNKS, dimensions: 1536 }).pipe(
      Effect.provide(Database.layerPostgres({ ...server, database: "postgres", ssl: false }))
    )
    yield* say("Postgres", measured)
    const name = `${CHUNKS} chunks of 1536`
    return [
      ratioAtMost("P11", `search by vectors, ${name}, p95`, p95(measured.semantic), "ms", p95(measured.plain), 1.5),
      atMost("R63", `search by words and vectors, ${name}, p95`, p95(measured.hybrid), "ms", 60),
      atLeast("R63", `recall@10 beside an exact search, ${name}`, measured.recalled, "", 0.95),
      atLeast("P11", "plans that use the index", measured.planned, "", 1)
    ]
  })
)

const EMBEDDED: Size = { chunks: Math.min(CHUNKS, 20_000), dimensions: 512 }

const embedded: Effect.Effect<ReadonlyArray<Row>, unknown> = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-bench-"))),
    (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
  )
  const template = join(ROOT, "dist/postgres-template.tar.gz")
  const measured = yield* measure(EMBEDDED).pipe(
    Effect.provide(Database.layerEmbedded({ folder: join(folder, "data"), template }))
  )
  yield* say("embedded", measured)
  return [
    atMost("P11", "embedded database, words and vectors, 20,000 chunks of 512, p95", p95(measured.hybrid), "ms", 150),
    atLeast("P11", "embedded database, recall@10 beside an exact search", measured.recalled, "", 0.95)
  ]
}).pipe(Effect.scoped)

export const memorySearch: Effect.Effect<ReadonlyArray<Row>, unknown> = Effect.gen(function* () {
  return [...(yield* embedded), ...(yield* onServer)]
})
