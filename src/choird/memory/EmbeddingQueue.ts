/**
 * Gives the documents of every agent's memory their vectors, in the background. The queue is the documents themselves, so it resumes by
 * itself wherever it was cut off. After a change of the model it makes new vectors of everything while the old ones serve searches, then
 * flips (D37).
 */
import { Clock, Context, Effect, Layer, Queue, type Scope, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { AgentId } from "#schema/Ids.ts"
import type { MemoryStatus } from "#schema/SystemApi.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Database } from "#src/choird/database/Database.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { countProgress, countWaiting, hasMemory } from "./embeddingRows.ts"
import { Embeddings, readServing } from "./Embeddings.ts"
import { makeEmbeddingSteps } from "./embeddingSteps.ts"
import { VectorIndexes } from "./VectorIndexes.ts"

/** The time between two looks for documents that nobody announced. */
const EMBEDDING_LOOK_MS = 30_000
/** The first pause after a provider has failed, which doubles, and the longest one. */
const EMBEDDING_PAUSE_MS = 30_000
export const EMBEDDING_PAUSE_MS_MAX = 900_000
/** Agents whose waiting texts `status` counts; the others are left out of the sum. */
const COUNTED_AGENTS_MAX = 100

export class EmbeddingQueue extends Context.Service<
  EmbeddingQueue,
  {
    /** Looks for documents at once: some were written. */
    readonly wake: Effect.Effect<void>
    /** Works in the background until the scope closes. */
    readonly run: Effect.Effect<void, never, Scope.Scope>
    /** Works until nothing is due, the pauses after failures left out; returns what a provider failed with. */
    readonly drain: Effect.Effect<string | undefined>
    /** How searches of memory work at the moment. */
    readonly status: Effect.Effect<MemoryStatus, DatabaseAway>
  }
>()("choir/choird/EmbeddingQueue") {
  static readonly layer = Layer.effect(
    EmbeddingQueue,
    Effect.suspend(() => make)
  ).pipe(Layer.provide(VectorIndexes.layer))
}

const make = Effect.gen(function* () {
  const config = yield* ConfigStore
  const embeddings = yield* Embeddings
  const onDatabase = yield* useDatabase
  const context = yield* Effect.context<Database | SqlClient.SqlClient | VectorIndexes>()
  const step = Effect.provideContext(makeEmbeddingSteps, Context.add(context, Embeddings, embeddings))
  const { next } = yield* step
  const woken = yield* Queue.sliding<void>(1)
  const reconfigured = yield* Queue.sliding<void>(1)

  const agents = Effect.map(config.current, ({ config: { agents } }) =>
    Object.keys(agents).map((id) => AgentId.make(id))
  )

  /** A batch of each agent in turn, until none has work left or a provider fails. */
  const drain = Effect.gen(function* () {
    for (let worked = true; worked;) {
      worked = false
      for (const agent_id of yield* agents) {
        const outcome = yield* next(agent_id)
        if (outcome._tag === "Failed") return outcome.error
        worked ||= outcome._tag === "Worked"
      }
    }
    return undefined
  })

  const loop = Effect.gen(function* () {
    let pause_ms = EMBEDDING_PAUSE_MS
    while (true) {
      const failure = yield* drain
      if (failure === undefined) {
        pause_ms = EMBEDDING_PAUSE_MS
        yield* Effect.timeoutOption(Queue.take(woken), EMBEDDING_LOOK_MS)
        continue
      }
      const wait_ms = Math.min(Math.max(pause_ms, failure.retry_after_ms ?? 0), EMBEDDING_PAUSE_MS_MAX)
      yield* Effect.logWarning(
        `memory is searched by words alone: ${failure.message}; the next try is in ${Math.round(wait_ms / 1000)} s`
      )
      pause_ms = Math.min(2 * pause_ms, EMBEDDING_PAUSE_MS_MAX)
      // A new secret may be what it waits for.
      yield* Effect.timeoutOption(Queue.take(reconfigured), wait_ms)
    }
  })

  const run = Effect.gen(function* () {
    if (embeddings.model === undefined) return
    yield* config.changes.pipe(
      Stream.runForEach(() => Effect.andThen(Queue.offer(reconfigured, undefined), Queue.offer(woken, undefined))),
      Effect.forkScoped({ startImmediately: true })
    )
    yield* loop.pipe(
      Effect.tapCause((cause) =>
        Effect.logError("texts of memory get no vectors until choird is started again", cause)
      ),
      Effect.forkScoped
    )
  })

  const statusOf = Effect.fnUntraced(function* (agent_id: AgentId) {
    if (!(yield* hasMemory(agent_id))) return { waiting: 0, progress: undefined }
    const model = embeddings.configured(agent_id)?.model
    const serving = yield* readServing(agent_id)
    const isNew = model !== undefined && serving !== undefined && serving.model !== model
    return {
      waiting: yield* countWaiting(agent_id),
      progress: isNew ? yield* countProgress(agent_id, model) : undefined
    }
  })

  const status = Effect.gen(function* () {
    const ids = (yield* agents).slice(0, COUNTED_AGENTS_MAX)
    const all = embeddings.model === undefined ? [] : yield* Effect.forEach(ids, statusOf)
    const changing = all.flatMap(({ progress }) => (progress === undefined ? [] : [progress]))
    const trouble = yield* embeddings.trouble
    const [first] = ids
    const model = first === undefined ? undefined : embeddings.configured(first)?.model
    const sum = (numbers: ReadonlyArray<number>) => numbers.reduce((total, one) => total + one, 0)
    const answer: MemoryStatus = {
      model: model ?? null,
      waiting: sum(all.map(({ waiting }) => waiting)),
      ...(trouble === undefined
        ? {}
        : { problem: trouble.problem, failing_ms: Math.max(0, (yield* Clock.currentTimeMillis) - trouble.since_ms) }),
      ...(changing.length === 0
        ? {}
        : {
            reembedding: { done: sum(changing.map(({ done }) => done)), total: sum(changing.map(({ total }) => total)) }
          })
    }
    return answer
  }).pipe(onDatabase)

  return EmbeddingQueue.of({
    wake: Effect.asVoid(Queue.offer(woken, undefined)),
    run,
    drain: Effect.map(drain, (failure) => failure?.message),
    status
  })
})
