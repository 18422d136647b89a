/**
 * A choird whose days pass in seconds: all of its own services over a real database, real repositories and a Telegram double, on a clock
 * that a test moves. What the database dated by its own clock is dated back at the end of each day.
 */
import { mkdirSync, readdirSync, readFileSync, statSync, utimesSync } from "node:fs"
import { join } from "node:path"
import { Clock, Context, Effect, Layer, Logger, References, Schedule, Stream } from "effect"
import { HttpApiClient } from "effect/http-api"
import { SqlClient } from "effect/sql"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { layerOperatorServer } from "#src/choird/api/operator/OperatorServer.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Backup } from "#src/choird/database/Backup.ts"
import { layerGateways } from "#src/choird/channels.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import { Executions } from "#src/choird/proposals/Executions.ts"
import { FOLDERS } from "#src/choird/retention/growth.ts"
import { layerSocketClient } from "#src/shared/wire/sockets.ts"
import { layerLife, makeHomeFolder } from "../../support/choird.ts"
import { makeGitRepo, temporaryFolder } from "../../support/gitRepo.ts"
import { GLOBAL_FILES } from "../../support/images.ts"
import { makeProvider, offlineModel } from "../../support/testing/Provider.ts"
import { makeTelegram } from "../../support/testing/Telegram.ts"

const DAY_MS = 86_400_000
/** People with a Telegram chat: a bot writes to each at most once a second. */
const PHONES = 8
const TOKEN = "1000:month"
const HOME_FOLDERS = Object.keys(FOLDERS).filter((name) => name !== "sources" && name !== "workspaces")

export const DESK = ResourceName.make("desk")
/** A DM that leaves config.json with a message that nobody read. */
export const OLD = ResourceName.make("old")
/** A console's DM that nobody opens. */
export const ATTIC = ResourceName.make("attic")
export const phone = (index: number) => ResourceName.make(`phone-${index % PHONES}`)
export const userOf = (index: number) => 1 + (index % PHONES)

/** Agents of which a test plays the agent's side. */
export const TALKERS = ["ada", "ben", "cleo"].map((id) => AgentId.make(id))
/** An agent that answers at a phone. */
export const MOBILE = AgentId.make("mobile")
/** An agent that proposes changes of its own repository and of config.json. */
export const BUILDER = AgentId.make("builder")
/** An agent that leaves config.json. */
export const LEAVER = AgentId.make("leaver")

const often = Schedule.max([Schedule.spaced("50 millis"), Schedule.recurs(1200)])
/** Looks again until it holds, for a minute at most. */
export const until = <E, R>(what: string, holds: Effect.Effect<boolean, E, R>) =>
  Effect.flatMap(holds, (yes) => (yes ? Effect.void : Effect.fail(`not yet: ${what}`))).pipe(
    Effect.retry(often),
    Effect.orDie
  )

/** The time of day is the real one, some days ago. */
const makeCalendar = (days: number) => {
  let ago = days
  const real = Effect.runSync(Clock.Clock)
  const now_ms = () => real.currentTimeMillisUnsafe() - ago * DAY_MS
  const clock: Clock.Clock = Object.create(real, {
    currentTimeMillis: { value: Effect.sync(now_ms) },
    currentTimeMillisUnsafe: { value: now_ms }
  })
  return { clock, ago: () => ago, pass: (more: number) => void (ago -= more) }
}

const makeConfig =
  (places: {
    readonly agent: string
    readonly api_root: string
    readonly endpoint: string
    readonly global: string
    readonly retention: object
  }) =>
  (resident: AgentId, config: Readonly<Record<string, unknown>>) => {
    const repo = { url: places.agent, ref: "main" }
    const agent = (dm: string, workspace = "main") => ({
      repo,
      defaults: { workspace, llm: "small", dm }
    })
    const builder = { repo, defaults: { ...agent(DESK).defaults, git_identity: "robot" } }
    const phones = Array.from({ length: PHONES }, (_, index) => [
      phone(index),
      { gateway: "bot", user_id: String(userOf(index)) }
    ])
    return {
      ...config,
      global_repo: { url: places.global, ref: "main" },
      models: { small: { provider: "test", model: "offline-model", endpoint: places.endpoint, temperature: 0 } },
      gateways: {
        terminal: { type: "console" },
        bot: { type: "telegram", secret: "bot-token", api_root: places.api_root }
      },
      dms: {
        desk: { gateway: "terminal", user_id: "local", admin: true },
        old: { gateway: "terminal", user_id: "old" },
        [ATTIC]: { gateway: "terminal", user_id: "attic" },
        ...Object.fromEntries(phones)
      },
      git_identities: { robot: { name: "Robot", email: "robot@example.org", secret: "git-key" } },
      agents: {
        [resident]: agent(DESK),
        [MOBILE]: agent(phone(0), "spare"),
        [BUILDER]: builder,
        ...Object.fromEntries([...TALKERS, LEAVER].map((id) => [id, agent(DESK)]))
      },
      retention: places.retention,
      log_archive_threshold_lines: 100,
      // Busy machines are not what this is about.
      heartbeat_interval_ms: 500,
      crash_detection_threshold_ms: 30_000
    }
  }

