import { assert } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { type AgentId, CallId } from "#schema/Ids.ts"
import { FactKey } from "#schema/Memory.ts"
import { agentSchema } from "#src/choird/database/AgentSchemas.ts"
import { EmbeddingQueue } from "#src/choird/memory/EmbeddingQueue.ts"
import { Knowledge, KnowledgeFull, type NewFact, VALUES_MAX } from "#src/choird/memory/Knowledge.ts"
import { describeEngines } from "../../support/engines.ts"
import { makeMemory, vectorsOf } from "../../support/memoryRows.ts"
import { seeded } from "../../support/seeded.ts"
import { SIZE } from "../../support/size.ts"
import { newAgent } from "../../support/stores.ts"

/** Steps of one history, and how many histories one agent has. */
const STEPS = 8
const HISTORIES_OF_AGENT = 100

const CITY = FactKey.make("user.city")

const fact = (text: string, more: Partial<NewFact> = {}): NewFact => ({
  key: CITY,
  text,
  untrusted: false,
  source: { kind: "operator" },
  ...more
})

let wakes = 0
const layer = Layer.fresh(Knowledge.layer).pipe(
  Layer.provide(Layer.mock(EmbeddingQueue, { wake: Effect.sync(() => void (wakes += 1)) }))
)

const opened = Effect.gen(function* () {
  const agent_id = newAgent()
  yield* makeMemory(agent_id)
  const knowledge = yield* Knowledge
  const texts = Effect.map(knowledge.list(agent_id, { limit: 100 }), (facts) => facts.map(({ text }) => text))
  return { agent_id, knowledge, texts }
})

const giveVector = Effect.fnUntraced(function* (agent_id: AgentId, id: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`INSERT INTO ${sql(`${agentSchema(agent_id)}.knowledge_embeddings`)} (document_id, model, embedding)
    VALUES (${id}::uuid, 'm', '[1,2]')`
})

