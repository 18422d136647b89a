/**
 * Applies the retention of config.json to everything that grows (docs/retention.md): in small steps all the time, and at once when an
 * operator asks for it.
 */
import { join } from "node:path"
import { Clock, Context, Effect, Layer, Schedule, type Scope, Semaphore } from "effect"
import { SqlClient } from "effect/sql"
import type { Config } from "#schema/Config.ts"
import type { Pruned, PruneReport } from "#schema/SystemApi.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Database } from "#src/choird/database/Database.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import { count } from "#src/choird/logs/metrics.ts"
import { Disk } from "./DiskGuard.ts"
import { dueForArchive, dueForDeletion, RULES } from "./rules.ts"
import { type Kind, TABLES } from "./growth.ts"
import { PRUNE_PAUSE_MS, PRUNE_STEPS_MAX, RETENTION_LOOK_MS, SESSIONS_LOOK_MAX } from "./limits.ts"
import { makePruneRows } from "./pruneRows.ts"
import { SessionArchives } from "./SessionArchives.ts"
import { removeFolder, unusedFolders } from "./unusedFolders.ts"

/** How far one run goes. */
interface Reach {
  readonly dry_run: boolean
  /** Whether it goes on until nothing is due. */
  readonly all: boolean
  readonly who: string
}

/** Hears of each kind as its turn comes. */
type Step = (text: string) => Effect.Effect<void>

export interface PruneOptions {
  readonly dry_run: boolean
  readonly who: string
  readonly step?: Step
}

export class Retention extends Context.Service<
  Retention,
  {
    /** Removes all that is due, or with `dry_run` counts it. One run at a time. */
    prune(options: PruneOptions): Effect.Effect<PruneReport>
    /** Looks for what is due, now and every RETENTION_LOOK_MS, until the scope closes. Each look is bounded. */
    readonly run: Effect.Effect<void, never, Scope.Scope>
  }
>()("choir/choird/Retention") {
  static readonly layer = Layer.effect(
    Retention,
    Effect.suspend(() => make)
  )
}

