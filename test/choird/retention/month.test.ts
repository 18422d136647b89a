/**
 * A month of use in fast motion, with all of choird's services on a real database. A step stands for one or more days;
 * `CHOIR_TEST_SIZE=full` has 40 days with 100 sessions each, and takes the better part of an hour.
 */
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { ResourceName } from "#schema/Ids.ts"
import { MIGRATIONS } from "#src/choird/database/Migrations.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { Reconfiguration } from "#src/choird/reconfiguration/Reconfiguration.ts"
import { Database } from "#src/choird/database/Database.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { CallResults } from "#src/choird/hosttools/CallResults.ts"
import { FOLDERS, TABLES } from "#src/choird/retention/growth.ts"
import { Retention } from "#src/choird/retention/Retention.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { IDS_KEPT_DAYS } from "#src/choird/retention/rules.ts"
import { choirctl, document } from "../../support/choirctl.ts"
import { decide } from "../../support/confirmations.ts"
import { embeddedTemplate, temporaryFolder } from "../../support/engines.ts"
import * as months from "./month.ts"
import { monthSession } from "./monthSession.ts"
import { makeProposer, type ProposalLife, pushBranch, TOOL } from "../../support/proposals.ts"
import { refuse } from "../../support/testing/telegramMethods.ts"
import { IMAGES_KEPT } from "#src/choird/runtime/docker/imageNames.ts"
import { isFull } from "../../support/size.ts"

const SIZE = isFull
  ? { steps: 40, days: 1, sessions: 100, turns: 3, proposals: 2 }
  : { steps: 4, days: 12, sessions: 2, turns: 2, proposals: 3 }
const LIMIT_MS = isFull ? 7_200_000 : 600_000
const THIRD = Math.floor(SIZE.steps / 3)
const MIB = 1024 ** 2
const KEPT = {
  sessions_days: 4,
  archives_days: 10,
  messages_days: 3,
  unread_days: 4,
  approvals_days: 30,
  call_results_days: 7,
  snapshots_days: 1,
  runs_days: 90,
  audit_days: 5,
  config_versions: 10,
  logs_days: 5,
  logs_mb: 16,
  unused_days: 5,
  disk_free_mb: 1,
  disk_free_percent: 0
}
/** The write-ahead log comes in files of 16 MiB, of which the database keeps up to 80 MiB to write to again. */
const LOG_BYTES_MAX = 96 * MIB
/** How much more of the heap may be in use at the end than after a third of the days. */
const HEAP_GROWTH_BYTES_MAX = 24 * MIB
const mib = (bytes: number) => (bytes / MIB).toFixed(1)
/** Messages of a step that nobody reads. */
const UNREAD = 200
const [BOT, TERMINAL] = [ResourceName.make("bot"), ResourceName.make("terminal")]
const DECISIONS = ["approved", "rejected", "expired"] as const

setFlagsFromString("--expose-gc")
const collectGarbage: () => void = runInNewContext("gc")
const heapBytes = () => {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

const countOf = Effect.fnUntraced(function* (table: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly n: number }>`SELECT count(*)::int AS n FROM ${sql(`choir_control.${table}`)}`
  return row?.n ?? 0
})
const rowsOf = Effect.gen(function* () {
  const counts: Record<string, number> = {}
  for (const table of Object.keys(TABLES)) counts[table] = yield* countOf(table)
  return counts
})
/** Waits until a query counts none. */
const none = (query: string) =>
  months.until(
    query,
    Effect.map(
      Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<{ readonly n: number }>(query)),
      ([row]) => row?.n === 0
    )
  )
const ANSWERED = `SELECT count(*)::int AS n FROM choir_control.inbox WHERE acked_rev IS NULL`
const SENT = `SELECT count(*)::int AS n FROM choir_control.outbox
  WHERE gateway = 'bot' AND delivered_at IS NULL AND failed_at IS NULL`
const CARRIED = `SELECT count(*)::int AS n FROM choir_control.pending_approvals
  WHERE request_type <> 'confirm_tool' AND status IN ('approved', 'executing')`

