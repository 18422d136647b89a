/** How agents' memory is searched at the moment, for operators. */
import { Effect } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import type { MemoryStatus } from "#schema/SystemApi.ts"
import { countProgress, countWaiting, type EmbeddingProgress, hasMemory } from "./embeddingRows.ts"
import { Embeddings, readServing } from "./Embeddings.ts"
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

export const memoryStatus = Effect.fnUntraced(function* (agents: ReadonlyArray<AgentId>) {
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
