/**
 * P4 and P5: what steps cost the database when they are batched, and how long a person waits for a turn beside the bare loop. P9: the
 * chain, `session verify` and replication over the events of such a session, beside a bare insert of the same rows.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient } from "effect/sql"
import type { Caller, Heartbeat } from "#schema/AgentApi.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { AgentId, ResourceName, type SessionId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Database } from "#src/choird/database/Database.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { chainEvent, genesis, hex, type Link } from "#src/shared/events/hashChain.ts"
import { packPayload } from "#src/shared/events/storedPayload.ts"
import { type Started, startAgent } from "./agent.ts"
import { onPostgres } from "./postgres.ts"
import { atLeast, atMost, median, ratioAtLeast, type Row, spread } from "./Row.ts"
import { layerAppendRules } from "#src/choird/approvals/callApprovals.ts"

const TURN = 20
const TURNS = 20
/** Jobs whose events are the material of P9; with ten calls an answer, a step has 31 events. */
const JOBS = 8
const JOB_STEPS = 60
const BATCH = 500
const ROUNDS = 5

const tell = (text: string) => Effect.sync(() => void process.stderr.write(`${text}\n`))

/** Until choird has everything that the agent has. */
const quiet = ({ choir }: Started) =>
  Effect.gen(function* () {
    const { acked_rev } = yield* choir.api.agents.status({ params: choir.params })
    yield* Effect.sleep("6 seconds")
    const later = yield* choir.api.agents.status({ params: choir.params })
    if (later.acked_rev !== acked_rev) return yield* Effect.fail("still growing")
    return acked_rev ?? 0
  }).pipe(Effect.retry(Schedule.recurs(20)))

/** Commits and bytes of the write-ahead log until now. */
const writes = (sql: SqlClient.SqlClient) =>
  Effect.gen(function* () {
    // Counters of other backends reach the view within a second or so.
    const [row] = yield* sql<{ readonly commits: number; readonly bytes: number }>`SELECT
      (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())::float8 AS commits,
      pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS bytes`
    return row ?? { commits: 0, bytes: 0 }
  })

const stepWrites = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, started: Started) {
  yield* quiet(started)
  const before = yield* writes(sql)
  yield* Effect.sleep("6 seconds")
  const idle = yield* writes(sql)
  yield* started.jobs(JOBS, "reads", JOB_STEPS, 0)
  yield* quiet(started)
  const after = yield* writes(sql)
  // A step here is a tool call, with its share of a model's answer.
  const steps = JOBS * JOB_STEPS * 10
  yield* tell(`P4: ${idle.commits - before.commits} commits and ${idle.bytes - before.bytes} bytes in 6 s of rest`)
  return { commits: (after.commits - idle.commits) / steps, kb: (after.bytes - idle.bytes) / steps / 1024 }
})

/** A person's wait for the turn, and the bare loop's for the same requests. */
const turns = Effect.fnUntraced(function* ({ raw, turn }: Started) {
  const [ours, bare]: [Array<number>, Array<number>] = [[], []]
  for (let round = -5; round < TURNS; round++) {
    const before = performance.now()
    const run = yield* turn("read", TURN)
    const between = performance.now()
    yield* raw(run, 1)
    if (round < 0) continue
    ours.push(between - before)
    bare.push(performance.now() - between)
  }
  yield* tell(`P5: ms a turn of ${TURN} steps: agent ${spread(ours)}, raw ${spread(bare)}`)
  return { ours: median(ours), bare: median(bare) }
})

const perSecond = (count: number, started_ms: number): number => (count * 1000) / (performance.now() - started_ms)

const linked = (session_id: SessionId, events: ReadonlyArray<ChoirEvent>): ReadonlyArray<Link> => {
  const links: Array<Link> = []
  for (const event of events) links.push(chainEvent(links.at(-1)?.hash ?? genesis(session_id), event))
  return links
}

const heartbeats = (session_id: SessionId, links: ReadonlyArray<Link>): ReadonlyArray<Heartbeat> => {
  const hashAt = (rev: number) => hex(links[rev - 1]?.hash ?? genesis(session_id))
  return Array.from({ length: Math.ceil(links.length / BATCH) }, (_, index) => {
    const base_rev = index * BATCH
    const patches = links.slice(base_rev, base_rev + BATCH).map(({ event }) => event)
    const new_rev = base_rev + patches.length
    const place = { epoch: 1, base_rev, new_rev, hash_prev: hashAt(base_rev), hash_new: hashAt(new_rev) }
    return { ...place, patches, config_version: 1, timestamp: "2026-01-01T00:00:00.000Z" }
  })
}

