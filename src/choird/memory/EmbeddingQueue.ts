/**
 * Gives the documents of every agent's memory their vectors, in the background. The queue is the documents themselves, so it resumes by
 * itself wherever it was cut off. After a change of the model it makes new vectors of everything while the old ones serve searches, then
 * flips (D37).
 */
import { Context, Effect, Layer, Queue, type Scope, Stream } from "effect"
import { AgentId } from "#schema/Ids.ts"
import type { MemoryStatus } from "#schema/SystemApi.ts"
import { restarted } from "#src/shared/background.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { Embeddings, readServing } from "./Embeddings.ts"
import { makeEmbeddingSteps } from "./embeddingSteps.ts"
import { VectorIndexes } from "./VectorIndexes.ts"
import { countProgress, countWaiting, type EmbeddingProgress, hasMemory } from "./embeddingRows.ts"
import { modelName } from "./embeddingSettings.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** Agents whose texts are counted; those of further ones are left out of the sums. */
const COUNTED_AGENTS_MAX = 100

interface AgentTexts {
  readonly waiting: number
  /** Of the vectors of a new model. */
  readonly change?: EmbeddingProgress
}

const textsOf = (model: string) =>
  Effect.fnUntraced(function* (agent_id: AgentId) {
    if (!(yield* hasMemory(agent_id))) return { waiting: 0 }
    const serving = yield* readServing(agent_id)
    const texts: AgentTexts = {
      waiting: yield* countWaiting(agent_id),
      ...(serving === undefined || serving.model === model ? {} : { change: yield* countProgress(agent_id, model) })
    }
    return texts
  })

const sum = (numbers: ReadonlyArray<number>) => numbers.reduce((total, one) => total + one, 0)

/** How searches of memory work at the moment, for operators. */
const memoryStatus = Effect.fnUntraced(function* (agents: ReadonlyArray<AgentId>) {
  const embeddings = yield* Embeddings
  if (embeddings.model === undefined) return { model: null, waiting: 0 }
  const model = modelName(embeddings.model)
  const texts: ReadonlyArray<AgentTexts> = yield* Effect.forEach(agents.slice(0, COUNTED_AGENTS_MAX), textsOf(model))
  const changes = texts.flatMap(({ change }) => (change === undefined ? [] : [change]))
  const trouble = yield* embeddings.trouble
  const failing_ms = trouble === undefined ? 0 : Math.max(0, (yield* monotonicMs) - trouble.since_ms)
  const status: MemoryStatus = {
    model,
    waiting: sum(texts.map(({ waiting }) => waiting)),
    ...(trouble === undefined ? {} : { problem: trouble.problem, failing_ms }),
    ...(changes.length === 0
      ? {}
      : { reembedding: { done: sum(changes.map(({ done }) => done)), total: sum(changes.map(({ total }) => total)) } })
  }
  return status
})

/** The time between two looks for documents that nobody announced. */
const EMBEDDING_LOOK_MS = 30_000
/** The first pause after a provider has failed, which doubles, and the longest one. */
const EMBEDDING_PAUSE_MS = 30_000
const EMBEDDING_PAUSE_MS_MAX = 900_000

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
  const { next } = yield* makeEmbeddingSteps
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
      restarted("the watch for other embeddings"),
      Effect.forkScoped({ startImmediately: true })
    )
    yield* loop.pipe(restarted("the embedding of texts"), Effect.forkScoped)
  })

  return EmbeddingQueue.of({
    wake: Effect.asVoid(Queue.offer(woken, undefined)),
    run,
    drain: Effect.map(drain, (failure) => failure?.message),
    status: Effect.flatMap(agents, memoryStatus).pipe(Effect.provideService(Embeddings, embeddings), onDatabase)
  })
})
