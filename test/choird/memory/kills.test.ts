/** choird is killed at each statement that changes its agents' memory, in real processes: the end is that of a life without a kill. */
import { spawn } from "node:child_process"
import { cpSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient } from "effect/sql"
import type { EventDraft } from "#schema/Event.ts"
import { AgentId, type SessionId } from "#schema/Ids.ts"
import { Database } from "#src/choird/database/Database.ts"
import { agentSchema } from "#src/choird/database/AgentSchemas.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { begin, end, said, SUMMARY } from "../../support/endedSessions.ts"
import { embeddingServer } from "../../support/embeddingServer.ts"
import {
  describePostgres,
  embeddedTemplate,
  oneEngine,
  postgresDatabase,
  temporaryFolder
} from "../../support/engines.ts"
import type { FactStep, MemoryWork } from "./killedMemory.ts"
import { makeMemory, writeFact } from "../../support/memoryRows.ts"
import type { Where } from "../../support/migrator.ts"
import { isFull } from "../../support/size.ts"
import { CONFIG, makeHome, reply, SECRETS, storesWith } from "../../support/stores.ts"

const PROGRAM = join(import.meta.dirname, "killedMemory.ts")
const LIMIT_MS = 600_000
const AGENT = AgentId.make("helper")
const SECRET = "Rosebud-4711"
const SESSIONS = 3
const TURNS = 45
/** New statements that each life passes before it dies at one. */
const PASSES = isFull ? 0 : 11

const opened = (where: Where): Layer.Layer<Database | SqlClient.SqlClient> =>
  Layer.fresh(
    "folder" in where ? Layer.orDie(Database.layerEmbedded(where)) : Layer.orDie(Database.layerPostgres(where))
  )

const storesOn = (where: Where) => storesWith(CONFIG).pipe(Layer.provideMerge(opened(where)))

/** Three sessions that have ended, of which each has chunks of some batches, and two facts. */
const fill = Effect.gen(function* () {
  const sessions = yield* SessionStore
  yield* makeMemory(AGENT)
  for (let session = 0; session < SESSIONS; session += 1) {
    const drafts = Array.from({ length: TURNS }, (_, turn): ReadonlyArray<EventDraft> => {
      const words =
        turn === 20 ? `my word is ${SECRET}` : `on day ${turn} of month ${session} ${"we dig here. ".repeat(40)}`
      return [said(turn + 1, words), reply(turn + 1, "noted")]
    })
    const { session_id } = (yield* begin(AGENT, ...drafts.flat())).caller
    yield* sessions.summarize(session_id, SUMMARY)
    yield* end(session_id)
  }
  yield* writeFact(AGENT, "user.word", `It is ${SECRET}`)
  yield* writeFact(AGENT, "user.city", "Lyon")
})

/** All that an agent's memory is, in one order, without the ids and dates that differ from life to life. */
const contents = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const table = (name: string) => sql(`${agentSchema(AGENT)}.${name}`)
  const sessions = yield* sql<{ readonly session_id: SessionId }>`SELECT session_id, memory_tier, memory_state, summary
    FROM choir_control.sessions ORDER BY session_id`
  const store = yield* EventStore
  return {
    sessions,
    // The event that lists what was forgotten has a date and a salt, which the head depends on.
    verified: yield* Effect.forEach(sessions, ({ session_id }) =>
      Effect.map(store.verify(session_id), ({ events, forgotten, ok }) => ({ events, forgotten, ok }))
    ),
    chunks:
      yield* sql`SELECT d.session_id, d.tier, d.first_rev, d.last_rev, d.part, d.chunk_index, d.text, d.untrusted, d.embed_after IS NULL AS done,
      array(SELECT e.model || ' ' || e.tier || ' ' || e.session_id || ' ' || md5(e.embedding::text)
        FROM ${table("memory_embeddings")} AS e WHERE e.document_id = d.id ORDER BY e.model) AS vectors
      FROM ${table("memory_documents")} AS d ORDER BY d.session_id, d.tier, d.first_rev, d.part`,
    facts: yield* sql`SELECT d.key, d.text, d.valid_to IS NULL AS valid, d.embed_after IS NULL AS done,
      array(SELECT e.model || ' ' || md5(e.embedding::text) FROM ${table("knowledge_embeddings")} AS e WHERE e.document_id = d.id ORDER BY e.model) AS vectors
      FROM ${table("knowledge_documents")} AS d ORDER BY d.key, d.text`,
    indexes:
      yield* sql`SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = ${agentSchema(AGENT)} ORDER BY indexname`,
    left: yield* sql`SELECT 'job' AS kind, kind AS what FROM choir_control.memory_jobs UNION ALL SELECT 'order', who FROM choir_control.forgets`,
    receipts: yield* sql`SELECT who, detail FROM choir_control.audit WHERE action = 'memory.forget'`
  }
})

/** One life of the program: how it ended. */
const life = (work: MemoryWork) =>
  Effect.callback<string>((resume) => {
    const child = spawn(process.execPath, [PROGRAM, JSON.stringify(work)], { stdio: ["ignore", "pipe", "pipe"] })
    let out = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes: Buffer) => (out += bytes.toString()))
    child.once("close", (code, signal) => resume(Effect.succeed(signal ?? (code === 0 ? "ended" : out))))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** Lives until one of them ends; answers how many were killed. */