/** What the builder proposes in a step: two things that are carried out, one that is rejected, and one that nobody answers. */
const proposals = Effect.fnUntraced(function* (month: months.Month, step: number) {
  // All of choird's services are more than those that it asks for.
  const life = month as unknown as Pick<ProposalLife, "within">
  const proposer = yield* makeProposer({ agent_id: months.BUILDER }, life)
  const branch = `proposal/${proposer.session_id}/soul`
  const head = month.agent.git(["rev-parse", "main"])
  const commit = pushBranch(month, branch, { "identity/SOUL.md": `calm on day ${step}\n` }, head)
  const change = (value: number) => [{ op: "set", path: "/budgets/turn_max_steps", value }]
  const merged = yield* proposer.propose("repo_change", { branch, commit, reason: "be calm" })
  const tool = yield* proposer.propose("tool", TOOL)
  const edited = yield* proposer.propose("config_change", { change: change(20 + step), reason: "I need more" })
  yield* proposer.propose("config_change", { change: change(5), reason: "nobody answers" })
  yield* (yield* SessionStore).end(proposer.session_id, "stopped")
  yield* decide(tool.approval_id, "rejected")
  for (const { approval_id } of [merged, edited]) {
    yield* decide(approval_id, "approved")
    yield* none(CARRIED)
    const { outcome, status } = yield* (yield* Approvals).get(approval_id)
    assert.strictEqual(status, "done", outcome ?? "")
  }
})

/** What agents that run are told at both gateways, and answer. */
const conversations = Effect.fnUntraced(function* (month: months.Month, step: number) {
  const { agent_id, api, bot } = month
  if (step % 4 === 3) {
    yield* Effect.ignore(api.agents.stop({ params: { id: agent_id } }))
    yield* api.agents.start({ params: { id: agent_id }, payload: { fresh: true } })
  }
  // A machine that is too busy for an agent ends it, and its operator starts it again.
  for (const id of [agent_id, months.MOBILE]) {
    const { status } = yield* api.agents.status({ params: { id } })
    if (status === "crashed") yield* api.agents.start({ params: { id }, payload: {} })
  }
  yield* api.chat.send({ params: { id: agent_id }, payload: { client_id: `day-${step}`, text: "hello" } })
  yield* bot.text(months.userOf(0), `hello on day ${step}`)
  yield* none(ANSWERED)
})

/** A chat that refuses a message, and a DM that leaves config.json with one, as does an agent. */
const departures = Effect.fnUntraced(function* (month: months.Month) {
  const outbox = yield* Outbox
  const about = { agent_id: months.LEAVER, kind: "notice", in_reply_to: null } as const
  yield* none(SENT)
  const strange = { kind: "reply", reply: refuse(400, "Bad Request: message is too strange") } as const
  yield* month.bot.fail("sendMessage", strange)
  yield* month.bot.fail("sendDocument", strange)
  yield* outbox.tell({ ...about, source_id: "refused", gateway: BOT, dm: months.phone(1), text: "are you there?" })
  yield* none(SENT)
  yield* outbox.tell({ ...about, source_id: "left", gateway: TERMINAL, dm: months.OLD, text: "are you there?" })
  const config = month.config() as { dms: Record<string, unknown>; agents: Record<string, unknown> }
  delete config.dms[months.OLD]
  delete config.agents[months.LEAVER]
  month.write("config.json", config)
  const reconfiguration = yield* Reconfiguration
  yield* reconfiguration.load("operator", () => Effect.void)
  yield* reconfiguration.apply("operator")
  yield* none(`SELECT 2 - count(*)::int AS n FROM choir_control.outbox WHERE failed_at IS NOT NULL`)
  for (const folder of ["repos/agents", "images"]) month.touched(`${folder}/${months.LEAVER}`)
})

/** Messages to a console that nobody opens, in the first half of the time. */
const unreadMessages = Effect.fnUntraced(function* (step: number) {
  const outbox = yield* Outbox
  if (step >= SIZE.steps / 2) return
  for (let number = 0; number < UNREAD; number += 1)
    yield* outbox.tell({
      source_id: `unread-${step}-${number}`,
      gateway: TERMINAL,
      dm: months.ATTIC,
      agent_id: months.BUILDER,
      kind: "notice",
      text: "is anybody there?",
      in_reply_to: null
    })
})

/** People at the console read what they are told, and Telegram takes what it is sent. */
const deliveries = Effect.gen(function* () {
  const outbox = yield* Outbox
  for (;;) {
    const rows = yield* outbox.undelivered(months.DESK, undefined)
    if (rows.length === 0) break
    yield* outbox.delivered(rows.map(({ outbox_id }) => outbox_id))
  }
  yield* none(SENT)
})

