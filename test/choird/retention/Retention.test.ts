import { existsSync } from "node:fs"
import { assert } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { AgentId, CallId, ResourceName } from "#schema/Ids.ts"
import { CallResults } from "#src/choird/hosttools/CallResults.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { AUDIT_AGENT_ROWS_MAX } from "#src/choird/retention/rules.ts"
import { archivePath } from "#src/choird/sessions/archivedLog.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { DELETED_SESSIONS_MAX } from "#src/choird/retention/rules.ts"
import { describeEmbedded, describeEngines, describeStores } from "../../support/engines.ts"
import { endedBefore, pruned, retentionWith, statusOf } from "../../support/retention.ts"
import { BINDINGS, DESK, message, newAgent, newTalk, PHONE } from "../../support/stores.ts"

/** Everything that is in the table so far is so many days older. */
const age = Effect.fnUntraced(function* (table: string, days: number, column = "created_at") {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE ${sql(`choir_control.${table}`)} SET ${sql(column)} = ${sql(column)} - ${days} * interval '1 day'`
})

const rows = Effect.fnUntraced(function* (table: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{
    readonly count: number
  }>`SELECT count(*)::int AS count FROM ${sql(`choir_control.${table}`)}`
  return row?.count ?? 0
})

/** A message that a session has answered, and whose answer was delivered. */
const conversation = Effect.gen(function* () {
  const inbox = yield* Inbox
  const events = yield* EventStore
  const outbox = yield* Outbox
  const talk = yield* newTalk
  const sent = message(talk.caller.agent_id, "first", "the text")
  const received = yield* inbox.receive(sent)
  if (received.type === "full") return yield* Effect.die("full")
  talk.turn(received.inbox_id)
  yield* events.append(talk.caller, talk.heartbeat(0))
  const replies = yield* outbox.undelivered(DESK, undefined)
  yield* outbox.delivered(replies.map(({ outbox_id }) => outbox_id))
  return { talk, sent, inbox_id: received.inbox_id }
})

describeEngines("Retention of rows", (it) => {
  it.effect("empties texts, then forgets ids, and still knows what is delivered again in between", () =>
    Effect.gen(function* () {
      const inbox = yield* Inbox
      const { inbox_id, sent, talk } = yield* conversation
      yield* age("inbox", 8)
      yield* age("outbox", 8)
      assert.deepInclude(yield* pruned(true), { messages: 1, replies: 1 })
      const first = yield* pruned()
      assert.deepInclude(first, { messages: 1, replies: 1 })
      assert.notProperty(first, "message ids")
      const again = yield* inbox.receive(sent)
      assert.deepInclude(again, { type: "queued", inbox_id })
      // An agent that sends its answer again tells nobody a second time.
      const outbox = yield* Outbox
      yield* (yield* EventStore).append(talk.caller, talk.heartbeat(0))
      assert.deepStrictEqual(yield* outbox.undelivered(DESK, undefined), [])
      assert.deepStrictEqual(yield* pruned(), {})
      yield* age("inbox", 30)
      yield* age("outbox", 30)
      assert.deepInclude(yield* pruned(), { "message ids": 1, "reply ids": 1 })
    }).pipe(Effect.provide(retentionWith({ messages_days: 7 })))
  )

  it.effect("keeps what is unacknowledged, undelivered or asked for, however old", () =>
    Effect.gen(function* () {
      const inbox = yield* Inbox
      const outbox = yield* Outbox
      const signals = yield* Signals
      const { caller } = yield* newTalk
      yield* inbox.receive(message(caller.agent_id, "waiting"))
      yield* outbox.tell({
        source_id: `${caller.agent_id}:told`,
        gateway: ResourceName.make("bot"),
        dm: PHONE,
        agent_id: caller.agent_id,
        kind: "notice",
        text: "not delivered",
        in_reply_to: null
      })
      yield* signals.send(caller.session_id, "request", { type: "Inject", content: "look" } as never)
      for (const table of ["inbox", "outbox", "signals"]) yield* age(table, 5000)
      const gone = yield* pruned()
      for (const kind of ["messages", "message ids", "replies"]) assert.notProperty(gone, kind)
      assert.strictEqual(yield* inbox.pending(caller.agent_id), 1)
      assert.strictEqual((yield* outbox.undelivered(PHONE, undefined)).length, 1)
      assert.strictEqual((yield* signals.asked(caller.session_id, "request"))?.acked_rev, null)
    }).pipe(Effect.provide(retentionWith({ messages_days: 1 })))
  )

  it.effect(
    "ends what nobody reads at a console after its days, warns of it before, and leaves what a bot still has",
    () =>
      Effect.gen(function* () {
        const outbox = yield* Outbox
        const agent_id = newAgent()
        const about = { agent_id, kind: "reply", text: "unread", in_reply_to: null } as const
        const places = [
          { gateway: ResourceName.make("terminal"), dm: DESK },
          { gateway: ResourceName.make("bot"), dm: PHONE }
        ]
        const waiting = Effect.forEach(places, ({ dm }) =>
          Effect.map(
            outbox.undelivered(dm, undefined),
            (found) => found.filter((row) => row.agent_id === agent_id).length
          )
        )
        const warned = Effect.map(outbox.unread, (found) => found.map(({ count, dm }) => `${count} ${dm}`))
        for (const place of places) yield* outbox.tell({ ...about, ...place, source_id: `${agent_id}:${place.dm}` })
        yield* age("outbox", 65)
        assert.deepStrictEqual([yield* pruned(), yield* warned], [{}, []])
        yield* age("outbox", 20)
        assert.deepStrictEqual([yield* pruned(), yield* warned], [{}, ["1 desk"]])
        yield* age("outbox", 20)
        assert.deepStrictEqual(yield* pruned(), { unread: 1 })
        assert.deepStrictEqual([yield* waiting, yield* warned], [[0, 1], []])
      }).pipe(Effect.provide(retentionWith({ unread_days: 100 })))
  )

  it.effect(
    "forgets old costs of embeddings, agents of which nothing is left, and the oldest of many deleted sessions",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const sessions = yield* SessionStore
        const gone = AgentId.make("gone")
        const { session_id } = yield* sessions.create(AgentId.make("known"), BINDINGS, "0000000")
        yield* sql`INSERT INTO choir_control.agents (agent_id, name, image_version, last_session_id)
        VALUES (${gone}, ${gone}, '', 'old-1')`
        yield* sql`INSERT INTO choir_control.embedding_costs (agent_id, day, model)
        SELECT ${gone}, (now() AT TIME ZONE 'UTC')::date - days, 'm' FROM unnest(${[89, 90, 91, 92]}::int[]) AS days`
        yield* sql`INSERT INTO choir_control.deleted_sessions (session_id, agent_id, started_at, last_rev, who, deleted_at, cleared)
        SELECT 'old-' || i, ${gone}, now(), 1, 'choird', now() - i * interval '1 hour', i <> ${DELETED_SESSIONS_MAX + 3}
        FROM generate_series(1, ${DELETED_SESSIONS_MAX + 3}) AS i`
        yield* sql`UPDATE choir_control.agents SET last_session_id = ${`old-${DELETED_SESSIONS_MAX + 2}`} WHERE agent_id = 'known'`
        // The one that is not cleared yet is cleared at this look.
        assert.deepStrictEqual(yield* pruned(), { "embedding costs": 2, "deleted sessions": 2, agents: 1 })
        const kept = yield* sql`SELECT agent_id FROM choir_control.agents WHERE agent_id IN ('known', 'gone')`
        assert.deepStrictEqual(kept, [{ agent_id: "known" }])
        assert.strictEqual(yield* rows("deleted_sessions"), DELETED_SESSIONS_MAX + 1)
        yield* endedBefore(session_id, 1)
      }).pipe(Effect.provide(retentionWith({ runs_days: 90 })))
  )

  it.effect("keeps what was given up for as long as status tells of it, then treats it as delivered", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const outbox = yield* Outbox
      const agent_id = newAgent()
      const given = ["refused", "orphan"].map((name) => `${agent_id}:${name}`)
      const { gateway } = message(agent_id, "x")
      for (const source_id of given)
        yield* outbox.tell({ source_id, gateway, dm: PHONE, agent_id, kind: "notice", text: "lost", in_reply_to: null })
      for (const { outbox_id, source_id } of yield* outbox.undelivered(PHONE, undefined))
        if (given.includes(source_id)) yield* outbox.giveUp(outbox_id, "refused")
      const left = sql`SELECT text FROM choir_control.outbox WHERE source_id = ANY(${given}::text[])`
      yield* age("outbox", 5000)
      yield* age("outbox", 6, "failed_at")
      assert.deepStrictEqual(yield* pruned(), {})
      assert.deepStrictEqual(yield* left, [{ text: "lost" }, { text: "lost" }])
      assert.deepInclude(yield* outbox.undeliverable, { dm: PHONE, count: 2, reason: "refused" })
      yield* age("outbox", 2, "failed_at")
      yield* sql`UPDATE choir_control.outbox SET created_at = now() - interval '3 days' WHERE source_id = ${given[0]}`
      assert.deepStrictEqual(yield* outbox.undeliverable, [])
      assert.deepInclude(yield* pruned(), { replies: 2, "reply ids": 1 })
      assert.deepStrictEqual(yield* left, [{ text: "" }])
    }).pipe(Effect.provide(retentionWith({ messages_days: 1 })))
  )

  it.effect("forgets outcomes of host tools, and none that is in doubt or of a session that ended lately", () =>
    Effect.gen(function* () {
      const results = yield* CallResults
      const claims = yield* Effect.forEach(
        [
          { ended: 40, kept: true },
          { ended: 40, kept: false },
          { ended: 1, kept: true },
          { ended: undefined, kept: true }
        ],
        ({ ended, kept }) =>
          Effect.gen(function* () {
            const { session_id } = (yield* newTalk).caller
            const key = { session_id, call_id: CallId.make("c-1-0"), digest: "00" }
            yield* results.claim(key)
            if (kept) yield* results.keep(key, { status: "success", output: 1 })
            if (ended !== undefined) yield* endedBefore(session_id, ended)
            return key
          })
      )
      yield* age("call_results", 35)
      assert.deepInclude(yield* pruned(), { "call results": 2 })
      const after = yield* Effect.forEach(claims, results.claim)
      assert.deepStrictEqual(
        after.map(({ type }) => type),
        ["mine", "in doubt", "done", "mine"]
      )
    }).pipe(Effect.provide(Layer.mergeAll(CallResults.layer, retentionWith({}))))
  )

  it.effect("keeps the newest configurations and the audit of its days, and says what it did", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const audit = yield* Audit
      yield* sql`INSERT INTO choir_control.config_versions (version, config, hash)
        SELECT version, '{}', '\\x00'::bytea FROM generate_series(1000, 1030) AS version`
      yield* audit.record({ who: "operator", action: "old", detail: {} })
      yield* sql`UPDATE choir_control.audit SET at = now() - interval '366 days' WHERE action = 'old'`
      const gone = yield* pruned()
      assert.isAtLeast(gone["config versions"] ?? 0, 21)
      assert.isAtLeast(gone["audit"] ?? 0, 1)
      assert.strictEqual(yield* rows("config_versions"), 10)
      const last = (yield* audit.last({ count: 1 }))[0]
      assert.deepInclude(last, { who: "operator", action: "prune" })
      assert.deepInclude(last?.detail as object, { "config versions": gone["config versions"] })
    }).pipe(Effect.provide(retentionWith({ config_versions: 10 })))
  )

  it.effect("removes the oldest audit rows of an agent that has too many, and no other's (R77)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const audit = yield* Audit
      const of = (who: string) => audit.record({ who, action: "kept", detail: {} })
      for (const who of ["operator", "choird", "gateway:bot"]) yield* of(who)
      const [quiet, choird] = [AgentId.make("quiet"), AgentId.make("flood")]
      yield* audit.record({ who: "agent:quiet", agent_id: quiet, action: "kept", detail: {} })
      yield* audit.record({ who: "choird", agent_id: choird, action: "kept", detail: {} })
      const flood = (who: string, rows: number) => sql`INSERT INTO choir_control.audit (who, action, agent_id, detail)
        SELECT ${who}, 'flood', CASE WHEN ${who} LIKE 'agent:%' THEN 'flood' END, '{}' FROM generate_series(1, ${rows}::int)`
      yield* flood("agent:flood", AUDIT_AGENT_ROWS_MAX + 700)
      yield* flood("address:1", AUDIT_AGENT_ROWS_MAX + 700)
      assert.strictEqual((yield* pruned())["audit"], 700)
      const left = yield* sql<{ readonly who: string; readonly count: number }>`SELECT who, count(*)::int AS count
        FROM choir_control.audit WHERE action IN ('kept', 'flood') GROUP BY who ORDER BY who`
      assert.deepStrictEqual(
        left.map(({ count, who }) => `${who} ${count}`),
        [
          `address:1 ${AUDIT_AGENT_ROWS_MAX + 700}`,
          `agent:flood ${AUDIT_AGENT_ROWS_MAX}`,
          "agent:quiet 1",
          "choird 2",
          "gateway:bot 1",
          "operator 1"
        ]
      )
    }).pipe(Effect.provide(Layer.fresh(retentionWith({}))))
  )
})

describeEmbedded("Retention of rows", (it) => {
  it.effect("lets the embedded database use the room of removed rows again, and keeps its log short", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const measure = Effect.gen(function* () {
        const [row] = yield* sql<{ readonly table: string; readonly log: string }>`SELECT
          pg_total_relation_size('choir_control.audit')::text AS table,
          (SELECT sum(size) FROM pg_ls_waldir())::text AS log`
        return { table: Number(row?.table), log: Number(row?.log) }
      })
      const sizes = []
      for (let round = 0; round < 4; round += 1) {
        for (let part = 0; part < 4; part += 1)
          yield* sql`INSERT INTO choir_control.audit (at, who, action, detail)
            SELECT now() - interval '400 days', 'x', 'y', jsonb_build_object('text', repeat(md5(i::text), 40)) FROM generate_series(1, 2500) AS i`
        yield* pruned()
        sizes.push(yield* measure)
      }
      const [, second, , last] = sizes
      const told = JSON.stringify(sizes)
      assert.isAtMost(last?.table ?? 0, (second?.table ?? 0) * 1.3, told)
      assert.isAtMost(last?.log ?? 0, 80 * 1024 ** 2, told)
    }).pipe(Effect.provide(retentionWith({})))
  )
})

describeStores("Retention of sessions", (it) => {
  it.effect("archives ended sessions but the one that an agent goes on in, and deletes old archives to a record", () =>
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      const { home } = yield* ConfigStore
      const events = yield* EventStore
      const { talk } = yield* conversation
      const { agent_id, session_id } = talk.caller
      yield* endedBefore(session_id, 100)
      assert.deepStrictEqual(yield* pruned(true), {})
      const next = yield* sessions.create(agent_id, BINDINGS, "0000000")
      yield* endedBefore(next.session_id, 100)
      const before = yield* events.head(session_id)
      assert.deepInclude(yield* pruned(true), { sessions: 1 })
      assert.deepInclude(yield* pruned(), { sessions: 1 })
      assert.deepStrictEqual(yield* statusOf(next.session_id), yield* Effect.succeedSome("stopped" as const))
      assert.strictEqual(yield* rows("session_events"), 0)
      const path = archivePath(home, talk.caller)
      assert.isTrue(existsSync(path))
      const verified = yield* events.verify(session_id)
      assert.deepStrictEqual(verified, { ok: true, events: 3, head: before.hash })
      const sql = yield* SqlClient.SqlClient
      yield* sql`UPDATE choir_control.sessions SET ended_at = now() - interval '800 days' WHERE session_id = ${session_id}`
      assert.deepInclude(yield* pruned(), { archives: 1 })
      assert.isFalse(existsSync(path))
      const left = yield* sql`SELECT agent_id, last_rev, encode(head_hash, 'hex') AS head, who, cleared
        FROM choir_control.deleted_sessions WHERE session_id = ${session_id}`
      assert.deepStrictEqual(left, [{ agent_id, last_rev: 3, head: before.hash, who: "choird", cleared: true }])
    }).pipe(Effect.provide(retentionWith({})))
  )

  it.effect("keeps archives within their room, the newest first", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const sessions = yield* SessionStore
      const agent_id = newAgent()
      const ids = []
      for (const days of [9, 8, 7]) {
        const { session_id } = yield* sessions.create(agent_id, BINDINGS, "0000000")
        ids.push(session_id)
        yield* endedBefore(session_id, days)
      }
      yield* sessions.create(agent_id, BINDINGS, "0000000")
      assert.deepInclude(yield* pruned(), { sessions: 3 })
      yield* sql`UPDATE choir_control.sessions SET archive = jsonb_set(archive, '{bytes}', '600000') WHERE archive IS NOT NULL`
      assert.deepInclude(yield* pruned(), { archives: 2 })
      const left =
        yield* sql`SELECT session_id FROM choir_control.sessions WHERE archive IS NOT NULL AND agent_id = ${agent_id}`
      assert.deepStrictEqual(left, [{ session_id: ids[2] }])
    }).pipe(Effect.provide(retentionWith({ sessions_days: 5, archives_mb: 1 })))
  )

  it.effect("archives the newest session of an agent that left config.json", () =>
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      const [leaver, stayer] = [AgentId.make("leaver"), newAgent()]
      const ids = yield* Effect.forEach([leaver, stayer], (agent_id) =>
        Effect.map(sessions.create(agent_id, BINDINGS, "0000000"), ({ session_id }) => session_id)
      )
      yield* Effect.forEach(ids, (session_id) => endedBefore(session_id, 100))
      assert.deepInclude(yield* pruned(), { sessions: 1 })
      assert.deepStrictEqual((yield* Effect.forEach(ids, statusOf)).map(Option.getOrNull), ["closed", "stopped"])
    }).pipe(Effect.provide(retentionWith({})))
  )
})