const lives = Effect.fnUntraced(function* (work: MemoryWork) {
  for (let killed = 0; ; killed += 1) {
    const how = yield* life(work)
    if (how === "ended") return killed
    assert.strictEqual(how, "SIGKILL")
  }
})

const KEY = "embedding-key"
const embedding = (model: string, dimensions: number, endpoint: string) => ({
  memory: { mid_term_sessions: 1 },
  embedding: { provider: "openai", model, dimensions, endpoint, secret: KEY }
})

/** Facts that are told, corrected, deleted and told again. */
const TOLD: ReadonlyArray<FactStep> = Array.from({ length: 12 }, (_, step) => {
  const key = `told.${step % 3}`
  return step % 4 === 2 ? { key } : { key, text: `value ${step}` }
})

/** The statements at which a life must have died somewhere, by what they do. */
const STEPS = {
  chunk: /INSERT INTO .*memory_documents/u,
  promote: /memory_tier = 'long_term'/u,
  embed: /INSERT INTO .*memory_embeddings/u,
  "re-embed": /DELETE FROM .*memory_embeddings/u,
  tell: /INSERT INTO .*knowledge_documents/u,
  correct: /UPDATE .*knowledge_documents.* superseded_by/u,
  delete: /UPDATE .*knowledge_documents.* valid_to/u,
  forget: /DELETE FROM choir_control\.forgets/u
}

const survives = (
  make: Effect.Effect<Where, never, Scope.Scope>,
  copy: (where: Where) => Effect.Effect<Where, never, Scope.Scope>
) =>
  Effect.gen(function* () {
    const whole = yield* make
    yield* fill.pipe(Effect.provide(storesOn(whole)), Effect.scoped)
    const cut = yield* copy(whole)
    const [small, large] = [
      yield* embeddingServer({ model: "small", dimensions: 8, key: KEY }),
      yield* embeddingServer({ model: "large", dimensions: 12, key: KEY })
    ]
    const secrets = { ...SECRETS, [KEY]: KEY }
    const stages: Array<Omit<MemoryWork, "where">> = []
    for (const [config, words] of [
      [{ ...CONFIG, ...embedding("small", 8, small.endpoint) }, undefined],
      [{ ...CONFIG, ...embedding("large", 12, large.endpoint) }, undefined],
      [{ ...CONFIG, ...embedding("large", 12, large.endpoint) }, SECRET]
    ] as const)
      stages.push({
        home: yield* makeHome(config, secrets),
        config,
        agent: AGENT,
        ...(words === undefined ? {} : { words })
      })
    const folder = yield* temporaryFolder
    const file = join(folder, "statements")
    const told = (name: string) => ({ facts: { file: join(folder, name), steps: TOLD } })
    let killed = 0
    for (const [number, stage] of stages.entries()) {
      assert.strictEqual(yield* lives({ ...stage, ...told("whole"), where: whole }), 0)
      killed += yield* lives({ ...stage, ...told("cut"), where: cut, dies: { file, passes: PASSES } })
      const of = (where: Where) => contents.pipe(Effect.provide(storesOn(where)), Effect.scoped)
      const [expected, found] = [yield* of(whole), yield* of(cut)]
      assert.deepStrictEqual(found, expected, `stage ${number}`)
      assert.deepStrictEqual(found.left, [])
      assert.isTrue(found.verified.every(({ ok }) => ok))
      assert.strictEqual(JSON.stringify(found).includes(SECRET), number < 2)
    }
    assert.isAbove(killed, isFull ? 20 : 2)
    const died = readFileSync(file, "utf8")
    for (const [step, statement] of Object.entries(STEPS)) assert.match(died, statement, step)
  }).pipe(Effect.scoped)

const embeddedFolder = Effect.map(temporaryFolder, (folder): Where => ({
  folder: join(folder, "data"),
  template: embeddedTemplate()
}))

const copyFolder = (where: Where) =>
  Effect.tap(embeddedFolder, (copy) =>
    Effect.sync(() => {
      if ("folder" in where && "folder" in copy) cpSync(where.folder, copy.folder, { recursive: true })
    })
  )

const copyDatabase = (where: Where) =>
  Effect.gen(function* () {
    const copy = yield* postgresDatabase
    if ("folder" in where) return copy
    yield* Effect.scoped(
      Effect.gen(function* () {
        const sql = yield* PgClient.makeClient({ ...where, username: where.user, database: "postgres" })
        yield* sql.unsafe(`DROP DATABASE ${copy.database}`)
        yield* sql.unsafe(`CREATE DATABASE ${copy.database} TEMPLATE ${where.database}`)
      })
    ).pipe(Effect.provide(Reactivity.layer), Effect.orDie)
    return copy
  })

const lose = "lose and double nothing of chunks, facts, vectors, promotions, re-embeddings and orders to forget"
const { kind } = oneEngine()

if (isFull || kind === "embedded")
  describe("kills of choird while it works on memory (embedded)", () => {
    it.live(lose, () => survives(embeddedFolder, copyFolder), LIMIT_MS)
  })

if (isFull || kind === "postgres")
  describePostgres("kills of choird while it works on memory (postgres)", () => {
    it.live(lose, () => survives(postgresDatabase, copyDatabase), LIMIT_MS)
  })