const NAMES = Object.keys(TABLES)
const DRY_SESSIONS_MAX = 1_000_000
/** Sessions after which a run says how far it is. */
const SESSIONS_STEP = 20

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const archives = yield* SessionArchives
  const audit = yield* Audit
  const config = yield* ConfigStore
  const database = yield* Database
  const disk = yield* Disk
  const logs = yield* LogFiles
  const one = yield* Semaphore.make(1)
  let looks = 0

  const totalOf = (kind: Kind, sessions: ReadonlyArray<{ readonly bytes: number }>): Pruned => ({
    kind,
    removed: sessions.length,
    ...(kind === "archives" ? { bytes: sessions.reduce((sum, { bytes }) => sum + bytes, 0) } : {})
  })

  /** One session after the other. One that cannot go now is passed over and is due again at the next look. */
  const sessions = Effect.fnUntraced(function* (
    kind: "sessions" | "archives",
    running: Config,
    reach: Reach,
    now_ms: number,
    step: Step
  ) {
    const due = kind === "sessions" ? dueForArchive : dueForDeletion
    const look = (limit: number) => Effect.orDie(due(sql, running.retention, now_ms, limit))
    if (reach.dry_run) return totalOf(kind, yield* look(DRY_SESSIONS_MAX))
    const gone: Array<{ readonly bytes: number }> = []
    for (;;) {
      const found = yield* look(SESSIONS_LOOK_MAX)
      const before = gone.length
      for (const each of found) {
        const work =
          kind === "sessions"
            ? Effect.asVoid(archives.archive(each.session_id, "choird"))
            : Effect.asVoid(archives.remove(each.session_id, "choird"))
        const done = yield* Effect.result(work)
        if (done._tag === "Success") gone.push(each)
        else yield* Effect.logWarning(`the session ${each.session_id} stays for now: ${done.failure.message}`)
        // A connection on which nothing comes for minutes is taken for broken.
        if (gone.length % SESSIONS_STEP === 0) yield* step(`${kind}: ${gone.length}`)
        yield* Effect.sleep(PRUNE_PAUSE_MS)
      }
      if (!reach.all || found.length < SESSIONS_LOOK_MAX || gone.length === before) return totalOf(kind, gone)
    }
  })

  const folders = Effect.fnUntraced(function* (
    kind: "clones" | "images",
    running: Config,
    reach: Reach,
    now_ms: number
  ) {
    const days = running.retention.unused_days
    const folder = kind === "clones" ? join(config.home, "repos", "agents") : join(config.home, "images")
    const unused = days === null ? [] : yield* unusedFolders(folder, running, days, now_ms)
    if (reach.dry_run) return { kind, removed: unused.length }
    const gone = yield* Effect.forEach(unused, removeFolder)
    return { kind, removed: gone.filter(Boolean).length }
  })

  /** The embedded database has nobody else who makes the room of removed rows free again, or keeps its log short. */
  const tidy = Effect.fnUntraced(function* (tables: ReadonlySet<string>) {
    if (database.kind !== "embedded") return
    for (const table of tables) {
      yield* sql.unsafe(`VACUUM choir_control.${table}`)
      yield* Effect.sleep(PRUNE_PAUSE_MS)
    }
    yield* sql.unsafe("CHECKPOINT")
  })

  const once = Effect.fnUntraced(function* (reach: Reach, step: Step) {
    const now_ms = yield* Clock.currentTimeMillis
    const { config: running } = yield* config.current
    const rows = makePruneRows(sql, running.retention, now_ms)
    const report: Array<Pruned> = []
    const touched = new Set<string>()
    if (!reach.dry_run && (yield* archives.finish) > 0) touched.add("session_events")
    for (const kind of ["sessions", "archives"] as const) {
      yield* step(kind)
      const pruned = yield* sessions(kind, running, reach, now_ms, step)
      report.push(pruned)
      if (pruned.removed > 0) for (const table of ["session_events", "sessions", "signals"]) touched.add(table)
    }
    for (const rule of RULES) {
      yield* step(rule.kind)
      const steps_max = reach.all ? Number.POSITIVE_INFINITY : PRUNE_STEPS_MAX
      const removed = yield* Effect.orDie(reach.dry_run ? rows.count(rule) : rows.remove(rule, steps_max))
      report.push({ kind: rule.kind, removed })
      if (removed > 0) touched.add(rule.table)
    }
    yield* step("logs")
    report.push({ kind: "logs", ...(yield* logs.trim(reach.dry_run)) })
    for (const kind of ["clones", "images"] as const) report.push(yield* folders(kind, running, reach, now_ms))
    if (!reach.dry_run) {
      // Rows that are only updated leave room behind, too: each look takes another table.
      touched.add(NAMES[looks % NAMES.length] ?? "sessions")
      looks += 1
      yield* Effect.orDie(tidy(touched))
      yield* told(report, reach.who)
    }
    return report
  })

  const told = Effect.fnUntraced(function* (report: ReadonlyArray<Pruned>, who: string) {
    const gone = report.filter(({ removed }) => removed > 0)
    for (const { kind, removed } of gone) yield* count("pruned", { kind }, removed)
    if (gone.length === 0 && who === "choird") return
    const detail = Object.fromEntries(gone.map(({ kind, removed }) => [kind, removed]))
    yield* audit.record({ who, action: "prune", detail })
    if (gone.length > 0) yield* Effect.logInfo("pruned what is older than config.json keeps it", detail)
  })

  return Retention.of({
    prune: Effect.fn("Retention.prune")(function* ({ dry_run, step = () => Effect.void, who }) {
      const kinds = yield* one.withPermit(once({ dry_run, all: true, who }, step))
      const space = yield* disk.space(config.home)
      return { dry_run, kinds, disk_free_bytes: space?.free_bytes ?? null }
    }),
    run: one.withPermit(once({ dry_run: false, all: false, who: "choird" }, () => Effect.void)).pipe(
      // A database that is away has the same rows when it is back.
      Effect.catchCause((cause) => Effect.logWarning("what is too old stays for now", cause)),
      Effect.repeat(Schedule.spaced(RETENTION_LOOK_MS)),
      Effect.forkScoped,
      Effect.asVoid
    )
  })
})