/** The least that storing can cost: the same rows, as many at once, in a table of the same columns. */
const bareInsert = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, links: ReadonlyArray<Link>) {
  yield* sql`CREATE TABLE IF NOT EXISTS bare (session_id text, rev int, event_type text, lane text,
    created_at text, salt bytea, body bytea, hash bytea, PRIMARY KEY (session_id, rev))`
  yield* sql`TRUNCATE bare`
  const started = performance.now()
  for (let from = 0; from < links.length; from += BATCH) {
    const rows = links.slice(from, from + BATCH)
    const column = <A>(value: (link: Link) => A) => rows.map(value)
    yield* sql`INSERT INTO bare SELECT 's', rev, event_type, lane, created_at, salt, body, hash
      FROM unnest(${column(({ event }) => event.rev)}::int[], ${column(({ event }) => event.event_type)}::text[],
        ${column(({ event }) => event.lane)}::text[], ${column(({ event }) => event.created_at)}::text[],
        ${column(({ event }) => Buffer.from(event.salt ?? "", "hex"))}::bytea[],
        ${column(({ payload }) => packPayload(payload))}::bytea[],
        ${column(({ hash }) => hash)}::bytea[]) AS row (rev, event_type, lane, created_at, salt, body, hash)`
  }
  return perSecond(links.length, started)
})

/** Replication as choird does it, from decoded heartbeats on, in turns with the bare insert. */
const replication = Effect.fnUntraced(function* (events: ReadonlyArray<ChoirEvent>) {
  const [sessions, store, sql] = [yield* SessionStore, yield* EventStore, yield* SqlClient.SqlClient]
  const me = ResourceName.make("me")
  const [ours, bare]: [Array<number>, Array<number>] = [[], []]
  for (let round = -1; round < ROUNDS; round++) {
    const agent_id = AgentId.make(`bench-${round + 1}`)
    const model = ResourceName.make("test")
    const bindings = { workspace: ResourceName.make("main"), llm: model, core_llm: model, dm: me }
    const { session_id } = yield* sessions.create(agent_id, bindings, "0000000")
    const links = linked(session_id, events)
    const caller: Caller = { session_id, agent_id, epoch: 1, standing: "current" }
    const beats = heartbeats(session_id, links)
    const started = performance.now()
    for (const beat of beats) {
      const { action } = yield* store.append(caller, beat)
      if (action !== "OK") return yield* Effect.die(new Error(`${action} was answered`))
    }
    const rate = perSecond(links.length, started)
    const floor = yield* bareInsert(sql, links)
    if (round < 0) continue
    ours.push(rate)
    bare.push(floor)
  }
  yield* tell(`P9: events/s stored ${spread(ours)}, bare insert ${spread(bare)}`)
  return { ours: median(ours), bare: median(bare) }
})

const chained = Effect.fnUntraced(function* (session_id: SessionId, events: ReadonlyArray<ChoirEvent>) {
  const rates: Array<number> = []
  for (let round = -2; round < ROUNDS; round++) {
    const started = performance.now()
    linked(session_id, events)
    if (round >= 0) rates.push(perSecond(events.length, started))
  }
  yield* tell(`P9: events/s chained ${spread(rates)}`)
  return median(rates)
})

const verified = Effect.fnUntraced(function* ({ choir }: Started, session_id: SessionId, count: number) {
  const rates: Array<number> = []
  for (let round = -1; round < ROUNDS; round++) {
    const started = performance.now()
    const { ok } = yield* choir.api.sessions.verify({ params: { id: session_id } })
    if (!ok) return yield* Effect.die(new Error("the log is broken"))
    if (round >= 0) rates.push(perSecond(count, started))
  }
  yield* tell(`P9: events/s verified ${spread(rates)}`)
  return median(rates)
})

const stores = (home: string, host: string, user: string) =>
  Layer.mergeAll(SessionStore.layer, EventStore.layer.pipe(Layer.provide(layerAppendRules))).pipe(
    Layer.provideMerge(Layer.mergeAll(Tokens.layer, Signals.layer, Outbox.layer)),
    Layer.provideMerge(ConfigStore.layer({ home })),
    Layer.provideMerge(Database.layerPostgres({ host, port: 5432, user, database: "bench" }))
  )

export const conversation: Effect.Effect<ReadonlyArray<Row>, unknown> = onPostgres("P4, P5, P9", (options, server) =>
  Effect.gen(function* () {
    const started = yield* startAgent(options)
    const sql = yield* PgClient.makeClient({ ...server, username: server.user, database: "postgres" })
    const chat = yield* turns(started)
    const cost = yield* stepWrites(sql, started)
    const session_id = yield* Effect.fromNullishOr(started.session_id)
    const events = (yield* started.choir.events(session_id)).map(({ event }) => event)
    const verify = yield* verified(started, session_id, events.length)
    const links = yield* chained(session_id, events)
    yield* sql`CREATE DATABASE bench`
    const services = yield* Layer.build(stores(started.choir.home, server.host, server.user))
    const stored = yield* Effect.provideContext(replication(events), services)
    return [
      atMost("P4", "commits a step, batched", cost.commits, "commits", 0.1),
      atMost("P4", "write-ahead log a step, batched", cost.kb, "KB", 1.5),
      { ...atMost("P5", `chat turn of ${TURN} steps`, chat.ours, "ms", 40 + 4 * TURN), floor: Math.round(chat.bare) },
      atLeast("P9", "hash chain", links, "events/s", 200_000),
      atLeast("P9", "session verify", verify, "events/s", 200_000),
      ratioAtLeast("P9", "replication, of a bare insert", stored.ours, "events/s", stored.bare, 0.66)
    ]
  }).pipe(Effect.scoped, Effect.provide(Reactivity.layer))
)
