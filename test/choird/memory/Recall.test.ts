import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { Caller } from "#schema/AgentApi.ts"
import { EDGE, Rev, SessionId } from "#schema/Ids.ts"
import { agentSchema } from "#src/choird/database/AgentSchemas.ts"
import { documentWords } from "#src/choird/database/migrations/0044_document_words.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Embeddings } from "#src/choird/memory/Embeddings.ts"
import { EmbeddingQueue } from "#src/choird/memory/EmbeddingQueue.ts"
import { Knowledge } from "#src/choird/memory/Knowledge.ts"
import { memoryTools } from "#src/choird/memory/memoryTools.ts"
import { Recall } from "#src/choird/memory/Recall.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { describeEngines } from "../../support/engines.ts"
import { addAllWords, makeMemory, writeChunk } from "../../support/memoryRows.ts"
import { CONFIG, makeHome, newAgent } from "../../support/stores.ts"

const [AGENT, OPEN, CLOSED, FAR, RARE] = [newAgent(), newAgent(), newAgent(), newAgent(), newAgent()]
const [entry] = Object.values(CONFIG.agents)

const servicesOf = (provider: "local" | "off") =>
  Layer.mergeAll(Recall.layer, Knowledge.layer, Audit.layer).pipe(
    Layer.provideMerge(EmbeddingQueue.layer),
    Layer.provideMerge(Embeddings.layer),
    Layer.provideMerge(
      Layer.unwrap(
        Effect.map(
          makeHome({
            ...CONFIG,
            agents: { [AGENT]: entry, [OPEN]: entry, [CLOSED]: entry, [FAR]: entry, [RARE]: entry },
            memory: { cross_read: [OPEN] },
            embedding: { provider }
          }),
          (home) => ConfigStore.layer({ home })
        )
      )
    ),
    Layer.orDie,
    Layer.fresh
  )

const caller = (agent_id = AGENT) =>
  ({ agent_id, session_id: SessionId.make("0k8v3w9m2p1n4q7r"), epoch: 1 }) as unknown as Caller

/** Runs a host tool as an agent asks for it. */
const asking = Effect.map(memoryTools, (tools) =>
  Effect.fnUntraced(function* (name: string, input: object, agent_id = AGENT) {
    const tool = tools.find((one) => one.name === `choir.memory.${name}`) ?? assert.fail(`there is no ${name}`)
    const { output, status } = yield* yield* tool.prepare(input as never, caller(agent_id))
    return {
      status,
      output: output as Record<string, never> & { readonly hits?: ReadonlyArray<Record<string, unknown>> }
    }
  })
)

const texts = ({ output }: { readonly output: { readonly hits?: ReadonlyArray<Record<string, unknown>> } }) =>
  (output.hits ?? []).map(({ text }) => text)

const search = (query: string, more: object = {}) => ({ store: "session", mode: "hybrid", query, limit: 3, ...more })

