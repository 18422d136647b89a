/** Sessions that end, the memory that choird makes of them, and its rows. */
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { type AgentId, EDGE, InboxId, type SessionId } from "#schema/Ids.ts"
import type { EventDraft } from "#schema/Event.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { agentSchema } from "#src/choird/database/AgentSchemas.ts"
import { EmbeddingQueue } from "#src/choird/memory/EmbeddingQueue.ts"
import { make, SessionMemory } from "#src/choird/memory/SessionMemory.ts"
import { SessionArchives } from "#src/choird/retention/SessionArchives.ts"
import { insertEvents } from "#src/choird/sessions/storedEvents.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { makeMemory } from "./memoryRows.ts"
import { BINDINGS, CONFIG, makeHome, newAgent, reply, SECRETS, storesWith, Talk } from "./stores.ts"

export const SUMMARY = {
  title: "Plans for the garden",
  summary: "They planned a garden. ".repeat(60),
  decisions: ["Plant an oak"],
  open_points: ["Who waters it"],
  facts: Array.from({ length: 20 }, (_, n) => `Bed ${n} is ${n} metres long. ${"Soil is fine there. ".repeat(6)}`)
}

const home = (agents: ReadonlyArray<AgentId>, memory: object) => {
  const [entry] = Object.values(CONFIG.agents)
  return makeHome({ ...CONFIG, agents: Object.fromEntries(agents.map((id) => [id, entry])), memory }, SECRETS)
}

/** A choird with these agents: building it again is a restart. `wake` hears that there are new texts to embed. */
export const choird = (
  agents: ReadonlyArray<AgentId>,
  memory: object = {},
  details_max?: number,
  wake: Effect.Effect<void> = Effect.void
) =>
  Layer.effect(SessionMemory, make(details_max)).pipe(
    Layer.provide(Layer.mock(EmbeddingQueue, { wake })),
    Layer.provide(Layer.unwrap(Effect.map(home(agents, memory), (home) => ConfigStore.layer({ home })))),
    Layer.provideMerge(SessionArchives.layer),
    Layer.provideMerge(storesWith(CONFIG)),
    Layer.fresh,
    Layer.orDie
  )
export const drain = Effect.flatMap(SessionMemory, ({ drain }) => drain)

export const said = (inbox: number, text: string): EventDraft => ({
  event_type: "UserMsg",
  lane: EDGE,
  payload: { inbox_id: InboxId.make(String(inbox)), dm: BINDINGS.dm, text, attachments: [] }
})

/** Stores events after those that are there, which no agent sent. */
export const append = Effect.fnUntraced(function* (talk: Talk, ...drafts: ReadonlyArray<EventDraft>) {
  const { rev } = talk
  const links = talk.commit(...drafts).links.slice(rev)
  const head = links.at(-1)
  if (head !== undefined) yield* insertEvents(talk.caller.session_id, links, head.hash)
}, Effect.orDie)

export const begin = Effect.fnUntraced(function* (agent_id: AgentId, ...drafts: ReadonlyArray<EventDraft>) {
  const { session_id } = yield* (yield* SessionStore).create(agent_id, BINDINGS, "0000000")
  const talk = new Talk(session_id, agent_id)
  yield* append(talk, ...drafts)
  return talk
})
export const end = (session_id: SessionId) =>
  Effect.flatMap(SessionStore, (sessions) => sessions.end(session_id, "crashed"))
/** A session that has ended, with these words in it. */
export const session = Effect.fnUntraced(function* (agent_id: AgentId, text: string, summary?: typeof SUMMARY) {
  const talk = yield* begin(agent_id, said(1, text), reply(1, "noted"))
  if (summary !== undefined) yield* (yield* SessionStore).summarize(talk.caller.session_id, summary)
  yield* end(talk.caller.session_id)
  return talk
})

export interface Row {
  readonly session_id: SessionId
  readonly tier: string
  readonly first_rev: number
  readonly part: number
  readonly text: string
  readonly untrusted: boolean
  readonly due: boolean
  readonly vectors: number
}

export const rows = Effect.fnUntraced(function* (agent_id: AgentId, session_id?: SessionId) {
  const sql = yield* SqlClient.SqlClient
  const table = (name: string) => sql(`${agentSchema(agent_id)}.${name}`)
  return yield* sql<Row>`SELECT session_id, tier, first_rev, part, text, untrusted, embed_after IS NOT NULL AS due,
      (SELECT count(*)::int FROM ${table("memory_embeddings")} WHERE document_id = d.id) AS vectors
    FROM ${table("memory_documents")} AS d WHERE ${session_id ?? null}::text IS NULL OR session_id = ${session_id ?? null}
    ORDER BY session_id, tier, first_rev, part`
}, Effect.orDie)

export const jobs = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{
    kind: string
    attempts: number
    problem: string | null
    later: boolean
  }>`SELECT kind, attempts, problem,
      run_after > now() AS later
    FROM choir_control.memory_jobs WHERE agent_id = ${agent_id} ORDER BY kind, session_id`
}, Effect.orDie)

/** Gives every chunk of an agent a vector. */
export const embed = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  const table = (name: string) => sql(`${agentSchema(agent_id)}.${name}`)
  yield* sql`INSERT INTO ${table("memory_embeddings")} (document_id, model, session_id, tier, embedding)
    SELECT id, 'small', session_id, tier, '[1,0]' FROM ${table("memory_documents")} ON CONFLICT DO NOTHING`
  yield* sql`UPDATE ${table("memory_documents")} SET embed_after = NULL`
}, Effect.orDie)

export const newOne = Effect.tap(Effect.sync(newAgent), makeMemory)
