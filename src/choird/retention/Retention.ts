/**
 * Applies the retention of config.json to everything that grows (docs/retention.md): in small steps all the time, and at once when an
 * operator asks for it.
 */
import { lstat, readdir, rm } from "node:fs/promises"
import { join } from "node:path"
import { Clock, Context, Effect, Layer, Schedule, Schema, type Scope, Semaphore } from "effect"
import { SqlClient } from "effect/sql"
import type { Config } from "#schema/Config.ts"
import { AgentId } from "#schema/Ids.ts"
import type { Pruned, PruneReport } from "#schema/SystemApi.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Database } from "#src/choird/database/Database.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import { count } from "#src/choird/logs/metrics.ts"
import { Disk } from "./DiskGuard.ts"
import { type Kind, TABLES } from "./growth.ts"
import { countDue, dueForArchive, dueForDeletion, type Moment, PRUNE_PAUSE_MS, removeDue, RULES } from "./rules.ts"
import { SessionArchives } from "./SessionArchives.ts"

/** How far one run goes. */
interface Reach {
  readonly dry_run: boolean
  /** Whether it continues until nothing is due. */
  readonly all: boolean
  readonly who: string
  readonly step: Step
}

/** A run with the configuration and the time at its start. */
interface Run extends Reach, Moment {
  readonly config: Config
}

/** Receives each kind as its turn comes. */
type Step = (text: string) => Effect.Effect<void>

/** The time between two looks for old rows and files. */
const RETENTION_LOOK_MS = 600_000
/** Statements of one kind in one look of the background job. The others wait for the next look. */
const PRUNE_STEPS_MAX = 40

const NAMES = Object.keys(TABLES)

export interface PruneOptions {
  readonly dry_run: boolean
  readonly who: string
  readonly step?: Step
}

export class Retention extends Context.Service<
  Retention,
  {
    /** Removes all that is due, or with `dry_run` counts it. One run at a time. */
    prune(options: PruneOptions): Effect.Effect<PruneReport, DatabaseAway>
    /** Looks for what is due, now and every RETENTION_LOOK_MS, until the scope closes. Each look is bounded. */
    readonly run: Effect.Effect<void, never, Scope.Scope>
  }
>()("choir/choird/Retention") {
  static readonly layer = Layer.effect(
    Retention,
    Effect.suspend(() => make)
  )
}

const DRY_SESSIONS_MAX = 1_000_000
/** Sessions that one look archives, and that it deletes. */
const SESSIONS_LOOK_MAX = 200
/** Sessions after which a run says how far it is. */
const SESSIONS_STEP = 20

const make = Effect.gen(function* () {
  const context = yield* Effect.context<
    Audit | ConfigStore | Database | LogFiles | SessionArchives | SqlClient.SqlClient
  >()
  const { home } = yield* ConfigStore
  const disk = yield* Disk
  const onDatabase = yield* useDatabase
  const one = yield* Semaphore.make(1)
  let looks = 0
  const pruneOnce = (reach: Reach) =>
    one.withPermit(
      Effect.suspend(() => prune(reach, reach.dry_run ? looks : looks++)).pipe(
        onDatabase,
        Effect.provideContext(context)
      )
    )
  return Retention.of({
    prune: Effect.fn("Retention.prune")(function* ({ dry_run, step = () => Effect.void, who }) {
      const kinds = yield* pruneOnce({ dry_run, all: true, who, step })
      const space = yield* disk.space(home)
      return { dry_run, kinds, disk_free_bytes: space?.free_bytes ?? null }
    }),
    run: pruneOnce({ dry_run: false, all: false, who: "choird", step: () => Effect.void }).pipe(
      // A database that is away has the same rows when it is back.
      Effect.catchCause((cause) =>
        Effect.logWarning("pruning old rows and files failed; choird tries again later", cause)
      ),
      Effect.repeat(Schedule.spaced(RETENTION_LOOK_MS)),
      Effect.forkScoped,
      Effect.asVoid
    )
  })
})

/** One run over everything that grows. `look` numbers the runs. */
const prune = Effect.fnUntraced(function* (reach: Reach, look: number) {
  const archives = yield* SessionArchives
  const logs = yield* LogFiles
  const { config } = yield* (yield* ConfigStore).current
  const run: Run = { ...reach, config, now_ms: yield* Clock.currentTimeMillis }
  const report: Array<Pruned> = []
  const touched = new Set<string>()
  if (!run.dry_run && (yield* archives.finish) > 0) touched.add("session_events")
  for (const kind of ["sessions", "archives"] as const) {
    yield* run.step(kind)
    const pruned = yield* pruneSessions(kind, run)
    report.push(pruned)
    if (pruned.removed > 0) for (const table of ["session_events", "sessions", "signals"]) touched.add(table)
  }
  for (const rule of RULES) {
    yield* run.step(rule.kind)
    const steps_max = run.all ? Number.POSITIVE_INFINITY : PRUNE_STEPS_MAX
    const removed = yield* run.dry_run ? countDue(rule, run) : removeDue(rule, run, steps_max)
    report.push({ kind: rule.kind, removed })
    if (removed > 0) touched.add(rule.table)
  }
  yield* run.step("logs")
  report.push({ kind: "logs", ...(yield* logs.trim(run.dry_run)) })
  for (const kind of ["clones", "images"] as const) report.push(yield* pruneFolders(kind, run))
  if (!run.dry_run) {
    // Rows that are only updated leave room behind, too: each look takes another table.
    touched.add(NAMES[look % NAMES.length] ?? "sessions")
    yield* tidy(touched)
    yield* record(report, run.who)
  }
  return report
})