const day = Effect.fnUntraced(function* (month: months.Month, step: number) {
  let events = 0
  for (let number = 0; number < SIZE.sessions; number += 1) {
    const isPhone = number % 10 === 1
    const done = yield* monthSession({
      agent_id: months.TALKERS[number % months.TALKERS.length]!,
      id: `${step}-${number}`,
      gateway: isPhone ? BOT : TERMINAL,
      dm: isPhone ? months.phone(step + number) : months.DESK,
      turns: SIZE.turns,
      decision: DECISIONS[(number + step) % DECISIONS.length]!
    })
    events = Math.max(events, done.events)
  }
  if (step % SIZE.proposals === 0) yield* proposals(month, step)
  yield* conversations(month, step)
  if (step === 1) yield* departures(month)
  yield* unreadMessages(step)
  yield* deliveries
  return events
})

const green = (month: months.Month) =>
  Effect.gen(function* () {
    // An agent that runs hears of a new configuration with its next heartbeat.
    yield* months.until(
      "status warns",
      Effect.map(month.api.system.status(), ({ warnings }) => warnings.length === 0)
    )
    const status = yield* month.api.system.status()
    const doctor = document(yield* choirctl(month.home, ["doctor", "--json"])) as Doctor
    return { status, doctor }
  })
interface Doctor {
  readonly ok: boolean
  readonly checks: ReadonlyArray<{ readonly name: string; readonly status: string; readonly detail: string }>
}

/** The bytes of the database without its write-ahead log. */
const databaseBytes = (data: string) => months.sizeOf(data).bytes - months.sizeOf(join(data, "pg_wal")).bytes

const live = Effect.fnUntraced(function* (data: string) {
  const month = yield* months.beginMonth((SIZE.steps - 1) * SIZE.days, KEPT)
  const { api, within } = month
  for (const id of [month.agent_id, months.MOBILE, months.LEAVER]) yield* month.build(id)
  for (const id of [month.agent_id, months.MOBILE]) yield* api.agents.start({ params: { id }, payload: {} })
  const sizes: Array<number> = []
  const heaps: Array<number> = []
  let events = 0
  for (let step = 0; step < SIZE.steps; step += 1) {
    events = Math.max(events, yield* within(Effect.provide(day(month, step), CallResults.layer)))
    yield* month.evening
    yield* within(Effect.flatMap(Retention, (retention) => retention.prune({ dry_run: false, who: "operator" })))
    sizes.push(databaseBytes(data))
    if (step === THIRD || step === SIZE.steps - 1) heaps.push(heapBytes())
    if (isFull) process.stderr.write(`day ${step + 1}: ${mib(sizes.at(-1) ?? 0)} MiB\n`)
    if (step < SIZE.steps - 1) month.calendar.pass(SIZE.days)
  }
  const left = yield* within(
    Effect.flatMap(Retention, (retention) => retention.prune({ dry_run: true, who: "operator" }))
  )
  const found = yield* green(month)
  const counts = yield* within(rowsOf)
  const mobile = yield* api.agents.status({ params: { id: months.MOBILE } })
  const verified = yield* within(Effect.flatMap(EventStore, (store) => store.verify(mobile.session_id as never)))
  const folders = Object.fromEntries(
    Object.keys(FOLDERS)
      .filter((name) => existsSync(join(month.home, name)))
      .map((name) => [name, months.sizeOf(join(month.home, name))])
  )
  return { counts, events, folders, found, heaps, left, month, sizes, verified }
})

type Lived = Effect.Success<ReturnType<typeof live>>

/** Of so many steps what is younger than some days is left, and the step in which they end. */
const stepsWithin = (days: number) => Math.min(SIZE.steps, Math.floor(days / SIZE.days) + 2)
const SESSIONS = SIZE.sessions + 1
/** Sessions that agents would go on in, and those of the agents that run. */
const RESUMABLE = months.TALKERS.length + 1 + 2

