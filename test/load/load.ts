/**
 * Many agents with many jobs at once, at a steady rate of events, on a Postgres server (R60, R13): how soon choird has what is externally
 * visible, and what choird and the agents take. The agents are real processes; only the model is a double, whose pace holds the rate.
 */
import { fork } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { PgClient } from "@effect/sql-pg"
import { Deferred, Effect, Result, Schedule, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import type { ChoirEvent } from "#schema/Event.ts"
import { AgentId } from "#schema/Ids.ts"
import { EVENT_COLUMNS } from "#src/choird/sessions/storedEvents.ts"
import { agentsBelow } from "#tools/Programs.ts"
import { eventOf, type EventRow, readRow } from "#src/shared/events/eventRow.ts"
import { createRepo } from "#src/shared/git/scaffold.ts"
import { makeInstallation, ROOT } from "../support/installation.ts"
import { startPostgres } from "../support/postgres.ts"
import { EVENTS_A_STEP, FILES, type Order } from "./model.ts"

export interface LoadOptions {
  readonly agents: number
  /** Core jobs of each agent. */
  readonly jobs: number
  /** Events a second of all agents together. */
  readonly rate: number
  readonly minutes: number
}

export interface LoadReport {
  readonly events_per_second: number
  /** From an event's commit in the agent to its commit in the database, of those that are sent at once (D7), in ms. */
  readonly p50_ms: number
  readonly p99_ms: number
  readonly visible: number
  /** Of one core. */
  readonly choird_cpu_percent: number
  readonly choird_rss_mib: number
  readonly agents_rss_mib: number
  readonly errors: ReadonlyArray<string>
}

const ENOUGH = 1_000_000_000
/** Until the compilers have seen everything, nothing is measured. */
const WARM_UP_S = 20
const TICKS_A_SECOND = 100
/** The types that are sent at once; intents of external calls would be, too, and there are none here. */
const VISIBLE = ["UserMsg", "ModelOutput", "AgentMessage", "CoreStarted", "CoreStopped", "Cancelled"]

const startModel = Effect.gen(function* () {
  const listening = yield* Deferred.make<string>()
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => fork(join(import.meta.dirname, "model.ts"))),
    (running) => Effect.sync(() => running.kill())
  )
  const refusals: Array<string> = []
  child.on("message", (message) => {
    const told = message as { readonly url: string } | { readonly refused: string }
    if ("url" in told) Deferred.doneUnsafe(listening, Effect.succeed(told.url))
    else refusals.push(`the model refused a request: ${told.refused}`)
  })
  return {
    url: yield* Deferred.await(listening),
    refusals,
    tell: (order: Order) => Effect.sync(() => void child.send(order))
  }
})

/** CPU time in seconds and resident memory in MiB of a process; nothing when it has ended. */
const usage = (pid: number) => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    const kib = Number(/^VmRSS:\s+(\d+) kB/mu.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1])
    return { cpu_s: (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND, rss_mib: kib / 1024 }
  } catch {
    return { cpu_s: 0, rss_mib: 0 }
  }
}

/** Lines of the logs that say ERROR. */
const loggedErrors = (home: string): ReadonlyArray<string> =>
  readdirSync(join(home, "logs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".log"))
    .flatMap((name) => readFileSync(join(home, "logs", name), "utf8").split("\n"))
    .filter((line) => /"level":"(ERROR|FATAL)"/iu.test(line))

/** A folder for what all agents share, and a workspace for each. */
const makeFolders = Effect.fnUntraced(function* (ids: ReadonlyArray<AgentId>) {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-load-"))),
    (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
  )
  yield* createRepo(join(folder, "agent"), join(ROOT, "docker/agent-starter"))
  for (const id of ids) {
    mkdirSync(join(folder, id))
    for (let file = 0; file < FILES; file++) writeFileSync(join(folder, id, `${file}.txt`), `${file}\n`.repeat(100))
  }
  return folder
}, Effect.provide(NodeServices.layer))

const configOf = (ids: ReadonlyArray<AgentId>, folder: string) => {
  const each = <A>(value: (id: AgentId) => A) => Object.fromEntries(ids.map((id) => [id, value(id)]))
  return {
    workspaces: each((id) => ({ path: join(folder, id) })),
    dms: each((id) => ({ gateway: "terminal", user_id: id, admin: true })),
    agents: each((id) => ({
      repo: { url: join(folder, "agent") },
      defaults: { workspace: id, llm: "test", dm: id }
    })),
    budgets: {
      total_session_tokens: ENOUGH,
      max_tool_calls_per_session: ENOUGH,
      per_job_max_steps: ENOUGH,
      per_job_max_tool_calls: ENOUGH
    }
  }
}

const hasFailed = (event: ChoirEvent): boolean =>
  event.event_type === "ToolResultCommitted"
    ? event.payload.status !== "success"
    : event.event_type === "ModelOutput" && event.payload.error !== undefined

/** Events of the window, as the database knows when it committed them. */
const measured = (host: string, from_ms: number, until_ms: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const sql = yield* PgClient.makeClient({ host, port: 5432, username: "choir", database: "postgres" })
      const [row] = yield* sql<{
        readonly events: number
        readonly visible: number
        readonly p50: number
        readonly p99: number
      }>`WITH stored AS (
          SELECT event_type, extract(epoch FROM created_at::timestamptz) * 1000 AS at_ms,
            extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000 AS stored_ms
          FROM choir_control.session_events
        ), seen AS (
          SELECT *, event_type = ANY(${VISIBLE}) AS visible FROM stored WHERE at_ms >= ${from_ms} AND at_ms < ${until_ms}
        )
        SELECT count(*)::int AS events, count(*) FILTER (WHERE visible)::int AS visible,
          (percentile_cont(0.5) WITHIN GROUP (ORDER BY stored_ms - at_ms) FILTER (WHERE visible))::float8 AS p50,
          (percentile_cont(0.99) WITHIN GROUP (ORDER BY stored_ms - at_ms) FILTER (WHERE visible))::float8 AS p99
        FROM seen`
      const outcomes = yield* sql<EventRow>`SELECT ${sql.literal(EVENT_COLUMNS)} FROM choir_control.session_events
        WHERE event_type IN ('ToolResultCommitted', 'ModelOutput')
          AND extract(epoch FROM created_at::timestamptz) * 1000 BETWEEN ${from_ms} AND ${until_ms}`
      const failed = outcomes.filter((stored) =>
        hasFailed(Result.getOrThrow(Result.flatMap(Result.mapError(readRow(stored), String), eventOf)))
      ).length
      const epochs = yield* sql<{ readonly agent_id: string }>`SELECT agent_id FROM choir_control.sessions
        WHERE epoch > 1 OR frozen_reason IS NOT NULL OR status <> 'active'`
      return {
        row: row === undefined ? undefined : { ...row, failed },
        broken: epochs.map(({ agent_id }) => `${agent_id} crashed, froze or ended`)
      }
    })
  ).pipe(Effect.provide(Reactivity.layer))

