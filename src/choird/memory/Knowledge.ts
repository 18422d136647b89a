/** Facts that an agent or a person wrote down: values under keys with their origin, each replaced by the next and never edited. */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import type { DocumentId, Fact, FactKey, FactSource } from "#schema/Memory.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { agentTable, asAgent } from "./agentTables.ts"
import { EmbeddingQueue } from "./EmbeddingQueue.ts"
import { hasMemory } from "./embeddingRows.ts"
import { isSaidIn } from "./saidWords.ts"
import { turnMessage, type WrittenAt } from "./turnMessage.ts"
import { endFacts, insertFact, readFacts, supersede, textHash } from "./factRows.ts"

/** Facts of one agent that are in force. */
const FACTS_MAX = 10_000
/** Values of a key that are kept; the oldest go first. */
export const VALUES_MAX = 50

/** A fact to write. */
export interface NewFact {
  readonly key: FactKey | null
  readonly text: string
  readonly untrusted: boolean
  readonly source: FactSource
  /** Names the call among all of the agent's: one that was written before writes nothing. */
  readonly call_id?: string
}

/** The state after a write, and the fact that the new one replaced. */
export interface Written {
  readonly fact: Fact
  /** `same`: the value was already in force, or this call was written before. */
  readonly change: "inserted" | "updated" | "same"
  readonly before?: Fact
}

/** There are FACTS_MAX facts in force. */
export class KnowledgeFull extends Schema.TaggedError<KnowledgeFull>()("KnowledgeFull", { facts: Schema.Natural }) {
  override get message() {
    return `the agent has ${this.facts} facts, which is the maximum: delete some`
  }
}

/** A value that may be text from outside would end one that is trusted, and no question would find either again unasked. */
export class FactTrusted extends Schema.TaggedError<FactTrusted>()("FactTrusted", {
  key: Schema.NullOr(Schema.String)
}) {
  override get message() {
    return `the value of ${this.key ?? "this fact"} is trusted, and the new one may be text from outside: ask your user, or keep it under another key`
  }
}

export type FactName = { readonly key: FactKey } | { readonly id: DocumentId }

export class Knowledge extends Context.Service<
  Knowledge,
  {
    /** Writes a fact. With a key it ends the value in force of this key, which then says what superseded it; an untrusted one ends no trusted one. */
    set(agent_id: AgentId, fact: NewFact): Effect.Effect<Written, KnowledgeFull | FactTrusted | DatabaseAway>
    /** Ends a fact in force; it stays with its end, as a tombstone. None when there is none. */
    remove(agent_id: AgentId, name: FactName): Effect.Effect<Option.Option<Fact>, DatabaseAway>
    /** Whether a fact that an agent writes says what the person of its turn said, as the log has it. */
    isSaid(text: string, written: WrittenAt): Effect.Effect<boolean, DatabaseAway>
    /** Takes a fact in force for true because a person says so, with its origins still named. None when there is none. */
    trust(agent_id: AgentId, name: FactName): Effect.Effect<Option.Option<Fact>, DatabaseAway>
    /** Facts in force, the newest first. `prefix` is the beginning of keys. */
    list(
      agent_id: AgentId,
      options: { readonly prefix?: string; readonly limit: number; readonly before?: DocumentId }
    ): Effect.Effect<ReadonlyArray<Fact>, DatabaseAway>
    /** A fact with its earlier values, the newest first; empty when there is none. */
    history(agent_id: AgentId, name: FactName): Effect.Effect<ReadonlyArray<Fact>, DatabaseAway>
  }
>()("choir/choird/Knowledge") {
  static readonly layer = Layer.effect(
    Knowledge,
    Effect.gen(function* () {
      const onDatabase = yield* useDatabase
      const queue = yield* EmbeddingQueue
      return Knowledge.of({
        set: Effect.fn("Knowledge.set")(function* (agent_id, fact) {
          const written = yield* onDatabase(asAgent(agent_id, write(agent_id, fact)))
          if (written.change !== "same") yield* queue.wake
          return written
        }),
        remove: Effect.fn("Knowledge.remove")(function* (agent_id, name) {
          if (!(yield* hasMemory(agent_id))) return Option.none()
          return yield* asAgent(agent_id, end(agent_id, name))
        }, onDatabase),
        isSaid: Effect.fn("Knowledge.isSaid")(function* (text, written) {
          const message = yield* turnMessage(written)
          return message !== undefined && (yield* isSaidIn(text, message))
        }, onDatabase),
        trust: Effect.fn("Knowledge.trust")(function* (agent_id, name) {
          if (!(yield* hasMemory(agent_id))) return Option.none()
          return yield* asAgent(agent_id, trust(agent_id, name))
        }, onDatabase),
        list: Effect.fn("Knowledge.list")(function* (agent_id, { before, limit, prefix = "" }) {
          if (!(yield* hasMemory(agent_id))) return []
          return yield* asAgent(
            agent_id,
            readFacts(
              agent_id,
              Effect.map(
                SqlClient.SqlClient,
                (sql) => sql`valid_to IS NULL AND starts_with(coalesce(key, ''), ${prefix})
                AND ${
                  before === undefined
                    ? sql`true`
                    : sql`(created_at, id) < (SELECT created_at, id FROM ${sql(agentTable(agent_id, "knowledge_documents"))} WHERE id = ${before}::uuid)`
                } ORDER BY created_at DESC, id DESC LIMIT ${limit}`
              )
            )
          )
        }, onDatabase),
        history: Effect.fn("Knowledge.history")(function* (agent_id, name) {
          if (!(yield* hasMemory(agent_id))) return []
          return yield* asAgent(agent_id, historyOf(agent_id, name))
        }, onDatabase)
      })
    })
  )
}

