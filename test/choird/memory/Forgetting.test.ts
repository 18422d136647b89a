import { assert } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { EventDraft } from "#schema/Event.ts"
import { type AgentId, CallId, EDGE, Rev, type SessionId } from "#schema/Ids.ts"
import { type DocumentId, FactKey, Forget } from "#schema/Memory.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { agentSchema } from "#src/choird/database/AgentSchemas.ts"
import { FORGET_EVENTS_MAX, Forgetting } from "#src/choird/memory/Forgetting.ts"
import { SessionMemory } from "#src/choird/memory/SessionMemory.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { UpsertInput } from "#src/shared/memory/hostQueries.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { describeStores } from "../../support/engines.ts"
import { makeMemory } from "../../support/memoryRows.ts"
import { DESK, message, modelOutput, newTalk, reply, stores, type Talk } from "../../support/stores.ts"

let secrets = 0
/** A word that no other test has. */
const newSecret = () => `Rosebud-${4711 + (secrets += 1)}`

/** What was done beside the database, in its order. */
const steps: Array<string> = []

const forgetting = (beforePause: Effect.Effect<void> = Effect.void) =>
  Layer.fresh(Forgetting.layer).pipe(
    Layer.provide(
      Layer.mock(Lifecycle, {
        pause: () =>
          Effect.as(
            Effect.andThen(
              beforePause,
              Effect.sync(() => steps.push("pause"))
            ),
            true
          ),
        wake: () => Effect.sync(() => steps.push("wake") > 0)
      })
    ),
    Layer.provide(
      Layer.mock(SessionMemory, { again: (_, session_id) => Effect.sync(() => void steps.push(`again ${session_id}`)) })
    )
  )

const append = Effect.fnUntraced(function* (talk: Talk, from: number) {
  const store = yield* EventStore
  assert.strictEqual((yield* store.append(talk.caller, talk.heartbeat(from))).action, "OK")
})

/** A talk whose person tells the secret in the second of three turns, with the rows that choird keeps beside its log. */
const told = Effect.gen(function* () {
  steps.length = 0
  const secret = newSecret()
  const inbox = yield* Inbox
  const talk = yield* newTalk
  const { agent_id } = talk.caller
  yield* makeMemory(agent_id)
  const words = ["hello", `My word is ${secret}, keep it.`, "thanks"]
  for (const [turn, text] of words.entries()) {
    const received = yield* inbox.receive(message(agent_id, `m${turn}`, text))
    if (received.type === "full") return assert.fail("the inbox is full")
    const { inbox_id } = received
    const answer = turn === 1 ? `I keep ${secret.toLowerCase()}.` : "Fine."
    talk.commit(
      { event_type: "UserMsg", lane: EDGE, payload: { inbox_id, dm: DESK, text, attachments: [] } },
      modelOutput(`c-${talk.rev + 2}`, answer),
      reply(inbox_id, answer)
    )
  }
  yield* append(talk, 0)
  return { talk, secret }
})

const end = (talk: Talk) => Effect.flatMap(SessionStore, (sessions) => sessions.end(talk.caller.session_id, "stopped"))

const writeFact = Effect.fnUntraced(function* (
  agent_id: AgentId,
  key: string,
  text: string,
  source: object,
  over = false
) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`INSERT INTO ${sql(`${agentSchema(agent_id)}.knowledge_documents`)} (key, text, text_hash, untrusted, source, valid_to)
    VALUES (${key}, ${text}, '\\x00', false, ${JSON.stringify(source)}::jsonb, ${over ? "2026-01-02T00:00:00Z" : null})`
})
const writeChunk = Effect.fnUntraced(function* (
  agent_id: AgentId,
  session_id: SessionId,
  first_rev: number,
  text: string
) {
  const sql = yield* SqlClient.SqlClient
  const schema = agentSchema(agent_id)
  yield* sql`WITH d AS (INSERT INTO ${sql(`${schema}.memory_documents`)}
      (session_id, tier, lane, first_rev, last_rev, source_events, chunk_index, text, text_hash, untrusted, said_at)
      VALUES (${session_id}, 'mid_term', 'edge', ${first_rev}, ${first_rev}, '{}', ${first_rev}, ${text}, '\\x00', false, now()) RETURNING id)
    INSERT INTO ${sql(`${schema}.memory_embeddings`)} (document_id, model, session_id, tier, embedding)
      SELECT id, 'm', ${session_id}, 'mid_term', '[1,2]' FROM d`
})

