/** Facts that an agent or a person wrote down: values under keys with their origin, each replaced by the next and never edited. */
import { Context, type Effect, Option, Schema } from "effect"
import type { AgentId, CallId } from "#schema/Ids.ts"
import type { DocumentId, Fact, FactKey, FactSource } from "#schema/Memory.ts"
import type { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"

/** Facts of one agent that are in force. */
export const FACTS_MAX = 10_000

/** A fact to write. */
export interface NewFact {
  readonly key: FactKey | null
  readonly text: string
  readonly untrusted: boolean
  readonly source: FactSource
  /** A call that was written before writes nothing. */
  readonly call_id?: CallId
}

/** The state after a write, and the fact that the new one replaced. */
export interface Written {
  readonly fact: Fact
  /** `same`: the value was in force already, or this call was written before. */
  readonly change: "inserted" | "updated" | "same"
  readonly before?: Fact
}

/** There are FACTS_MAX facts in force. */
export class KnowledgeFull extends Schema.TaggedError<KnowledgeFull>()("KnowledgeFull", { facts: Schema.Natural }) {
  override get message() {
    return `the agent has ${this.facts} facts, and no more fit: delete some`
  }
}

export type FactName = { readonly key: FactKey } | { readonly id: DocumentId }

export class Knowledge extends Context.Service<
  Knowledge,
  {
    /** Writes a fact. With a key it ends the value in force of this key, which then says what superseded it. */
    set(agent_id: AgentId, fact: NewFact): Effect.Effect<Written, KnowledgeFull | DatabaseAway>
    /** Ends a fact in force; it stays with its end, as a tombstone. None when there is none. */
    remove(agent_id: AgentId, name: FactName): Effect.Effect<Option.Option<Fact>, DatabaseAway>
    /** Facts in force, the newest first. `prefix` is the beginning of keys. */
    list(
      agent_id: AgentId,
      options: { readonly prefix?: string; readonly limit: number; readonly before?: DocumentId }
    ): Effect.Effect<ReadonlyArray<Fact>, DatabaseAway>
    /** A fact with its earlier values, the newest first; empty when there is none. */
    history(agent_id: AgentId, name: FactName): Effect.Effect<ReadonlyArray<Fact>, DatabaseAway>
  }
>()("choir/choird/Knowledge") {}
