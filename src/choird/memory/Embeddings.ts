/** The embedding models of this choird: that of config.json, and those whose vectors still serve searches. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { type Embedder, type EmbeddingFailed, EmbeddingMeter, type EmbeddingUse } from "./Embedder.ts"
import { EmbeddingModel, embeddingModel, modelName } from "./embeddingSettings.ts"
import { makeLocalEmbedder } from "./localEmbedder.ts"
import { makeRemoteEmbedder } from "./remoteEmbedder.ts"
import { layerOutsideClient } from "#src/shared/wire/undiciClient.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

export type AnEmbedder = Embedder["Service"]

/** A failure that no success has followed yet. */
export interface EmbeddingTrouble {
  readonly problem: string
  readonly since_ms: number
}

export class Embeddings extends Context.Service<
  Embeddings,
  {
    /** The model of config.json, which new vectors are made with; undefined where searches go by words alone. */
    readonly model: EmbeddingModel | undefined
    /** The embedder of `model`, which counts its use for an agent. */
    configured(agent_id: AgentId): AnEmbedder | undefined
    /**
     * The embedder whose vectors an agent's searches compare: after a change of the model the earlier one, until every text has a vector of
     * the new one. Undefined where there are no vectors. Its use counts for `payer`.
     */
    serving(agent_id: AgentId, payer?: AgentId): Effect.Effect<AnEmbedder | undefined, DatabaseAway>
    /** The last failure of the model of config.json, until it has made vectors again. */
    readonly trouble: Effect.Effect<EmbeddingTrouble | undefined>
  }
>()("choir/choird/Embeddings") {
  static readonly layer = Layer.effect(
    Embeddings,
    Effect.suspend(() => make)
  ).pipe(Layer.provide(layerOutsideClient({})))
}

/** Embedders of models that are not configured any more; more models than agents never serve at once. */
const EARLIER_MAX = 64

const decode = Schema.decodeUnknownEffect(EmbeddingModel)

const make = Effect.gen(function* () {
  const onDatabase = yield* useDatabase
  const config = yield* ConfigStore
  const local = yield* makeLocalEmbedder()
  const context = yield* Effect.context<Effect.Services<ReturnType<typeof makeRemoteEmbedder>>>()
  const model = embeddingModel((yield* config.current).config)
  let trouble: EmbeddingTrouble | undefined

  const embedderOf = (model: EmbeddingModel) =>
    model.provider === "local" ? Effect.succeed(local) : Effect.provideContext(makeRemoteEmbedder(model), context)

  const failed = Effect.fnUntraced(function* ({ problem }: EmbeddingFailed) {
    trouble = { problem, since_ms: trouble?.since_ms ?? (yield* monotonicMs) }
  })
  /** The same embedder, whose outcomes are remembered. A text that it refuses says nothing about it. */
  const watched = (embedder: AnEmbedder): AnEmbedder => ({
    ...embedder,
    embed: (texts) =>
      embedder.embed(texts).pipe(
        Effect.tap(() => Effect.sync(() => void (trouble = undefined))),
        Effect.tapError((error) => (error.scope === "provider" ? failed(error) : Effect.void))
      )
  })

  const count = (agent_id: AgentId, model: string) => (use: EmbeddingUse) =>
    onDatabase(countUse(agent_id, model, use)).pipe(
      Effect.catch((away) => Effect.logWarning(`the use of an embedding model was not counted: ${away.message}`))
    )
  const countedFor = (agent_id: AgentId, embedder: AnEmbedder): AnEmbedder => ({
    ...embedder,
    embed: (texts) =>
      Effect.flatMap(EmbeddingMeter, (outer) =>
        Effect.provideService(embedder.embed(texts), EmbeddingMeter, (use) =>
          Effect.andThen(count(agent_id, embedder.model)(use), outer(use))
        )
      )
  })

  const own = model === undefined ? undefined : watched(yield* embedderOf(model))
  const earlier = new Map<string, AnEmbedder>()
  const embedderOfRow = Effect.fnUntraced(function* (row: Serving) {
    if (row.model === own?.model) return own
    const known = earlier.get(row.model)
    if (known !== undefined) return known
    const embedder = yield* embedderOf(row.settings)
    if (earlier.size < EARLIER_MAX) earlier.set(row.model, embedder)
    return embedder
  })

  return Embeddings.of({
    model,
    configured: (agent_id) => (own === undefined ? undefined : countedFor(agent_id, own)),
    serving: Effect.fn("Embeddings.serving")(function* (agent_id, payer = agent_id) {
      const row = own === undefined ? undefined : yield* readServing(agent_id)
      return row === undefined ? undefined : countedFor(payer, yield* embedderOfRow(row))
    }, onDatabase),
    trouble: Effect.sync(() => trouble)
  })
})

/** The model whose vectors serve an agent's searches, and how it is asked. */
export interface Serving {
  readonly model: string
  readonly settings: EmbeddingModel
}

export const readServing = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly model: string; readonly settings: unknown }>`SELECT model, settings
    FROM choir_control.embedding_serving WHERE agent_id = ${agent_id}`
  if (row === undefined) return undefined
  const serving: Serving = { model: row.model, settings: yield* Effect.orDie(decode(row.settings)) }
  return serving
})

/** Lets the vectors of a model serve an agent's searches from now on, unless those of another one already do and `replaced` is not it. */
export const writeServing = Effect.fnUntraced(function* (agent_id: AgentId, model: EmbeddingModel, replaced?: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`INSERT INTO choir_control.embedding_serving AS serving (agent_id, model, settings)
    VALUES (${agent_id}, ${modelName(model)}, ${JSON.stringify(model)}::jsonb)
    ON CONFLICT (agent_id) DO UPDATE SET model = EXCLUDED.model, settings = EXCLUDED.settings, since = now()
      WHERE serving.model = ${replaced ?? null}`
})

/** Counts what an agent's texts cost, by the day of UTC. */
const countUse = Effect.fnUntraced(function* (agent_id: AgentId, model: string, use: EmbeddingUse) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`INSERT INTO choir_control.embedding_costs AS costs (agent_id, day, model, texts, tokens, cost_usd)
    VALUES (${agent_id}, (now() AT TIME ZONE 'UTC')::date, ${model}, ${use.texts}, ${use.tokens}, ${use.cost_usd})
    ON CONFLICT (agent_id, day, model) DO UPDATE SET texts = costs.texts + EXCLUDED.texts,
      tokens = costs.tokens + EXCLUDED.tokens, cost_usd = costs.cost_usd + EXCLUDED.cost_usd`
})