/** Dates back every instant that the database took from its own clock in the last hours. */
const datedBack = Effect.fnUntraced(function* (days: number) {
  const sql = yield* SqlClient.SqlClient
  const columns = yield* sql<{ readonly name: string; readonly columns: ReadonlyArray<string> }>`
    SELECT table_name AS name, array_agg(column_name::text) AS columns FROM information_schema.columns
    WHERE table_schema = 'choir_control' AND data_type = 'timestamp with time zone' GROUP BY table_name`
  for (const { columns: dated, name } of columns)
    for (const column of dated)
      yield* sql`UPDATE ${sql(`choir_control.${name}`)} SET ${sql(column)} = ${sql(column)} - ${days} * interval '1 day'
        WHERE ${sql(column)} > now() - interval '12 hours' AND ${sql(column)} < now() + interval '12 hours'`
})

/** Bytes and files below a folder of a home. */
export const sizeOf = (folder: string) => {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const bytes = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0
  return {
    files: files.length,
    bytes: files.reduce((sum, { name, parentPath }) => sum + bytes(join(parentPath, name)), 0)
  }
}

/** Starts a choird some days ago, with these keys of `retention`. */
export const beginMonth = Effect.fnUntraced(function* (days: number, retention: object) {
  const calendar = makeCalendar(days)
  const root = yield* temporaryFolder
  const global = makeGitRepo(join(root, "global"))
  global.commit(GLOBAL_FILES)
  const agent = makeGitRepo(join(root, "agent"))
  const base = agent.commit({ "README.md": "an agent\n" })
  agent.git(["config", "core.bare", "true"])
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const telegram = yield* makeTelegram
  const places = {
    agent: agent.path,
    api_root: telegram.url,
    endpoint: provider.endpoint,
    global: global.path,
    retention
  }
  const folder = yield* makeHomeFolder(makeConfig(places))
  const { home } = folder
  folder.write("secrets.json", { "bot-token": TOKEN, "git-key": "canary-of-git" })
  for (const name of HOME_FOLDERS) mkdirSync(join(home, name), { recursive: true, mode: 0o700 })

  const onClock = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.provideService(effect, Clock.Clock, calendar.clock)
  const files = yield* onClock(Layer.build(LogFiles.layer(home, undefined)))
  const logs = Context.get(files, LogFiles)
  const logged = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    onClock(effect).pipe(
      Effect.provide(Logger.layer([logs.logger])),
      Effect.provideService(References.MinimumLogLevel, "Info")
    )
  const life = layerOperatorServer("0.1.0").pipe(
    Layer.provide(Backup.layer),
    Layer.provideMerge(layerGateways),
    Layer.provideMerge(layerLife(home, undefined, Layer.succeedContext(files)))
  )
  const services = yield* logged(Layer.build(life))
  const within = <A, E, R>(effect: Effect.Effect<A, E, R>) => logged(Effect.provideContext(effect, services))
  yield* within(
    Effect.gen(function* () {
      const { changes } = yield* ConfigStore
      yield* Stream.runForEach(changes, ({ config: { log_archive_threshold_lines, retention: kept } }) =>
        Effect.andThen(
          logs.archiveAfter(log_archive_threshold_lines),
          logs.keep({ bytes_max: kept.logs_mb * 1024 ** 2, days_max: kept.logs_days })
        )
      ).pipe(Effect.forkScoped({ startImmediately: true }))
      yield* logs.archiving
      yield* (yield* Executions).run
    })
  )
  const client = yield* Layer.build(layerSocketClient(join(home, "socks/choird.sock")))
  const api = yield* Effect.provideContext(HttpApiClient.make(OperatorApi, { baseUrl: "http://choird" }), client)
  const build = (id: AgentId) =>
    Stream.runForEach(Stream.unwrap(api.agents.build({ params: { id }, payload: {} })), (progress) =>
      progress.type === "failed" ? Effect.die(new Error(progress.error.message)) : Effect.void
    )
  return {
    ...folder,
    agent,
    api,
    base,
    bot: telegram.bot(TOKEN),
    build,
    calendar,
    within,
    config: () => JSON.parse(readFileSync(join(home, "config.json"), "utf8")) as Record<string, unknown>,
    /** Dates what the database wrote today to the day that it is for choird. */
    evening: Effect.suspend(() => within(datedBack(calendar.ago()))),
    /** Dates a folder's last change to the day that it is. */
    touched: (path: string) => {
      const at = (Date.now() - calendar.ago() * DAY_MS) / 1000
      utimesSync(join(home, path), at, at)
    }
  }
})
export type Month = Effect.Success<ReturnType<typeof beginMonth>>
