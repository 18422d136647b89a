/** The operator's endpoints about agents' memory: what it holds, facts to set and delete, and what is to be forgotten. */
import { Context, Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { AgentId } from "#schema/Ids.ts"
import type { Fact, FactKey } from "#schema/Memory.ts"
import { MEMORY_PAGE_MAX, type MemoryName } from "#schema/MemoryApi.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { conflict, fromAgentRefused, notFound } from "#src/choird/api/refusals.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { type DatabaseAway, databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { Forgetting } from "#src/choird/memory/Forgetting.ts"
import { Knowledge } from "#src/choird/memory/Knowledge.ts"
import { MemoryContents } from "#src/choird/memory/MemoryContents.ts"
import { Recall } from "#src/choird/memory/Recall.ts"

const OPERATOR = { kind: "operator", who: "operator" } as const

const nameText = (name: MemoryName) => ("key" in name ? name.key : name.id)

const unknown = (agent_id: AgentId, name: MemoryName) =>
  notFound(
    "UNKNOWN_MEMORY",
    `${agent_id} remembers nothing named ${nameText(name)}`,
    `choirctl memory list ${agent_id}`
  )

/** Stores a fact in the operator's name. */
const setFact = Effect.fn("OperatorApi.setFact")(function* (id: AgentId, key: FactKey | null, text: string) {
  const audit = yield* Audit
  const knowledge = yield* Knowledge
  const { change, fact } = yield* knowledge.set(id, { key, text, untrusted: false, source: OPERATOR }).pipe(
    // An operator's fact is trusted.
    Effect.catchTag("FactTrusted", Effect.die),
    Effect.catchTag("KnowledgeFull", ({ message }) =>
      Effect.fail(conflict("MEMORY_FULL", message, `choirctl memory delete ${id} KEY`))
    )
  )
  const detail = { document_id: fact.id, change }
  yield* audit.record({ who: "operator", action: "memory.set", agent_id: id, detail })
  return { fact, change }
}, databaseDefect)

export const layerOperatorMemory = HttpApiBuilder.group(
  OperatorApi,
  "memory",
  Effect.fnUntraced(function* (handlers) {
    const audit = yield* Audit
    const contents = yield* MemoryContents
    const forgetting = yield* Forgetting
    const knowledge = yield* Knowledge
    const lifecycle = yield* Lifecycle
    const recall = yield* Recall
    const provide = Effect.provideContext(Context.make(Audit, audit).pipe(Context.add(Knowledge, knowledge)))

    const known = (id: AgentId) => Effect.mapError(lifecycle.view(id), fromAgentRefused)
    const onAgent = <A, E, R>(id: AgentId, work: Effect.Effect<A, E, R>) => Effect.andThen(known(id), work)
    /** Changes the fact of a name, and audits that. */
    const onFact = Effect.fn("OperatorApi.changeFact")(function* (
      id: AgentId,
      name: MemoryName,
      action: "memory.delete" | "memory.trust",
      change: Effect.Effect<Option.Option<Fact>, DatabaseAway>
    ) {
      yield* known(id)
      const fact = Option.getOrUndefined(yield* databaseDefect(change))
      if (fact === undefined) return yield* unknown(id, name)
      yield* audit.record({ who: "operator", action, agent_id: id, detail: { document_id: fact.id } })
      return fact
    })

    return handlers.handleAll({
      list: Effect.fn("OperatorApi.listMemory")(function* ({ params: { id }, query: { prefix } }) {
        yield* known(id)
        const options = { limit: MEMORY_PAGE_MAX, ...(prefix === undefined ? {} : { prefix }) }
        const facts = yield* databaseDefect(knowledge.list(id, options))
        return { summary: yield* databaseDefect(contents.summary(id)), facts }
      }),
      show: Effect.fn("OperatorApi.showMemory")(function* ({ params: { id }, payload }) {
        yield* known(id)
        const values = yield* databaseDefect(knowledge.history(id, payload))
        if (values.length > 0) return { type: "fact" as const, values }
        const hit = "id" in payload ? yield* databaseDefect(recall.get(id, payload.id)) : Option.none()
        return Option.isSome(hit) ? { type: "session" as const, hit: hit.value } : yield* unknown(id, payload)
      }),
      search: ({ params: { id }, payload: { session_id, ...asked } }) =>
        onAgent(
          id,
          databaseDefect(
            recall.search({
              ...asked,
              ...(session_id === undefined ? {} : { session_id }),
              mode: session_id === undefined ? "hybrid" : "session_detail",
              agent: id,
              cross: false
            })
          )
        ),
      set: ({ params: { id }, payload: { key, text } }) => onAgent(id, provide(setFact(id, key, text))),
      delete: ({ params: { id }, payload }) => onFact(id, payload, "memory.delete", knowledge.remove(id, payload)),
      trust: ({ params: { id }, payload }) => onFact(id, payload, "memory.trust", knowledge.trust(id, payload)),
      plan: ({ params: { id }, payload }) => onAgent(id, databaseDefect(forgetting.plan(id, payload))),
      forget: ({ params: { id }, payload }) =>
        onAgent(
          id,
          databaseDefect(forgetting.forget(id, payload, "operator")).pipe(
            Effect.catchTag("ForgetTooMuch", ({ message }) =>
              Effect.fail(conflict("FORGET_TOO_MUCH", message, `choirctl session list ${id}`))
            )
          )
        ),
      page: ({ params: { id }, query: { after } }) => onAgent(id, databaseDefect(contents.page(id, after)))
    })
  })
)