/** Every place of the database that holds a text. */
const placesWith = Effect.fnUntraced(function* (text: string) {
  const sql = yield* SqlClient.SqlClient
  const columns = yield* sql<{
    s: string
    t: string
    c: string
  }>`SELECT table_schema AS s, table_name AS t, column_name AS c
    FROM information_schema.columns WHERE table_schema LIKE 'choir_%' AND data_type IN ('text', 'jsonb', 'tsvector', 'bytea')`
  const found: Array<string> = []
  for (const { c, s, t } of columns) {
    const rows =
      yield* sql`SELECT 1 FROM ${sql(`${s}.${t}`)} WHERE position(${text.toLowerCase()} IN lower(${sql(c)}::text)) > 0
      OR position(${Buffer.from(text).toString("hex")} IN ${sql(c)}::text) > 0 LIMIT 1`
    if (rows.length > 0) found.push(`${t}.${c}`)
  }
  return found
})

describeStores("Forgetting", (it) => {
  it.effect(
    "removes words from the log, facts, chunks, vectors, summaries and queues, and the chain verifies (R89)",
    () =>
      Effect.gen(function* () {
        const { secret, talk } = yield* told
        const { agent_id, session_id } = talk.caller
        const sessions = yield* SessionStore
        yield* sessions.summarize(session_id, {
          title: "Words",
          summary: `The word ${secret} was told.`,
          decisions: [],
          open_points: [],
          facts: []
        })
        yield* end(talk)
        yield* writeFact(agent_id, "user.word", `It is ${secret}`, { kind: "operator" })
        yield* writeFact(agent_id, "user.word", `It was ${secret}`, { kind: "operator" }, true)
        yield* writeFact(agent_id, "user.city", "Lyon", { kind: "operator" })
        yield* writeChunk(agent_id, session_id, 4, `user: my word is ${secret}`)
        assert.isAtLeast((yield* placesWith(secret)).length, 4)
        const memory = yield* Forgetting
        const order = { type: "words", words: secret.toUpperCase() } as const
        const plan = yield* memory.plan(agent_id, order)
        assert.deepStrictEqual(plan.sessions, [{ session_id, events: 3, archived: false, running: false }])
        assert.deepStrictEqual(
          plan.facts.map(({ key }) => key as string),
          ["user.word", "user.word"]
        )
        assert.isAtLeast((yield* placesWith(secret)).length, 4)

        const receipt = yield* memory.forget(agent_id, order, "operator")
        assert.deepInclude(receipt, {
          facts: 2,
          events: 3,
          chunks: 1,
          vectors: 1,
          restarted: false,
          sessions: [session_id]
        })
        assert.deepStrictEqual(yield* placesWith(secret), [])
        assert.deepStrictEqual(steps, [`again ${session_id}`])
        const store = yield* EventStore
        assert.deepInclude(yield* store.verify(session_id), { ok: true, forgotten: 3 })
        assert.isTrue(Option.isNone(yield* sessions.summary(session_id)))
        assert.deepStrictEqual((yield* memory.plan(agent_id, order)).sessions, [])
        const [audit] =
          yield* (yield* SqlClient.SqlClient)`SELECT who, detail ->> 'events' AS events FROM choir_control.audit
        WHERE action = 'memory.forget' AND agent_id = ${agent_id}`
        assert.deepStrictEqual(audit, { who: "operator", events: "3" })
      }).pipe(Effect.provide(forgetting().pipe(Layer.provideMerge(stores))))
  )

  it.effect("forgets a fact with every value of its key and the turns that they were told in", () =>
    Effect.gen(function* () {
      const { secret, talk } = yield* told
      const { agent_id, session_id } = talk.caller
      yield* end(talk)
      const source = { kind: "agent", session_id, rev: 5, lane: "edge", call_id: "c-5-0" }
      yield* writeFact(agent_id, "user.word", "secret", source)
      yield* writeFact(agent_id, "user.other", "told in the same turn", source)
      const memory = yield* Forgetting
      const receipt = yield* memory.forget(agent_id, { type: "fact", key: FactKey.make("user.word") }, "operator")
      assert.deepInclude(receipt, { facts: 1, events: 3 })
      const plan = yield* memory.plan(agent_id, { type: "fact", key: FactKey.make("user.other") })
      assert.lengthOf(plan.facts, 1)
      assert.deepStrictEqual(yield* placesWith(secret), [])
    }).pipe(Effect.provide(forgetting().pipe(Layer.provideMerge(stores))))
  )

  it.effect("forgets a part of a session with the facts that came from it", () =>
    Effect.gen(function* () {
      const { secret, talk } = yield* told
      const { agent_id, session_id } = talk.caller
      yield* end(talk)
      yield* writeFact(agent_id, "user.word", "secret", { kind: "agent", session_id, rev: 5, lane: "edge" })
      yield* writeFact(agent_id, "user.city", "Lyon", { kind: "agent", session_id, rev: 8, lane: "edge" })
      const memory = yield* Forgetting
      const order = { type: "span", session_id, first_rev: Rev.make(4), last_rev: Rev.make(6) } as const
      assert.deepInclude(yield* memory.forget(agent_id, order, "operator"), { facts: 1, events: 3 })
      assert.deepStrictEqual(yield* placesWith(secret), [])
    }).pipe(Effect.provide(forgetting().pipe(Layer.provideMerge(stores))))
  )

  it.effect(
    "forgets a fact whose agent says that a revision which no log has proposed it, and parts of its session",
    () =>
      Effect.gen(function* () {
        const { talk } = yield* told
        const { agent_id, session_id } = talk.caller
        yield* end(talk)
        const source = { kind: "agent", session_id, rev: Number.MAX_SAFE_INTEGER, lane: "edge" }
        yield* writeFact(agent_id, "user.word", "secret", source)
        const memory = yield* Forgetting
        const span = { type: "span", session_id, first_rev: Rev.make(4), last_rev: Rev.make(6) } as const
        assert.deepInclude(yield* memory.forget(agent_id, span, "operator"), { facts: 0 })
        const fact = { type: "fact", key: FactKey.make("user.word") } as const
        assert.deepInclude(yield* memory.forget(agent_id, fact, "operator"), { facts: 1 })
        assert.isFalse(Schema.is(UpsertInput)({ ...source, text: "x", untrusted: false, call_id: "c-1" }))
        assert.isFalse(Schema.is(Forget)({ ...span, last_rev: Number.MAX_SAFE_INTEGER }))
      }).pipe(Effect.provide(forgetting().pipe(Layer.provideMerge(stores))))
  )

  it.effect("forgets what prompts and searches quoted of a fact, though its words are too common to look for", () =>
    Effect.gen(function* () {
      const { talk } = yield* told
      const { agent_id, session_id } = talk.caller
      yield* writeFact(agent_id, "user.theme", "dark", { kind: "operator" })
      const sql = yield* SqlClient.SqlClient
      const [fact] = yield* sql<{ readonly id: DocumentId }>`SELECT id::text AS id
        FROM ${sql(`${agentSchema(agent_id)}.knowledge_documents`)} WHERE key = 'user.theme'`
      const id = fact?.id ?? assert.fail("there is no fact")
      const from = talk.rev
      const call = { call_id: CallId.make("c-q-0"), name: "choir-memory-query", input: {} }
      const asking = modelOutput("c-q", "")
      const recalled = { rows: [id], tokens: 9, ranked_by: "words", latency_ms: 1 } as const
      const prompt = { rev: Rev.make(from), notes: [{ about: "memory 1", text: "user.theme: dark-4711" }], recalled }
      const received = yield* (yield* Inbox).receive(message(agent_id, "m9", "Which theme?"))
      if (received.type === "full") return assert.fail("the inbox is full")
      const { inbox_id } = received
      talk.commit(
        { event_type: "UserMsg", lane: EDGE, payload: { inbox_id, dm: DESK, text: "Which theme?", attachments: [] } },
        { ...asking, payload: { ...asking.payload, prompt, tool_calls: [call] } } as EventDraft,
        {
          event_type: "ToolResultCommitted",
          lane: EDGE,
          payload: {
            call_id: call.call_id,
            status: "rejected",
            summary: "1 hit",
            duration_ms: 0,
            output: { ranked_by: "words", hits: [{ id, text: "dark-4712" }] }
          }
        },
        modelOutput("c-r", "the dark one"),
        reply(inbox_id, "the dark one")
      )
      yield* append(talk, from)
      yield* end(talk)
      const memory = yield* Forgetting
      const order = { type: "fact", key: FactKey.make("user.theme") } as const
      const receipt = yield* memory.forget(agent_id, order, "operator")
      assert.deepInclude(receipt, { facts: 1, events: 2, sessions: [session_id] })
      for (const text of ["dark-4711", "dark-4712"]) assert.deepStrictEqual(yield* placesWith(text), [])
      assert.isTrue((yield* (yield* EventStore).verify(session_id)).ok)
    }).pipe(Effect.provide(forgetting().pipe(Layer.provideMerge(stores))))
  )

  it.effect("forgets what searches quoted of a part of a session, by its place, whatever ids it had then", () =>
    Effect.gen(function* () {
      const { secret, talk } = yield* told
      const { agent_id, session_id } = talk.caller
      const from = talk.rev
      const place = { session_id, text: `… word is ${secret}`, id: "00000000-0000-4000-8000-00000000000a" }
      const outputs = [
        // A chunk of that time, the next one, which begins with its words, and the event itself.
        { hits: [{ ...place, first_rev: 4, last_rev: 5 }] },
        { hits: [{ ...place, first_rev: 7, last_rev: 9 }] },
        { hits: [{ rev: 4, hash: "a".repeat(64), excerpt: secret }] }
      ]
      const received = yield* (yield* Inbox).receive(message(agent_id, "m9", "Which word?"))
      if (received.type === "full") return assert.fail("the inbox is full")
      const { inbox_id } = received
      const calls = outputs.map((_, n) => ({ call_id: CallId.make(`c-q-${n}`), name: "choir-memory-query", input: {} }))
      const asking = modelOutput("c-q", "")
      talk.commit(
        { event_type: "UserMsg", lane: EDGE, payload: { inbox_id, dm: DESK, text: "Which word?", attachments: [] } },
        { ...asking, payload: { ...asking.payload, tool_calls: calls } } as EventDraft,
        ...outputs.map((output, n): EventDraft => ({
          event_type: "ToolResultCommitted",
          lane: EDGE,
          payload: { call_id: CallId.make(`c-q-${n}`), status: "rejected", summary: "1 hit", duration_ms: 0, output }
        })),
        modelOutput("c-r", "that one"),
        reply(inbox_id, "that one")
      )
      yield* append(talk, from)
      yield* end(talk)
      const memory = yield* Forgetting
      const order = { type: "span", session_id, first_rev: Rev.make(4), last_rev: Rev.make(6) } as const
      assert.deepInclude(yield* memory.forget(agent_id, order, "operator"), { events: 6 })
      const { events } = yield* (yield* EventStore).tail(session_id, 1)
      assert.notInclude(JSON.stringify(events), secret)
    }).pipe(Effect.provide(forgetting().pipe(Layer.provideMerge(stores))))
  )

  it.effect("empties answers of commands that have a forgotten fact, though no event has it", () =>
    Effect.gen(function* () {
      const { talk } = yield* told
      const { agent_id } = talk.caller
      const code = newSecret()
      yield* writeFact(agent_id, "user.door", `The door code is ${code}`, { kind: "operator" })
      yield* (yield* SqlClient.SqlClient)`INSERT INTO choir_control.outbox (agent_id, dm, source, source_id, part, kind, text, gateway, delivered_at)
        VALUES (${agent_id}, ${DESK}, 'choird', ${code}, 0, 'notice', ${`user.door: The door code is ${code} (2026-01-01)`}, 'desk', now())`
      yield* end(talk)
      const memory = yield* Forgetting
      const order = { type: "fact", key: FactKey.make("user.door") } as const
      assert.deepInclude(yield* memory.forget(agent_id, order, "operator"), { facts: 1, events: 0, texts: 1 })
      assert.deepStrictEqual(yield* placesWith(`code is ${code}`), [])
    }).pipe(Effect.provide(forgetting().pipe(Layer.provideMerge(stores))))
  )

  it.effect("drops what a compaction made of forgotten events", () =>
    Effect.gen(function* () {
      const { secret, talk } = yield* told
      const { agent_id, session_id } = talk.caller
      talk.commit({
        event_type: "CompactionCommitted",
        lane: EDGE,
        payload: {
          boundary_rev: Rev.make(6),
          delta: { mode: "append", summary_update: "The flower word." },
          words: ["a word"]
        }
      })
      yield* append(talk, 9)
      yield* end(talk)
      const memory = yield* Forgetting
      yield* memory.forget(agent_id, { type: "words", words: secret }, "operator")
      const { events } = yield* (yield* EventStore).tail(session_id, 1)
      assert.notInclude(JSON.stringify(events), "flower word")
      assert.notInclude(JSON.stringify(events), "a word")
    }).pipe(Effect.provide(forgetting().pipe(Layer.provideMerge(stores))))
  )

  it.effect("stops the agent of a running session for a moment, and reads what it wrote until then", () =>
    Effect.gen(function* () {
      const { secret, talk } = yield* told
      const { agent_id } = talk.caller
      const store = yield* EventStore
      const more = Effect.gen(function* () {
        talk.commit({ event_type: "AgentMessage", lane: EDGE, payload: { kind: "notice", text: `again ${secret}` } })
        assert.strictEqual((yield* store.append(talk.caller, talk.heartbeat(9))).action, "OK")
      })
      const memory = yield* Effect.provide(Forgetting, forgetting(Effect.orDie(more)))
      const receipt = yield* memory.forget(agent_id, { type: "words", words: secret }, "gateway:phone")
      assert.deepInclude(receipt, { events: 4, restarted: true })
      assert.deepStrictEqual([steps[0], steps.at(-1)], ["pause", "wake"])
      assert.deepStrictEqual(yield* placesWith(secret), [])
    }).pipe(Effect.provide(stores))
  )

  it.effect("carries an order out although nobody waits for it, and one that a crash cut short at the next start", () =>
    Effect.gen(function* () {
      const { secret, talk } = yield* told
      const { agent_id, session_id } = talk.caller
      yield* end(talk)
      const sql = yield* SqlClient.SqlClient
      const target = { phrases: [secret], spans: [], facts: [], shown: [], sessions: [session_id] }
      yield* sql`INSERT INTO choir_control.forgets (agent_id, who, target) VALUES (${agent_id}, 'operator', ${JSON.stringify(target)}::jsonb)`
      // As if choird had died after all but the chunks.
      yield* (yield* EventStore).forget(session_id, [Rev.make(4)])
      const memory = yield* Effect.provide(Forgetting, forgetting())
      yield* memory.finish
      assert.deepStrictEqual(yield* placesWith(secret), [])
      assert.deepStrictEqual(yield* sql`SELECT 1 FROM choir_control.forgets WHERE agent_id = ${agent_id}`, [])
      assert.deepInclude(yield* (yield* EventStore).verify(session_id), { ok: true, forgotten: 3 })

      const other = yield* told
      yield* end(other.talk)
      const waiting = yield* Effect.forkChild(
        memory.forget(other.talk.caller.agent_id, { type: "words", words: other.secret }, "operator"),
        { startImmediately: true }
      )
      yield* Fiber.interrupt(waiting)
      yield* memory.finish
      assert.deepStrictEqual(yield* sql`SELECT 1 FROM choir_control.forgets WHERE agent_id = ${agent_id}`, [])
    }).pipe(Effect.provide(stores))
  )

  it.effect("refuses words that stand in too many events", () =>
    Effect.gen(function* () {
      assert.isAtLeast(FORGET_EVENTS_MAX, 10_000)
      const { secret, talk } = yield* told
      yield* end(talk)
      const memory = yield* Forgetting
      const nothing = yield* memory.forget(talk.caller.agent_id, { type: "words", words: "never said" }, "operator")
      assert.deepInclude(nothing, { events: 0, facts: 0, sessions: [] })
      assert.isAbove((yield* placesWith(secret)).length, 0)
    }).pipe(Effect.provide(forgetting().pipe(Layer.provideMerge(stores))))
  )
})
