/** The next piece of work on the vectors of one agent: a batch of texts, the flip to a new model, or the removal of old vectors. */
import { Cause, Context, Duration, Effect, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import { Database } from "#src/choird/database/Database.ts"
import { inTransaction, retryDatabase, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { EMBEDDING_BATCH_MAX, type EmbeddingFailed } from "./Embedder.ts"
import { type AnEmbedder, Embeddings, readServing, writeServing } from "./Embeddings.ts"
import type { EmbeddingModel } from "./embeddingSettings.ts"
import {
  deleteOthers,
  type DocumentKind,
  dueDocuments,
  type EmbeddedDocument,
  hasMemory,
  isComplete,
  KINDS,
  lackingDocuments,
  postpone,
  storeVectors,
  type WaitingDocument
} from "./embeddingRows.ts"
import { VectorIndexes } from "./VectorIndexes.ts"
import { NO_ID } from "#src/choird/database/rowId.ts"

/** Tries of one request beside the first, and the wait before the first of them, which doubles. */
const EMBEDDING_RETRIES_MAX = 3
const EMBEDDING_RETRY_MS = 1000
/** The longest wait within a try; a provider that asks for more is asked again after a pause. */
const EMBEDDING_RETRY_MS_MAX = 60_000
/** Texts that a model refuses in a row, one by one, before it counts as failing. */
const REFUSED_IN_A_ROW_MAX = 3
/** Vectors of one transaction: the embedded database adds each to its index in some milliseconds, and answers nobody else meanwhile. */
const STORED_EMBEDDED_MAX = 8
const STORED_SERVER_MAX = EMBEDDING_BATCH_MAX

export type Outcome =
  | { readonly _tag: "Worked" }
  | { readonly _tag: "Idle" }
  | { readonly _tag: "Failed"; readonly error: EmbeddingFailed }

const WORKED: Outcome = { _tag: "Worked" }
const IDLE: Outcome = { _tag: "Idle" }

/** How far an agent's documents were searched for missing vectors of the model, since choird started. */
interface Looked {
  readonly after: Map<DocumentKind, string>
  /** Whether everything is as it should be: nothing to flip, nothing to remove. */
  tidy: boolean
}

/** The request again, 1, 2 and 4 s later, as long as it may help. */
const retrying = <A>(work: Effect.Effect<A, EmbeddingFailed>) =>
  Effect.retry(
    work,
    Schedule.exponential(EMBEDDING_RETRY_MS).pipe(
      Schedule.jittered,
      Schedule.setInputType<EmbeddingFailed>(),
      Schedule.modifyDelay(({ duration, input }) =>
        Effect.succeed(Math.max(Duration.toMillis(duration), input.retry_after_ms ?? 0))
      ),
      Schedule.while(({ input }) => input.passing && (input.retry_after_ms ?? 0) <= EMBEDDING_RETRY_MS_MAX),
      Schedule.upTo({ times: EMBEDDING_RETRIES_MAX })
    )
  )

interface Batch {
  readonly made: ReadonlyArray<EmbeddedDocument>
  readonly refused: ReadonlyArray<WaitingDocument>
  readonly failure?: EmbeddingFailed
}

const withVectors = (documents: ReadonlyArray<WaitingDocument>, vectors: ReadonlyArray<Float32Array>) =>
  documents.flatMap((document, place) => {
    const vector = vectors[place]
    return vector === undefined ? [] : [{ ...document, vector }]
  })

const embedAll = (embedder: AnEmbedder, documents: ReadonlyArray<WaitingDocument>) =>
  Effect.map(retrying(embedder.embed(documents.map(({ text }) => text))), (vectors) => withVectors(documents, vectors))

/** Each text by itself, to find the one that the model refuses. */
const embedEach = Effect.fnUntraced(function* (embedder: AnEmbedder, documents: ReadonlyArray<WaitingDocument>) {
  const made: Array<EmbeddedDocument> = []
  const refused: Array<WaitingDocument> = []
  for (const document of documents) {
    const result = yield* Effect.result(embedAll(embedder, [document]))
    if (result._tag === "Success") made.push(...result.success)
    else if (result.failure.scope === "provider") return { made, refused, failure: result.failure }
    else refused.push(document)
    // It may be the request as such that is refused.
    if (result._tag === "Failure" && made.length === 0 && refused.length >= REFUSED_IN_A_ROW_MAX)
      return { made, refused, failure: result.failure }
  }
  return { made, refused }
})

/** The vectors of a batch as far as they can be had. */
const embedBatch = (embedder: AnEmbedder, documents: ReadonlyArray<WaitingDocument>): Effect.Effect<Batch> =>
  embedAll(embedder, documents).pipe(
    Effect.map((made): Batch => ({ made, refused: [] })),
    Effect.catch((error) =>
      error.scope === "provider"
        ? Effect.succeed<Batch>({ made: [], refused: [], failure: error })
        : embedEach(embedder, documents)
    )
  )

const ofKind = <D extends WaitingDocument>(documents: ReadonlyArray<D>, kind: DocumentKind) =>
  documents.filter((document) => document.kind === kind)

const chunksOf = <A>(all: ReadonlyArray<A>, size: number): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, place) => all.slice(place * size, (place + 1) * size))

