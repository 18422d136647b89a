/**
 * A month of use in fast motion, on the real embedded database: days pass by dating back what a day wrote. `CHOIR_TEST_SIZE=full` has
 * 100 sessions a day.
 */
import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Layer, Logger, References } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import { Database } from "#src/choird/database/Database.ts"
import { Inbox } from "#src/choird/gateway/Inbox.ts"
import { Outbox } from "#src/choird/gateway/Outbox.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { Retention } from "#src/choird/retention/Retention.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { embeddedTemplate, temporaryFolder } from "../../support/engines.ts"
import { retentionWith } from "../../support/retention.ts"
import { BINDINGS, DESK, message, newAgent, Talk } from "../../support/stores.ts"

const isFull = process.env["CHOIR_TEST_SIZE"] === "full"
const SIZE = isFull ? { days: 40, sessions: 100, turns: 10 } : { days: 20, sessions: 3, turns: 2 }
const LIMIT_MS = isFull ? 3_600_000 : 240_000
const DAY_MS = 86_400_000
const MIB = 1024 ** 2
const KEPT = {
  sessions_days: 4,
  messages_days: 3,
  snapshots_days: 1,
  audit_days: 5,
  archives_days: 10,
  config_versions: 10
}
const WORDS = "some words that a person wrote ".repeat(60)

const DATES = {
  inbox: ["created_at"],
  outbox: ["created_at", "delivered_at"],
  signals: ["created_at"],
  call_results: ["created_at"],
  pending_approvals: ["created_at", "resolved_at", "expires_at"],
  sessions: ["started_at", "ended_at"],
  session_snapshots: ["created_at"],
  audit: ["at", "since"]
}

/** The write-ahead log comes in files of 16 MiB, of which the database keeps up to 80 MiB to write to again. */
const LOG_BYTES_MAX = 96 * MIB

const sizeOf = (folder: string, log: boolean): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.parentPath.includes("pg_wal") === log)
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)

/** One conversation of a person with an agent, with an approval, and its end. */
const session = Effect.fnUntraced(function* (agent_id: AgentId, day: number, number: number) {
  const sql = yield* SqlClient.SqlClient
  const events = yield* EventStore
  const inbox = yield* Inbox
  const sessions = yield* SessionStore
  const { session_id } = yield* sessions.create(agent_id, BINDINGS, "0000000")
  const talk = new Talk(session_id, agent_id)
  for (let turn = 0; turn < SIZE.turns; turn += 1) {
    const received = yield* inbox.receive(message(agent_id, `${day}-${number}-${turn}`, WORDS))
    if (received.type === "full") return yield* Effect.die("the inbox is full")
    const before = talk.rev
    yield* events.append(talk.caller, talk.turn(received.inbox_id, WORDS).heartbeat(before))
  }
  yield* sql`INSERT INTO choir_control.pending_approvals
    (session_id, agent_id, request_type, payload, call_id, canonical, payload_hash, summary, lane, expires_at, status, resolved_at)
    VALUES (${session_id}, ${agent_id}, 'confirm_tool', '{}', 'c-1', ${WORDS}, '\\x00', '', 'edge', now(), 'rejected', now())`
  yield* sql`INSERT INTO choir_control.call_results (session_id, call_id, request_hash, response)
    VALUES (${session_id}, 'c-1', '\\x00', to_jsonb(${WORDS}::text))`
  yield* (yield* Audit).record({ who: "operator", action: "x", agent_id, session_id, detail: {} })
  yield* sessions.end(session_id, "stopped")
})

const rowsOf = Effect.fnUntraced(function* () {
  const sql = yield* SqlClient.SqlClient
  const counts: Record<string, number> = {}
  for (const table of [...Object.keys(DATES), "session_events", "deleted_sessions"]) {
    const [row] = yield* sql<{ readonly n: number }>`SELECT count(*)::int AS n FROM ${sql(`choir_control.${table}`)}`
    counts[table] = row?.n ?? 0
  }
  return counts
})

