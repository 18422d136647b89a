/** Searches of an agent's long-term memory, by words and by vectors. */
import { Context, type Effect, type Option } from "effect"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import type { DocumentId, MemoryAnswer, MemoryHit } from "#schema/Memory.ts"
import type { RecallAnswer, RecallInput, SearchInput } from "#src/shared/memory/hostQueries.ts"
import type { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"

/** The store of a search and whose; `cross` when somebody else's memory is read (D40). */
export type Search = Omit<SearchInput, "agent"> & { readonly agent: AgentId; readonly cross: boolean }

export class Recall extends Context.Service<
  Recall,
  {
    /** The best hits first. Where no vector comes in time, words alone rank, and the answer says so. */
    search(search: Search): Effect.Effect<MemoryAnswer, DatabaseAway>
    /** What of facts and sessions may matter to a message. Nothing where nothing fits well enough. */
    recall(agent_id: AgentId, session_id: SessionId, input: RecallInput): Effect.Effect<RecallAnswer, DatabaseAway>
    /** A chunk, a summary or a fact by its id. */
    get(agent_id: AgentId, id: DocumentId): Effect.Effect<Option.Option<MemoryHit>, DatabaseAway>
  }
>()("choir/choird/Recall") {}