describeEngines("Knowledge", (it) => {
  it.effect("replaces the value of a key, and keeps what it was with its end", () =>
    Effect.gen(function* () {
      const { agent_id, knowledge, texts } = yield* opened
      const first = yield* knowledge.set(agent_id, fact("Paris"))
      yield* giveVector(agent_id, first.fact.id)
      const second = yield* knowledge.set(agent_id, fact("Lyon"))
      assert.deepStrictEqual([first.change, second.change, second.before?.text], ["inserted", "updated", "Paris"])
      assert.deepStrictEqual(yield* texts, ["Lyon"])
      const history = yield* knowledge.history(agent_id, { key: CITY })
      assert.deepStrictEqual(
        history.map(({ text, superseded_by }) => [text, superseded_by]),
        [
          ["Lyon", null],
          ["Paris", second.fact.id]
        ]
      )
      assert.isNull(history[0]?.valid_to ?? null)
      assert.isString(history[1]?.valid_to)
      assert.deepStrictEqual(yield* vectorsOf(agent_id), [], "an old value is not searched")
      assert.deepStrictEqual(yield* knowledge.history(agent_id, { id: first.fact.id }), history)
    }).pipe(Effect.provide(layer))
  )

  it.effect("writes nothing for what it knows already, and once for each call", () =>
    Effect.gen(function* () {
      const { agent_id, knowledge, texts } = yield* opened
      const call_id = CallId.make("c-7-0")
      const first = yield* knowledge.set(agent_id, fact("Paris", { call_id }))
      assert.strictEqual((yield* knowledge.set(agent_id, fact(" PARIS\n"))).change, "same")
      yield* knowledge.set(agent_id, fact("Lyon"))
      const before = wakes
      const again = yield* knowledge.set(agent_id, fact("Paris", { call_id }))
      assert.deepStrictEqual([again.change, again.fact.id, wakes], ["same", first.fact.id, before])
      assert.deepStrictEqual(yield* texts, ["Lyon"])
      yield* knowledge.set(agent_id, fact("a note", { key: null }))
      assert.strictEqual((yield* knowledge.set(agent_id, fact("A note", { key: null }))).change, "same")
      assert.lengthOf(yield* texts, 2)
    }).pipe(Effect.provide(layer))
  )

  it.effect("trusts again what somebody to be trusted repeats, and never loses trust by a repetition", () =>
    Effect.gen(function* () {
      const { agent_id, knowledge } = yield* opened
      yield* knowledge.set(agent_id, fact("Paris", { untrusted: true }))
      const confirmed = yield* knowledge.set(agent_id, fact("Paris"))
      assert.deepStrictEqual([confirmed.change, confirmed.fact.untrusted], ["updated", false])
      const doubted = yield* knowledge.set(agent_id, fact("Paris", { untrusted: true }))
      assert.deepStrictEqual([doubted.change, doubted.fact.untrusted], ["same", false])
    }).pipe(Effect.provide(layer))
  )

  it.effect("keeps a trusted value that a text from outside would replace, and takes that text under another key", () =>
    Effect.gen(function* () {
      const { agent_id, knowledge, texts } = yield* opened
      yield* knowledge.set(agent_id, fact("Paris"))
      const refused = yield* Effect.flip(knowledge.set(agent_id, fact("Nowhere", { untrusted: true })))
      assert.include(refused.message, "ask your user, or keep it under another key")
      assert.deepStrictEqual(yield* texts, ["Paris"])
      yield* knowledge.set(agent_id, fact("Nowhere", { key: FactKey.make("page.city"), untrusted: true }))
      assert.sameMembers([...(yield* texts)], ["Paris", "Nowhere"])
      yield* knowledge.set(agent_id, fact("Lyon"))
      assert.sameMembers([...(yield* texts)], ["Lyon", "Nowhere"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("ends a fact with a tombstone, and says when there is none", () =>
    Effect.gen(function* () {
      const { agent_id, knowledge, texts } = yield* opened
      const { fact: city } = yield* knowledge.set(agent_id, fact("Paris"))
      yield* giveVector(agent_id, city.id)
      assert.strictEqual(Option.getOrThrow(yield* knowledge.remove(agent_id, { id: city.id })).text, "Paris")
      assert.deepStrictEqual([yield* texts, yield* vectorsOf(agent_id)], [[], []])
      const [stone] = yield* knowledge.history(agent_id, { key: CITY })
      assert.deepStrictEqual([stone?.text, stone?.superseded_by, stone?.valid_to === null], ["Paris", null, false])
      assert.isTrue(Option.isNone(yield* knowledge.remove(agent_id, { key: CITY })))
      assert.strictEqual((yield* knowledge.set(agent_id, fact("Paris"))).change, "inserted")
    }).pipe(Effect.provide(layer))
  )

  it.effect("lists facts of a prefix in pages, the newest first, and nothing of an agent that never ran", () =>
    Effect.gen(function* () {
      const { agent_id, knowledge } = yield* opened
      for (const key of ["user.a", "user.b", "work.c"])
        yield* knowledge.set(agent_id, fact(key, { key: FactKey.make(key) }))
      const first = yield* knowledge.list(agent_id, { prefix: "user.", limit: 1 })
      const second = yield* knowledge.list(agent_id, { prefix: "user.", limit: 5, before: first[0]!.id })
      assert.deepStrictEqual(
        [...first, ...second].map(({ text }) => text),
        ["user.b", "user.a"]
      )
      assert.deepStrictEqual(yield* knowledge.list(newAgent(), { limit: 5 }), [])
      assert.deepStrictEqual(yield* knowledge.history(newAgent(), { key: CITY }), [])
    }).pipe(Effect.provide(layer))
  )

  it.effect("stores hostile text as text, and keeps the newest values of a key", () =>
    Effect.gen(function* () {
      const { agent_id, knowledge, texts } = yield* opened
      const hostile = `x'); DROP SCHEMA choir_control; -- \u0000 \ud800 ${"é".repeat(10)}`
      yield* knowledge.set(agent_id, fact(hostile))
      assert.include((yield* texts)[0] ?? "", "DROP SCHEMA choir_control; --")
      for (let n = 0; n < VALUES_MAX + 5; n += 1) yield* knowledge.set(agent_id, fact(`value ${n}`))
      const history = yield* knowledge.history(agent_id, { key: CITY })
      assert.deepStrictEqual([history.length, history[0]?.text], [VALUES_MAX, `value ${VALUES_MAX + 4}`])
    }).pipe(Effect.provide(layer))
  )

  it.effect("leaves one value in force when many write a key at once", () =>
    Effect.gen(function* () {
      const { agent_id, knowledge, texts } = yield* opened
      const values = Array.from({ length: 8 }, (_, n) => `value ${n}`)
      const written = yield* Effect.forEach(values, (text) => knowledge.set(agent_id, fact(text)), {
        concurrency: "unbounded"
      })
      assert.lengthOf(yield* texts, 1)
      assert.strictEqual(written.filter(({ change }) => change === "inserted").length, 1)
      assert.lengthOf(yield* knowledge.history(agent_id, { key: CITY }), 8)
      assert.strictEqual(
        new KnowledgeFull({ facts: 3 }).message,
        "the agent has 3 facts, which is the maximum: delete some"
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect(
    "holds exactly what was told, corrected and deleted by racing sessions, through writes that are cut off",
    () =>
      Effect.gen(function* () {
        let { agent_id, knowledge } = yield* opened
        for (let seed = 1; seed <= SIZE.factHistories; seed += 1) {
          if (seed % HISTORIES_OF_AGENT === 0) ({ agent_id, knowledge } = yield* opened)
          const random = seeded(seed)
          const key = FactKey.make(`history.k${seed}`)
          const told: Array<string> = []
          let now: string | undefined
          for (let step = 0; step < STEPS; step += 1) {
            const text = `value ${seed} ${step}`
            const set = (text: string) => knowledge.set(agent_id, fact(text, { key, call_id: `${seed} ${text}` }))
            const kind = random(4)
            if (kind === 0) {
              yield* knowledge.remove(agent_id, { key })
              now = undefined
            } else if (kind === 1) {
              // Two sessions write at once: one of them is the last.
              const other = `${text} too`
              yield* Effect.all([set(text), set(other)], { concurrency: 2 })
              const values = (yield* knowledge.history(agent_id, { key })).filter(({ valid_to }) => valid_to === null)
              assert.lengthOf(values, 1)
              assert.include([text, other], values[0]?.text)
              told.push(text, other)
              now = values[0]?.text
            } else {
              // A write that is cut off is asked for again, as after a kill.
              if (kind === 2) yield* Fiber.interrupt(yield* Effect.forkChild(set(text), { startImmediately: true }))
              yield* set(text)
              yield* set(text)
              told.push(text)
              now = text
            }
          }
          const history = yield* knowledge.history(agent_id, { key })
          assert.sameMembers(
            history.map(({ text }) => text),
            told,
            `seed ${seed}`
          )
          assert.deepStrictEqual(
            history.filter(({ valid_to }) => valid_to === null).map(({ text }) => text),
            now === undefined ? [] : [now],
            `seed ${seed}`
          )
        }
      }).pipe(Effect.provide(layer))
  )

  it.effect("trusts a fact of which a person says that it is true, and no other", () =>
    Effect.gen(function* () {
      const { agent_id, knowledge } = yield* opened
      yield* knowledge.set(agent_id, fact("Oslo", { untrusted: true }))
      yield* knowledge.set(agent_id, fact("Doctor Eider", { key: FactKey.make("user.doctor"), untrusted: true }))
      const trusted = yield* knowledge.trust(agent_id, { key: CITY })
      assert.isFalse(Option.getOrThrow(trusted).untrusted)
      const facts = yield* knowledge.list(agent_id, { limit: 10 })
      assert.sameDeepMembers(
        facts.map(({ text, untrusted }) => [text, untrusted]),
        [
          ["Oslo", false],
          ["Doctor Eider", true]
        ]
      )
      assert.isTrue(Option.isNone(yield* knowledge.trust(agent_id, { key: FactKey.make("user.nothing") })))
    }).pipe(Effect.provide(layer))
  )
})
