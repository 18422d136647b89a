/**
 * Work on an agent's memory in a process of its own, which dies by SIGKILL: `node killedMemory.ts JSON`, with {@link MemoryWork} as JSON. It
 * dies before the first statement that changes rows and at which no earlier life died, so that each next life gets further.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Layer } from "effect"
import { type SqlClient, Statement } from "effect/sql"
import { AgentId } from "#schema/Ids.ts"
import { FactKey } from "#schema/Memory.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Database } from "#src/choird/database/Database.ts"
import { EmbeddingQueue } from "#src/choird/memory/EmbeddingQueue.ts"
import { Embeddings } from "#src/choird/memory/Embeddings.ts"
import { Forgetting } from "#src/choird/memory/Forgetting.ts"
import { Knowledge } from "#src/choird/memory/Knowledge.ts"
import { SessionMemory } from "#src/choird/memory/SessionMemory.ts"
import type { Where } from "../../support/migrator.ts"
import { storesWith } from "../../support/stores.ts"

/** A fact by its key: told with this text, or deleted without one. */
export interface FactStep {
  readonly key: string
  readonly text?: string
}

export interface MemoryWork {
  readonly where: Where
  readonly home: string
  readonly config: object
  readonly agent: string
  /** Facts that are told and deleted, in this order, before the rest. Each line of the file is one that is done, so that the next life asks for the others. */
  readonly facts?: { readonly file: string; readonly steps: ReadonlyArray<FactStep> }
  /** Words to forget before the rest; none if absent. */
  readonly words?: string
  /** The file of the statements at which a life died, and how many new ones each life lets pass before it dies. Without it nobody dies. */
  readonly dies?: { readonly file: string; readonly passes: number }
}

const { agent, config, dies, facts, home, where, words } = JSON.parse(process.argv[2] ?? "") as MemoryWork

/** A statement that changes rows or tables. */
const CHANGES = /\b(INSERT|UPDATE|DELETE|CREATE|DROP)\b/u

const seen = new Set(dies !== undefined && existsSync(dies.file) ? readFileSync(dies.file, "utf8").split("\n") : [])
let passed = 0

/** Dies before the statement if it is a new one. */
const dieAt = (statement: string) => {
  const line = statement.replaceAll(/\s+/gu, " ").trim()
  if (dies === undefined || !CHANGES.test(line) || seen.has(line)) return
  seen.add(line)
  appendFileSync(dies.file, `${line}\n`)
  passed += 1
  if (passed > dies.passes) process.kill(process.pid, "SIGKILL")
}

const transformer: Statement.Transformer = (statement) =>
  Effect.sync(() => {
    dieAt(statement.compile()[0])
    return statement
  })

/** What is asked again after a kill is the call that was cut off: a fact has the same id as before. */
const tell = Effect.fnUntraced(function* (agent_id: AgentId, { file, steps }: NonNullable<MemoryWork["facts"]>) {
  const knowledge = yield* Knowledge
  const done = existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 1 : 0
  for (const [place, { key: name, text }] of [...steps.entries()].slice(done)) {
    const key = FactKey.make(name)
    const call_id = `step ${place}`
    if (text === undefined) yield* knowledge.remove(agent_id, { key })
    else yield* knowledge.set(agent_id, { key, text, untrusted: false, source: { kind: "operator" }, call_id })
    appendFileSync(file, `${place}\n`)
  }
})

const main = Effect.gen(function* () {
  const [memory, vectors, forgetting] = [yield* SessionMemory, yield* EmbeddingQueue, yield* Forgetting]
  yield* forgetting.finish
  const agent_id = AgentId.make(agent)
  if (facts !== undefined) yield* tell(agent_id, facts)
  if (words !== undefined) {
    const order = { type: "words", words } as const
    const { facts, sessions } = yield* forgetting.plan(agent_id, order)
    if (facts.length + sessions.length > 0) yield* forgetting.forget(agent_id, order, "operator")
  }
  yield* memory.drain
  const failure = yield* vectors.drain
  if (failure !== undefined) return yield* Effect.die(new Error(failure))
})

const options = { ...where, migrates: false }
const database: Layer.Layer<Database | SqlClient.SqlClient> =
  "folder" in options ? Layer.orDie(Database.layerEmbedded(options)) : Layer.orDie(Database.layerPostgres(options))
const choird = Layer.merge(Forgetting.layer, Knowledge.layer).pipe(
  Layer.provide(Layer.mock(Lifecycle, { pause: () => Effect.succeed(false) })),
  Layer.provideMerge(SessionMemory.layer),
  Layer.provideMerge(EmbeddingQueue.layer),
  Layer.provideMerge(Embeddings.layer),
  Layer.provide(ConfigStore.layer({ home })),
  Layer.provideMerge(storesWith(config)),
  Layer.provideMerge(database),
  Layer.orDie
)
NodeRuntime.runMain(
  main.pipe(Effect.provideService(Statement.CurrentTransformer, transformer), Effect.provide(choird), Effect.scoped)
)