/** The most rows that each table may have at the end, by what is kept. */
const rowLimits = (events: number): Readonly<Record<string, number>> => {
  const messages = SIZE.sessions * (SIZE.turns + 1) + 16
  const sessions = SESSIONS * stepsWithin(KEPT.archives_days) + RESUMABLE + SIZE.steps / 4
  return {
    agents: months.TALKERS.length + 4,
    sessions,
    session_events: (SESSIONS * stepsWithin(KEPT.sessions_days) + RESUMABLE) * events + 2 * 3 * SIZE.steps,
    session_snapshots: 2 * (SESSIONS * stepsWithin(KEPT.snapshots_days) + RESUMABLE),
    pending_approvals: (SIZE.sessions + 4) * stepsWithin(KEPT.approvals_days),
    inbox: messages * stepsWithin(KEPT.messages_days + IDS_KEPT_DAYS),
    outbox: (messages + 4 * SIZE.sessions + 32) * stepsWithin(KEPT.messages_days + IDS_KEPT_DAYS),
    signals: (messages + 2 * SIZE.sessions) * stepsWithin(IDS_KEPT_DAYS),
    call_results: SIZE.sessions * stepsWithin(KEPT.call_results_days),
    config_versions: KEPT.config_versions,
    audit: (8 * SESSIONS + 60) * stepsWithin(KEPT.audit_days),
    leases: 8,
    deleted_sessions: SESSIONS * SIZE.steps + SIZE.steps,
    // Nobody makes memory in this month: each session that is left has its job.
    memory_jobs: sessions,
    embedding_costs: 0,
    embedding_serving: 0,
    forgets: 0,
    // Nobody allows a call beforehand in this month, nor switches rich messages on.
    grants: 0,
    chat_settings: 0,
    skill_runs: messages * stepsWithin(KEPT.runs_days),
    job_runs: messages * stepsWithin(KEPT.runs_days),
    // No skill has a schedule.
    schedule_slots: 0,
    // Nobody sets a reminder.
    plans: 0,
    plan_slots: 0,
    agent_numbers: AGENTS,
    workspace_labels: AGENTS + 1,
    schema_migrations: Object.keys(MIGRATIONS).length
  }
}

const AGENTS = months.TALKERS.length + 3
/** The most bytes that each folder may have at the end. */
const folderLimits = (): Readonly<Record<string, number>> => ({
  archive: SESSIONS * stepsWithin(KEPT.archives_days) * 16 * 1024,
  images: AGENTS * (IMAGES_KEPT + 1) * 64 * 1024,
  logs: KEPT.logs_mb * MIB,
  "logs/archive": KEPT.logs_mb * MIB,
  repos: (AGENTS + 1) * 128 * 1024,
  "repos/agents": AGENTS * 128 * 1024,
  "repos/global": 128 * 1024,
  "repos/work": 0,
  socks: 0,
  "socks/agents": 0
})

const assertLimits = ({ counts, events, folders, found, heaps, left, month, sizes, verified }: Lived) => {
  assert.deepStrictEqual(
    left.kinds.filter(({ removed }) => removed > 0),
    []
  )
  assert.include(verified, { ok: true, events: 3 * SIZE.steps })
  const rows = rowLimits(events)
  assert.sameMembers(Object.keys(rows), Object.keys(TABLES))
  for (const [table, most] of Object.entries(rows)) assert.isAtMost(counts[table] ?? 0, most, table)
  const limits = folderLimits()
  for (const [name, { bytes }] of Object.entries(folders)) assert.isAtMost(bytes, limits[name] ?? 0, name)
  for (const folder of ["repos/agents", "images"])
    assert.notInclude(readdirSync(join(month.home, folder)), months.LEAVER)
  for (const id of [month.agent_id, months.BUILDER])
    assert.isAtMost(readdirSync(join(month.home, "images", id)).length, IMAGES_KEPT + 3, id)
  const told = sizes.map(mib).join(" ")
  assert.isBelow(sizes.at(-1) ?? 0, (sizes[THIRD] ?? 0) + Math.max(8 * MIB, (sizes[THIRD] ?? 0) / 4), told)
  const heap = heaps.map(mib).join(" ")
  assert.isBelow(heaps[1] ?? 0, (heaps[0] ?? 0) + HEAP_GROWTH_BYTES_MAX, heap)
  assert.deepStrictEqual(found.status.warnings, [])
  assert.isTrue(found.status.postgres.ok)
  for (const { name, ok } of found.status.gateways) assert.isTrue(ok, name)
  // Those of the last day are not due yet.
  assert.isAtMost(found.status.approvals.pending ?? SESSIONS, SESSIONS / DECISIONS.length + 1)
  assert.isTrue(found.doctor.ok, JSON.stringify(found.doctor))
}

const figures = ({ counts, folders, heaps, sizes }: Lived) =>
  `${JSON.stringify({ counts, folders, sizes: sizes.map(mib), heaps: heaps.map(mib) })}\n`

describe("a month of use in fast motion (R85)", () => {
  it.live(
    "ends with every table and folder within its limit, the memory as it was after some days, and nothing to warn of",
    () =>
      Effect.gen(function* () {
        const data = join(yield* temporaryFolder, "data")
        const engine = Database.layerEmbedded({ folder: data, template: embeddedTemplate() })
        const lived = yield* Effect.provide(live(data), engine)
        if (isFull) yield* Effect.sync(() => process.stderr.write(figures(lived)))
        assertLimits(lived)
        assert.isAtMost(months.sizeOf(join(data, "pg_wal")).bytes, LOG_BYTES_MAX)
      }),
    LIMIT_MS
  )
})