const totalOf = (kind: Kind, sessions: ReadonlyArray<{ readonly bytes: number }>): Pruned => ({
  kind,
  removed: sessions.length,
  ...(kind === "archives" ? { bytes: sessions.reduce((sum, { bytes }) => sum + bytes, 0) } : {})
})

/** Archives or deletes sessions, one after the other. One that cannot go now is passed over and is due again at the next look. */
const pruneSessions = Effect.fnUntraced(function* (kind: "sessions" | "archives", run: Run) {
  const archives = yield* SessionArchives
  const look = (limit: number) =>
    kind === "sessions" ? dueForArchive(run, limit) : dueForDeletion(run.config.retention, run.now_ms, limit)
  if (run.dry_run) return totalOf(kind, yield* look(DRY_SESSIONS_MAX))
  const gone: Array<{ readonly bytes: number }> = []
  for (;;) {
    const found = yield* look(SESSIONS_LOOK_MAX)
    const before = gone.length
    for (const each of found) {
      const { session_id } = each
      const work =
        kind === "sessions"
          ? Effect.asVoid(archives.archive(session_id, "choird"))
          : Effect.asVoid(archives.remove(session_id, "choird"))
      const left = yield* Effect.as(work, true).pipe(
        Effect.catchTag("SessionKept", ({ message }) =>
          Effect.as(
            Effect.logWarning(
              `the session ${session_id} was not ${kind === "sessions" ? "archived" : "deleted"}; choird tries again later: ${message}`
            ),
            false
          )
        )
      )
      if (left) gone.push(each)
      // A connection on which nothing comes for minutes is taken for broken.
      if (gone.length % SESSIONS_STEP === 0) yield* run.step(`${kind}: ${gone.length}`)
      yield* Effect.sleep(PRUNE_PAUSE_MS)
    }
    if (!run.all || found.length < SESSIONS_LOOK_MAX || gone.length === before) return totalOf(kind, gone)
  }
})

const isAgent = Schema.is(AgentId)
const DAY_MS = 86_400_000

/** Folders below one of the home's whose agent is not configured, and that were not written to for some days. */
const unusedFolders = (folder: string, { agents }: Config, days: number, now_ms: number) =>
  Effect.promise(async () => {
    const names = await readdir(folder).catch(() => [])
    const unused: Array<string> = []
    for (const name of names) {
      // The sandbox's copy of Node has the form of an agent's name.
      if (!isAgent(name) || Object.hasOwn(agents, name) || name === "node") continue
      const stat = await lstat(join(folder, name)).catch(() => undefined)
      if (stat?.isDirectory() === true && stat.mtimeMs < now_ms - days * DAY_MS) unused.push(join(folder, name))
    }
    return unused
  })

/** Whether the folder is gone. */
const removeFolder = (path: string) =>
  Effect.promise(() =>
    rm(path, { recursive: true, force: true }).then(
      () => true,
      () => false
    )
  )

/** Removes clones and images of agents that config.json no longer has. Both are made again when they are needed. */
const pruneFolders = Effect.fnUntraced(function* (kind: "clones" | "images", { config, dry_run, now_ms }: Run) {
  const { home } = yield* ConfigStore
  const { unused_days } = config.retention
  const folder = kind === "clones" ? join(home, "repos", "agents") : join(home, "images")
  const unused = unused_days === null ? [] : yield* unusedFolders(folder, config, unused_days, now_ms)
  if (dry_run) return { kind, removed: unused.length }
  const gone = yield* Effect.forEach(unused, removeFolder)
  return { kind, removed: gone.filter(Boolean).length }
})

/** Makes the room of removed rows free again and keeps the log short; nothing else does so for the embedded database. */
const tidy = Effect.fnUntraced(function* (tables: ReadonlySet<string>) {
  const sql = yield* SqlClient.SqlClient
  if ((yield* Database).kind !== "embedded") return
  for (const table of tables) {
    yield* sql.unsafe(`VACUUM choir_control.${table}`)
    yield* Effect.sleep(PRUNE_PAUSE_MS)
  }
  yield* sql.unsafe("CHECKPOINT")
})

const record = Effect.fnUntraced(function* (report: ReadonlyArray<Pruned>, who: string) {
  const gone = report.filter(({ removed }) => removed > 0)
  for (const { kind, removed } of gone) yield* count("pruned", { kind }, removed)
  if (gone.length === 0 && who === "choird") return
  const detail = Object.fromEntries(gone.map(({ kind, removed }) => [kind, removed]))
  yield* (yield* Audit).record({ who, action: "prune", detail })
  if (gone.length > 0) yield* Effect.logInfo("pruned old rows and files", detail)
})
