/** How well memory finds what was told in six languages, by words alone and with the vectors of the local model. */
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { type AgentId, Rev, SessionId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Embeddings } from "#src/choird/memory/Embeddings.ts"
import { EmbeddingQueue } from "#src/choird/memory/EmbeddingQueue.ts"
import { headerOf } from "#src/choird/memory/chunks.ts"
import { Recall } from "#src/choird/memory/Recall.ts"
import { describeStores } from "../../support/engines.ts"
import { makeMemory, writeChunk } from "../../support/memoryRows.ts"
import { CONFIG, makeHome, newAgent } from "../../support/stores.ts"
import { SPOKEN, type SpokenLanguage, TALK } from "./spokenFacts.ts"

const FIRST = 5
const TOKENS_MAX = 600
const RECALL_MIN = 0.9
const NOTE_MIN = 0.85
/** Of a session that no question is asked in. */
const OTHER_SESSION = SessionId.make("0k8v3w9m2p1n0002")
const [entry] = Object.values(CONFIG.agents)

const servicesOf = (agent_id: AgentId, provider: "local" | "off") =>
  Recall.layer.pipe(
    Layer.provideMerge(EmbeddingQueue.layer),
    Layer.provideMerge(Embeddings.layer),
    Layer.provideMerge(
      Layer.unwrap(
        Effect.map(makeHome({ ...CONFIG, agents: { [agent_id]: entry }, embedding: { provider } }), (home) =>
          ConfigStore.layer({ home })
        )
      )
    ),
    Layer.orDie,
    Layer.fresh
  )

const told = (words: string) => `${headerOf("2026-03-04T09:00:00.000Z", {})}\nuser: ${words}`

const remember = Effect.fnUntraced(function* (agent_id: AgentId) {
  yield* makeMemory(agent_id)
  for (const { facts } of Object.values(SPOKEN)) for (const fact of facts) yield* writeChunk(agent_id, told(fact.told))
  for (const talk of TALK) yield* writeChunk(agent_id, told(talk))
  assert.isUndefined(yield* (yield* EmbeddingQueue).drain)
})

const share = (flags: ReadonlyArray<boolean>) => flags.filter(Boolean).length / Math.max(1, flags.length)

/** The shares of a language's questions that are answered by the first hits and by the note, and of other messages without a note. */
const figuresOf = Effect.fnUntraced(function* (agent_id: AgentId, { facts, unrelated }: SpokenLanguage) {
  const { recall, search } = yield* Recall
  const note = (text: string) =>
    Effect.map(
      recall(agent_id, OTHER_SESSION, { text, tokens_max: TOKENS_MAX, shown_from: Rev.make(1) }),
      ({ hits }) => hits
    )
  const hits = (query: string) =>
    Effect.map(
      search({ store: "session", mode: "hybrid", query, limit: FIRST, agent: agent_id, cross: false }),
      ({ hits }) => hits
    )
  const answers = (facts: ReadonlyArray<{ readonly text: string }>, words: string) =>
    facts.some(({ text }) => text.includes(words))
  const found = yield* Effect.forEach(facts, ({ asked, told }) =>
    Effect.map(Effect.all([hits(asked), note(asked)]), ([first, shown]) => ({
      asked,
      first: answers(first, told),
      shown: answers(shown, told)
    }))
  )
  const silent = yield* Effect.forEach(unrelated, (text) => Effect.map(note(text), (hits) => hits.length === 0))
  const missed = found
    .filter(({ first, shown }) => !first || !shown)
    .map(({ asked, first }) => `${first ? "" : "!"}${asked}`)
  const loud = unrelated.filter((_, place) => silent[place] !== true)
  return {
    recall: share(found.map(({ first }) => first)),
    note: share(found.map(({ shown }) => shown)),
    silent: share(silent),
    missed: [...missed, ...loud]
  }
})

describeStores("memory in six languages", (it) => {
  for (const provider of ["off", "local"] as const) {
    const agent_id = newAgent()
    it.effect(`finds what was told, ${provider === "off" ? "by words alone" : "by words and vectors"}`, () =>
      Effect.gen(function* () {
        yield* remember(agent_id)
        const figures = yield* Effect.forEach(Object.entries(SPOKEN), ([name, language]) =>
          Effect.map(figuresOf(agent_id, language), (figures) => ({ name, ...figures }))
        )
        yield* Effect.logInfo(figures.map((each) => JSON.stringify(each)).join("\n"))
        for (const { name, note, recall, silent } of figures) {
          assert.isAtLeast(recall, RECALL_MIN, name)
          assert.isAtLeast(note, NOTE_MIN, name)
          assert.strictEqual(silent, 1, name)
        }
      }).pipe(Effect.provide(servicesOf(agent_id, provider)))
    )
  }
})