const month = Effect.fnUntraced(function* (data: string) {
  const sql = yield* SqlClient.SqlClient
  const events = yield* EventStore
  const outbox = yield* Outbox
  const retention = yield* Retention
  const clock = yield* Clock.Clock
  const agents = [newAgent(), newAgent(), newAgent()]
  const sizes: Array<number> = []
  const live = yield* (yield* SessionStore).create(agents[0]!, BINDINGS, "0000000")
  const resident = new Talk(live.session_id, agents[0]!)
  yield* sql`UPDATE choir_control.sessions SET status = 'active', agent_id = 'resident' WHERE session_id = ${live.session_id}`
  for (let day = 1; day <= SIZE.days; day += 1) {
    const ago = SIZE.days - day
    for (let number = 0; number < SIZE.sessions; number += 1)
      yield* session(agents[number % agents.length]!, day, number)
    const before = resident.rev
    yield* events.append(resident.caller, resident.turn(1_000_000 + day).heartbeat(before))
    for (let undelivered = yield* outbox.undelivered(DESK, undefined); undelivered.length > 0;) {
      yield* outbox.delivered(undelivered.map(({ outbox_id }) => outbox_id))
      undelivered = yield* outbox.undelivered(DESK, undefined)
    }
    for (const [table, columns] of Object.entries(DATES))
      for (const column of columns)
        yield* sql`UPDATE ${sql(`choir_control.${table}`)} SET ${sql(column)} = ${sql(column)} - ${ago} * interval '1 day'
          WHERE ${sql(column)} > now() - interval '12 hours'`
    // What is due is due by choird's clock, which stands at the evening of that day.
    const evening: Clock.Clock = Object.create(clock, {
      currentTimeMillis: { value: Effect.map(clock.currentTimeMillis, (now_ms) => now_ms - ago * DAY_MS) }
    })
    yield* Effect.provideService(retention.prune({ dry_run: false, who: "operator" }), Clock.Clock, evening)
    sizes.push(sizeOf(data, false))
  }
  const left = yield* retention.prune({ dry_run: true, who: "operator" })
  return { counts: yield* rowsOf(), left, resident: yield* events.verify(live.session_id), sizes }
})

describe("a month of use in fast motion (R85)", () => {
  it.live(
    "ends with every table within its retention, the disk as it was after some days, and nothing left to do",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const data = join(folder, "data")
        const engine = Database.layerEmbedded({ folder: data, template: embeddedTemplate() })
        const { counts, left, resident, sizes } = yield* month(data).pipe(
          Effect.provide(Layer.provideMerge(retentionWith(KEPT), engine))
        )
        const inDays = (days: number) => SIZE.sessions * (days + 1)
        assert.deepStrictEqual(
          left.kinds.filter(({ removed }) => removed > 0),
          []
        )
        assert.deepStrictEqual(resident, { ...resident, ok: true, events: 3 * SIZE.days })
        // Beside those of the resident, and of the sessions that an agent would go on in.
        const resumable = 3 * SIZE.turns * 3
        assert.isAtMost(
          counts["session_events"] ?? 0,
          3 * SIZE.turns * inDays(KEPT.sessions_days) + resumable + 3 * SIZE.days
        )
        assert.isAtMost(counts["sessions"] ?? 0, inDays(KEPT.archives_days) + 4)
        assert.strictEqual((counts["sessions"] ?? 0) + (counts["deleted_sessions"] ?? 0), SIZE.sessions * SIZE.days + 1)
        assert.isAtMost(counts["session_snapshots"] ?? 0, 2 * inDays(KEPT.snapshots_days) + 8)
        assert.isAtMost(counts["audit"] ?? 0, 2 * inDays(KEPT.audit_days) + SIZE.days)
        const [third = 0, last = 0] = [sizes[Math.floor(SIZE.days / 3)], sizes.at(-1)]
        const told = sizes.map((bytes) => (bytes / MIB).toFixed(1)).join(" ")
        assert.isBelow(last, third + Math.max(8 * MIB, third / 4), told)
        assert.isAtMost(sizeOf(data, true), LOG_BYTES_MAX)
        if (isFull) yield* Effect.sync(() => process.stderr.write(`${JSON.stringify({ counts, sizes })}\n`))
      }).pipe(Effect.provide(Logger.layer([])), Effect.provideService(References.MinimumLogLevel, "Error")),
    LIMIT_MS
  )
})