/** Starts everything, waits until it runs evenly, measures, and ends it. */
export const load = Effect.fnUntraced(function* ({ agents, jobs, minutes, rate }: LoadOptions) {
  const ids = Array.from({ length: agents }, (_, index) => AgentId.make(`a${index + 1}`))
  const server = yield* Effect.acquireRelease(
    Effect.promise(() => startPostgres({ vector: true, settings: ["track_commit_timestamp=on"] })),
    ({ stop }) => Effect.promise(stop)
  )
  const model = yield* startModel
  const folder = yield* makeFolders(ids)
  const url = `postgres://${server.user}@${encodeURIComponent(server.host)}:${server.port}/postgres`
  const choir = yield* makeInstallation({
    endpoint: model.url,
    postgres: { url_secret: "postgres-url" },
    secrets: { "postgres-url": url },
    config: configOf(ids, folder)
  })
  const choird = yield* choir.start
  for (const id of ids) {
    const params = { id }
    yield* Stream.runDrain(Stream.unwrap(choir.api.agents.build({ params, payload: {} })))
    yield* choir.api.agents.start({ params, payload: {} })
    yield* choir.api.chat.send({ params, payload: { client_id: id, text: `load:${jobs}` } })
  }
  yield* model.tell({ steps_per_second: rate / EVENTS_A_STEP })
  yield* Effect.sleep(`${WARM_UP_S} seconds`)
  const from_ms = performance.timeOrigin + performance.now()
  const before = usage(choird.pid)
  let choird_rss_mib = 0
  let agents_rss_mib = 0
  const sample = Effect.sync(() => {
    choird_rss_mib = Math.max(choird_rss_mib, usage(choird.pid).rss_mib)
    const all = agentsBelow(choird.pid).reduce((total, pid) => total + usage(pid).rss_mib, 0)
    agents_rss_mib = Math.max(agents_rss_mib, all)
  })
  yield* Effect.repeat(sample, Schedule.spaced("10 seconds")).pipe(Effect.timeoutOption(minutes * 60_000))
  const until_ms = performance.timeOrigin + performance.now()
  const seconds = (until_ms - from_ms) / 1000
  const cpu_s = usage(choird.pid).cpu_s - before.cpu_s
  const running = agentsBelow(choird.pid).length
  // The newest events are not acknowledged yet; what comes later does not belong to the window.
  yield* Effect.sleep("10 seconds")
  const { broken, row } = yield* measured(server.host, from_ms, until_ms)
  yield* model.tell({ end: true })
  const report: LoadReport = {
    events_per_second: (row?.events ?? 0) / seconds,
    p50_ms: row?.p50 ?? Number.NaN,
    p99_ms: row?.p99 ?? Number.NaN,
    visible: row?.visible ?? 0,
    choird_cpu_percent: (100 * cpu_s) / seconds,
    choird_rss_mib,
    agents_rss_mib,
    errors: [
      ...broken,
      ...(running === agents ? [] : [`${running} of ${agents} agents run`]),
      ...((row?.failed ?? 0) === 0 ? [] : [`${row?.failed} calls or answers failed`]),
      ...model.refusals,
      ...loggedErrors(choir.home)
    ]
  }
  return report
}, Effect.scoped)