/** Two writers of one key come one after the other: each sees what the other wrote. */
const lockFacts = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`SELECT pg_advisory_xact_lock(hashtext(${agentTable(agent_id, "knowledge_documents")}))`
})

/** The fact in force that a new one replaces: the value of its key, or without a key the one that says the same. */
const inForce = (agent_id: AgentId, { key, text }: NewFact) =>
  Effect.map(
    readFacts(
      agent_id,
      Effect.map(SqlClient.SqlClient, (sql) =>
        key === null
          ? sql`valid_to IS NULL AND key IS NULL AND text_hash = ${textHash(text)}`
          : sql`valid_to IS NULL AND key = ${key}`
      )
    ),
    ([fact]) => fact
  )

const writtenBy = (agent_id: AgentId, call_id: string | undefined) =>
  call_id === undefined
    ? Effect.undefined
    : Effect.map(
        readFacts(
          agent_id,
          Effect.map(SqlClient.SqlClient, (sql) => sql`call_id = ${call_id}`)
        ),
        ([fact]) => fact
      )

const write = Effect.fnUntraced(function* (agent_id: AgentId, fact: NewFact) {
  yield* lockFacts(agent_id)
  const { call_id, key, source, text, untrusted } = fact
  const earlier = yield* writtenBy(agent_id, call_id)
  if (earlier !== undefined) return { fact: earlier, change: "same" } satisfies Written
  const before = yield* inForce(agent_id, fact)
  // What somebody to be trusted says again is to be trusted from now on, and never the other way round.
  if (before !== undefined && textHash(before.text).equals(textHash(text)) && (untrusted || !before.untrusted))
    return { fact: before, change: "same" } satisfies Written
  if (before !== undefined && untrusted && !before.untrusted) return yield* new FactTrusted({ key })
  if (before === undefined) yield* requireRoom(agent_id)
  else yield* endFacts(agent_id, [before.id])
  const inserted = yield* insertFact(agent_id, { key, text, untrusted, source, call_id: call_id ?? null })
  if (before === undefined) return { fact: inserted, change: "inserted" } satisfies Written
  yield* supersede(agent_id, before.id, inserted.id)
  yield* dropOldest(agent_id, before)
  return { fact: inserted, change: "updated", before } satisfies Written
})

/** A key that is written again and again keeps its newest values. */
const dropOldest = Effect.fnUntraced(function* (agent_id: AgentId, { key }: Pick<Fact, "key">) {
  const sql = yield* SqlClient.SqlClient
  const table = sql(agentTable(agent_id, "knowledge_documents"))
  yield* sql`DELETE FROM ${table} WHERE key = ${key} AND id NOT IN (SELECT id FROM ${table} WHERE key = ${key}
    ORDER BY valid_to DESC NULLS FIRST, created_at DESC, id DESC LIMIT ${VALUES_MAX})`
})

const requireRoom = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly facts: number }>`SELECT count(*)::int AS facts
    FROM ${sql(agentTable(agent_id, "knowledge_documents"))} WHERE valid_to IS NULL`
  const facts = row?.facts ?? 0
  if (facts >= FACTS_MAX) return yield* new KnowledgeFull({ facts })
})

/** The fact in force of a name, while nobody else changes it. */
const lockedFact = Effect.fnUntraced(function* (agent_id: AgentId, name: FactName) {
  yield* lockFacts(agent_id)
  const sql = yield* SqlClient.SqlClient
  const which = "key" in name ? sql`key = ${name.key}` : sql`id = ${name.id}::uuid`
  const [fact] = yield* readFacts(agent_id, Effect.succeed(sql`${which} AND valid_to IS NULL`))
  return fact
})

const trust = Effect.fnUntraced(function* (agent_id: AgentId, name: FactName) {
  const fact = yield* lockedFact(agent_id, name)
  if (fact === undefined) return Option.none()
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE ${sql(agentTable(agent_id, "knowledge_documents"))} SET untrusted = false, updated_at = now()
    WHERE id = ${fact.id}::uuid`
  return Option.some({ ...fact, untrusted: false })
})

const end = Effect.fnUntraced(function* (agent_id: AgentId, name: FactName) {
  const fact = yield* lockedFact(agent_id, name)
  if (fact === undefined) return Option.none()
  yield* endFacts(agent_id, [fact.id])
  return Option.some(fact)
})

const historyOf = (agent_id: AgentId, name: FactName) =>
  readFacts(
    agent_id,
    Effect.map(SqlClient.SqlClient, (sql) => {
      const table = sql(agentTable(agent_id, "knowledge_documents"))
      const which =
        "key" in name
          ? sql`key = ${name.key}`
          : sql`(id = ${name.id}::uuid OR key = (SELECT key FROM ${table} WHERE id = ${name.id}::uuid))`
      return sql`${which} ORDER BY valid_to DESC NULLS FIRST, created_at DESC, id DESC LIMIT ${VALUES_MAX}`
    })
  )