/** Waits for a database that is away: what was embedded is not embedded again. */
const onDatabase = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.flatMap(useDatabase, (use) => retryDatabase(use(work)))

/** Due documents, then those that had a vector of another model, or lost theirs, a part of them at a time. */
const nextBatch = Effect.fnUntraced(function* (agent_id: AgentId, model: string, { after }: Looked) {
  const found = [...(yield* onDatabase(dueDocuments(agent_id, EMBEDDING_BATCH_MAX)))]
  for (const [kind, id] of after) {
    const room = EMBEDDING_BATCH_MAX - found.length
    if (room === 0) break
    const lacking = yield* onDatabase(lackingDocuments(agent_id, kind, model, id, room))
    const last = lacking.at(-1)
    if (last === undefined) after.delete(kind)
    else after.set(kind, last.id)
    found.push(...lacking)
  }
  return found
})

/** Stores the vectors of a batch in parts that the database takes at once, and postpones the texts that the model refuses. */
const store = Effect.fnUntraced(function* (agent_id: AgentId, model: string, { made, refused }: Batch) {
  const { kind: database } = yield* Database
  const stored_max = database === "embedded" ? STORED_EMBEDDED_MAX : STORED_SERVER_MAX
  for (const kind of KINDS) {
    for (const part of chunksOf(ofKind(made, kind), stored_max)) {
      yield* onDatabase(storeVectors(agent_id, kind, model, part))
      // The numbers become text here: other work goes between the parts.
      yield* Effect.yieldNow
    }
    const ids = ofKind(refused, kind).map(({ id }) => id)
    if (ids.length === 0) continue
    yield* onDatabase(postpone(agent_id, kind, ids))
    yield* Effect.logWarning(
      `${agent_id}: ${ids.length} texts of memory were refused by ${model}; choird tries them again later`
    )
  }
})

/** Lets the new model serve once all have its vectors; then removes what is left of earlier ones. */
const tidy = Effect.fnUntraced(function* (
  agent_id: AgentId,
  embedder: AnEmbedder,
  model: EmbeddingModel,
  state: Looked
) {
  const indexes = yield* VectorIndexes
  if (state.tidy) return IDLE
  const serving = yield* onDatabase(readServing(agent_id))
  if (serving !== undefined && serving.model !== embedder.model) {
    if (!(yield* onDatabase(isComplete(agent_id, embedder.model)))) return IDLE
    yield* onDatabase(inTransaction(writeServing(agent_id, model, serving.model)))
    yield* Effect.logInfo(`${agent_id}: memory is searched with ${embedder.model} from now on`)
    return WORKED
  }
  yield* retryDatabase(indexes.dropOthers(agent_id, [embedder.model]))
  if (yield* onDatabase(deleteOthers(agent_id, [embedder.model]))) return WORKED
  state.tidy = true
  return IDLE
})

export const makeEmbeddingSteps = Effect.gen(function* () {
  const embeddings = yield* Embeddings
  const indexes = yield* VectorIndexes
  const context = Context.pick(
    Database,
    SqlClient.SqlClient,
    VectorIndexes
  )(yield* Effect.context<Database | SqlClient.SqlClient | VectorIndexes>())
  const looked = new Map<AgentId, Looked>()

  const lookedAt = (agent_id: AgentId) => {
    const state = looked.get(agent_id) ?? { after: new Map(KINDS.map((kind) => [kind, NO_ID])), tidy: false }
    looked.set(agent_id, state)
    return state
  }

  const embedNext = Effect.fnUntraced(function* (agent_id: AgentId, embedder: AnEmbedder, model: EmbeddingModel) {
    const documents = yield* nextBatch(agent_id, embedder.model, lookedAt(agent_id))
    if (documents.length === 0) return undefined
    yield* onDatabase(writeServing(agent_id, model))
    yield* retryDatabase(indexes.ensure(agent_id, embedder))
    const batch = yield* embedBatch(embedder, documents)
    yield* store(agent_id, embedder.model, batch)
    lookedAt(agent_id).tidy = false
    // Where some had no success those that lack a vector are looked for from the beginning.
    if (batch.failure !== undefined) looked.delete(agent_id)
    return batch.failure === undefined ? WORKED : ({ _tag: "Failed", error: batch.failure } as const)
  })

  return {
    /** Does the next piece of an agent's work. A failure of the database other than its absence is logged; it concerns this agent alone. */
    next: (agent_id: AgentId): Effect.Effect<Outcome> =>
      Effect.gen(function* () {
        const embedder = embeddings.configured(agent_id)
        const { model } = embeddings
        if (embedder === undefined || model === undefined || !(yield* onDatabase(hasMemory(agent_id)))) return IDLE
        return (
          (yield* embedNext(agent_id, embedder, model)) ?? (yield* tidy(agent_id, embedder, model, lookedAt(agent_id)))
        )
      }).pipe(
        Effect.provideContext(context),
        Effect.catchCauseIf(
          (cause) => !Cause.hasInterrupts(cause),
          (cause) => Effect.as(Effect.logError(`${agent_id}: embedding texts of memory failed`, cause), IDLE)
        )
      )
  }
})