describeEngines("Searches of agents' memory", (it) => {
  it.effect("finds by words and by vectors, each alone and together", () =>
    Effect.gen(function* () {
      yield* makeMemory(AGENT)
      const ask = yield* asking
      yield* writeChunk(AGENT, "Ada: my cat is called Pixel and sleeps all day")
      yield* writeChunk(AGENT, "Ada: the invoice RX-4410 was paid in March")
      yield* writeChunk(AGENT, "Ada: we fly to Lisbon on the third of May")
      assert.isUndefined(yield* (yield* EmbeddingQueue).drain)
      assert.include(String(texts(yield* ask("search", search("RX-4410", { mode: "text" })))[0]), "RX-4410")
      assert.include(
        String(texts(yield* ask("search", search("which pet do I have?", { mode: "semantic" })))[0]),
        "Pixel"
      )
      const both = yield* ask("search", search("when is the flight to Lisbon?"))
      assert.include(String(texts(both)[0]), "Lisbon")
      assert.strictEqual(both.output["ranked_by"], "hybrid")
      const said = { text: "Remind me when we fly to Lisbon", tokens_max: 600, shown_from: Rev.make(1) }
      assert.include(String(texts(yield* ask("recall", said))), "Lisbon")
      assert.deepStrictEqual(texts(yield* ask("recall", { ...said, text: "ok, thanks" })), [])
    }).pipe(Effect.provide(servicesOf("local")))
  )

  it.effect("finds with a query that holds what the database has no character for", () =>
    Effect.gen(function* () {
      const agent_id = newAgent()
      yield* makeMemory(agent_id)
      yield* writeChunk(agent_id, "Ada: the invoice RX-4410 was paid in March")
      const ask = yield* asking
      const query = "\0 RX-4410 \ud800"
      assert.include(String(texts(yield* ask("search", search(query, { mode: "text" }), agent_id))), "RX-4410")
      const said = { text: "invoice RX-4410\0 paid in March", tokens_max: 600, shown_from: Rev.make(1) }
      assert.include(String(texts(yield* ask("recall", said, agent_id))), "RX-4410")
    }).pipe(Effect.provide(servicesOf("off")))
  )

  it.effect("finds nothing for a query without any word", () =>
    Effect.gen(function* () {
      const agent_id = newAgent()
      yield* makeMemory(agent_id)
      yield* writeChunk(agent_id, "Ada: the invoice was paid in March!!!")
      const ask = yield* asking
      for (const query of ["!!!", "&", "…"])
        assert.deepStrictEqual(texts(yield* ask("search", search(query), agent_id)), [])
    }).pipe(Effect.provide(servicesOf("off")))
  )

  for (const [provider, agent_id] of [
    ["off", newAgent()],
    ["local", RARE]
  ] as const)
    it.effect(`shows a note for one rare word among others, and for none that many documents have (${provider})`, () =>
      Effect.gen(function* () {
        yield* makeMemory(agent_id)
        yield* writeChunk(agent_id, "Ada: Merganser moved his practice to the harbour")
        for (let n = 0; n < 12; n += 1) yield* writeChunk(agent_id, `Ada: the weather of week ${n} was fine`)
        assert.isUndefined(yield* (yield* EmbeddingQueue).drain)
        const ask = yield* asking
        const said = { tokens_max: 600, shown_from: Rev.make(1) }
        const note = (text: string) => ask("recall", { ...said, text }, agent_id)
        const shown = yield* note("Any news from Merganser?")
        assert.include(String(texts(shown)), "harbour")
        assert.strictEqual(shown.output["ranked_by"], provider === "off" ? "words" : "hybrid")
        assert.deepStrictEqual(texts(yield* note("Explain how weather satellites work")), [])
      }).pipe(Effect.provide(servicesOf(provider)))
    )

  it.effect("prefers the newer of two texts only where both have the same words of the query", () =>
    Effect.gen(function* () {
      const agent_id = newAgent()
      yield* makeMemory(agent_id)
      const animal = (name: string) =>
        `Ada: the animal of the week in the long list of the zoo by the river is the ${name}`
      yield* writeChunk(agent_id, animal("cormorant"))
      yield* writeChunk(agent_id, animal("dromedary"))
      const ask = yield* asking
      const first = (query: string) =>
        Effect.map(ask("search", search(query, { mode: "text" }), agent_id), (answer) => String(texts(answer)[0]))
      assert.include(yield* first("cormorant animal"), "cormorant")
      assert.include(yield* first("animal of the week"), "dromedary")
    }).pipe(Effect.provide(servicesOf("off")))
  )

  it.effect("finds documents that have no words yet once they have got them, as after an upgrade or a restore", () =>
    Effect.gen(function* () {
      const agent_id = newAgent()
      yield* makeMemory(agent_id)
      const sql = yield* SqlClient.SqlClient
      yield* writeChunk(agent_id, "ада: запасной ключ лежит в часах")
      const table = sql(`${agentSchema(agent_id)}.memory_documents`)
      yield* sql`ALTER TABLE ${table} DROP COLUMN tsv`
      yield* sql`ALTER TABLE ${table} ADD COLUMN tsv tsvector GENERATED ALWAYS AS (to_tsvector('english', text)) STORED`
      yield* documentWords
      const ask = yield* asking
      const found = Effect.map(ask("search", search("где запасные ключи?"), agent_id), texts)
      assert.deepStrictEqual(yield* found, [])
      yield* addAllWords(agent_id)
      assert.lengthOf(yield* found, 1)
    }).pipe(Effect.provide(servicesOf("off")))
  )

  it.effect("chooses a prompt's note by words while the model is not loaded", () =>
    Effect.gen(function* () {
      const agent_id = newAgent()
      yield* makeMemory(agent_id)
      yield* writeChunk(
        agent_id,
        `[a talk]\nuser: hello\nagent: ${"I follow plain instructions. ".repeat(40)}\nuser: My uncle keeps goats.`
      )
      const recall = yield* Recall
      const said = { text: "Who keeps goats?", tokens_max: 100, shown_from: Rev.make(1) }
      const note = yield* recall.recall(agent_id, caller().session_id, said)
      assert.strictEqual(note.ranked_by, "words")
      assert.include(note.hits[0]?.text ?? "", "My uncle keeps goats.")
      assert.notInclude(note.hits[0]?.text ?? "", "hello")
    }).pipe(
      Effect.provide(
        Recall.layer.pipe(
          Layer.provide(
            Layer.mock(Embeddings, {
              model: undefined,
              configured: () => undefined,
              serving: () => Effect.succeed({ model: "local:late:2", dimensions: 2, embed: () => Effect.never })
            })
          )
        )
      )
    )
  )

  it.effect("leaves out of a search what shares no word with it and lies far away", () =>
    Effect.gen(function* () {
      yield* makeMemory(FAR)
      yield* writeChunk(FAR, "Ada: the cat is called Pixel")
      assert.isUndefined(yield* (yield* EmbeddingQueue).drain)
      const recall = yield* Recall
      const texts = (query: string) =>
        Effect.map(
          recall.search({ store: "session", mode: "hybrid", query, limit: 3, agent: FAR, cross: false }),
          ({ hits }) => hits.map(({ text }) => text)
        )
      assert.lengthOf(yield* texts("which pet does she have?"), 1)
      assert.lengthOf(yield* texts("quarterly tax declaration of the harbour company"), 0)
    }).pipe(Effect.provide(servicesOf("local")))
  )

  it.effect("sends the part of a long text that has the words looked for, and not its beginning", () =>
    Effect.gen(function* () {
      const ask = yield* asking
      yield* makeMemory(FAR)
      yield* ask(
        "upsert",
        {
          key: "minutes",
          text: `${"雑談が続いた。".repeat(450)}次の会議は火曜日です。`,
          untrusted: false,
          rev: 1,
          lane: EDGE,
          call_id: "minutes"
        },
        FAR
      )
      yield* ask(
        "upsert",
        {
          key: "diary",
          text: `${"We talked for a while. ".repeat(140)}The umbrella is in the shed.`,
          untrusted: false,
          rev: 1,
          lane: EDGE,
          call_id: "diary"
        },
        FAR
      )
      for (const [query, answer] of [
        ["会議", "次の会議は火曜日です。"],
        ["umbrella", "The umbrella is in the shed."]
      ] as const) {
        const [text] = texts(yield* ask("search", search(query, { store: "knowledge" }), FAR))
        assert.include(text, answer)
        assert.isAtMost(String(text).length, 2500)
      }
    }).pipe(Effect.provide(servicesOf("off")))
  )

  it.effect("reads the memory of another agent where config.json lets it, marked as from outside (D40)", () =>
    Effect.gen(function* () {
      const ask = yield* asking
      for (const [agent, text] of [
        [OPEN, "Bob likes herons"],
        [CLOSED, "Eve likes herons"]
      ] as const) {
        yield* makeMemory(agent)
        yield* writeChunk(agent, text)
      }
      const { output } = yield* ask("search", search("herons", { agent: OPEN }))
      assert.lengthOf(output.hits ?? [], 1)
      assert.deepInclude(output.hits?.[0], { agent: OPEN, untrusted: true, text: "Bob likes herons" })
      assert.strictEqual(output["ranked_by"], "words")
      for (const [agent, problem] of [
        [CLOSED, "memory.cross_read"],
        ["nobody", "there is no agent nobody"]
      ] as const) {
        const refused = yield* ask("search", search("herons", { agent }))
        assert.strictEqual(refused.status, "error")
        assert.include(JSON.stringify(refused.output), problem)
      }
      const audit = yield* Audit
      const rowsOf = (agent_id: typeof OPEN) =>
        Effect.map(audit.last({ count: 10, agent_id }), (rows) =>
          rows.map(({ action, detail, who }) => [who, action, detail])
        )
      const session_id = caller().session_id
      assert.deepStrictEqual(yield* rowsOf(OPEN), [[`agent:${AGENT}`, "memory.cross_read", { session_id, hits: 1 }]])
      assert.deepStrictEqual(yield* rowsOf(CLOSED), [
        [`agent:${AGENT}`, "memory.cross_read", { session_id, refused: "NOT_ALLOWED" }]
      ])
      assert.notInclude(JSON.stringify(texts(yield* ask("search", search("herons")))), "likes herons")
      // Nobody writes for another one: the input has no place for it.
      const write = { text: "a lie", untrusted: false, rev: 1, lane: EDGE, call_id: "c-1-0", agent: OPEN }
      assert.include(JSON.stringify(yield* Effect.flip(ask("upsert", write))), "agent")
    }).pipe(Effect.provide(servicesOf("off")))
  )

  it.effect("writes a fact once for each call, ends it once, and shows no claim from outside unasked", () =>
    Effect.gen(function* () {
      yield* makeMemory(AGENT)
      const ask = yield* asking
      const fact = { key: "user.boat", text: "The boat is called Merganser", untrusted: false, rev: 4, lane: EDGE }
      const first = yield* ask("upsert", { ...fact, call_id: "c-4-0" })
      const again = yield* ask("upsert", { ...fact, call_id: "c-4-0" })
      assert.deepStrictEqual([first.output["change"], again.output["change"]], ["inserted", "same"])
      const said = { text: "What is my boat called, Merganser?", tokens_max: 600, shown_from: Rev.make(1) }
      assert.deepStrictEqual(texts(yield* ask("recall", said)), [fact.text])
      const { output } = yield* ask("search", search("boat", { store: "knowledge" }))
      assert.deepInclude(output.hits?.[0]?.["source"] as object, { kind: "agent", rev: 4, call_id: "c-4-0" })
      const claim = { ...fact, text: "The boat Merganser is sold", untrusted: true, call_id: "c-5-0" }
      assert.strictEqual((yield* ask("upsert", claim)).status, "error", "in the place of what the person said")
      assert.deepStrictEqual(texts(yield* ask("recall", said)), [fact.text])
      yield* ask("upsert", { ...claim, key: "boat.sale" })
      assert.deepStrictEqual(texts(yield* ask("recall", said)), [fact.text], "unasked")
      const found = texts(yield* ask("search", search("boat", { store: "knowledge" })))
      assert.sameMembers(found, [fact.text, claim.text])
      assert.isNotNull((yield* ask("delete", { key: "boat.sale" })).output["deleted"])
      assert.isNotNull((yield* ask("delete", { key: "user.boat" })).output["deleted"])
      assert.isNull((yield* ask("delete", { key: "user.boat" })).output["deleted"])
      assert.deepStrictEqual(texts(yield* ask("search", search("boat", { store: "knowledge" }))), [])
    }).pipe(Effect.provide(servicesOf("off")))
  )
})
