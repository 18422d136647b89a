/**
 * Applies the retention of config.json to everything that grows (docs/retention.md): in small steps all the time, and at once when an
 * operator asks for it.
 */
import { Clock, Context, Effect, Layer, Schedule, type Scope, Semaphore } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import type { Config } from "#schema/Config.ts"
import type { Pruned, PruneReport } from "#schema/SystemApi.ts"
import { restarted } from "#src/shared/background.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Database } from "#src/choird/database/Database.ts"
import { DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { sqlProblem } from "#src/choird/database/sqlState.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import { count } from "#src/choird/logs/metrics.ts"
import { defectWords, logDefect } from "#src/shared/defects.ts"
import { Disk } from "./Disk.ts"
import { type Kind, TABLES } from "./growth.ts"
import { countDue, dueForArchive, dueForDeletion, type Moment, PRUNE_PAUSE_MS, removeDue, RULES } from "./rules.ts"
import { SessionArchives } from "./SessionArchives.ts"
import { pruneFolders } from "./unusedFolders.ts"

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
    /** Removes all that is due, or with `dry_run` counts it. One run at a time. A kind that fails leaves the others alone. */
    prune(options: PruneOptions): Effect.Effect<PruneReport, DatabaseAway>
    /** Looks for what is due, now and every RETENTION_LOOK_MS, until the scope closes. Each look is bounded. */
    readonly run: Effect.Effect<void, never, Scope.Scope>
    /** The kinds that the newest run could not remove, and why. */
    readonly problems: Effect.Effect<ReadonlyArray<string>>
  }
>()("choir/choird/Retention") {
  static readonly layer = Layer.effect(
    Retention,
    Effect.suspend(() => make)
  )
}

/** The end of a run in a report, which is there only where it failed. */
const TIDYING = "room of removed rows"
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
  let problems: ReadonlyArray<string> = []
  const pruneOnce = (reach: Reach) =>
    one.withPermit(
      Effect.suspend(() => prune(reach, reach.dry_run ? looks : looks++)).pipe(
        onDatabase,
        Effect.tap((report) => Effect.sync(() => void (problems = reach.dry_run ? problems : problemsIn(report)))),
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
      restarted("the pruning of old rows and files"),
      Effect.forkScoped,
      Effect.asVoid
    ),
    problems: Effect.sync(() => problems)
  })
})

const problemsIn = (report: ReadonlyArray<Pruned>): ReadonlyArray<string> =>
  report.flatMap(({ kind, problem }) => (problem === undefined ? [] : [`${kind}: ${problem}`]))

/** The reason of a defect for the operator, whose log has it in full. */
const problemOf = (what: string, defect: unknown) =>
  defect instanceof DatabaseAway
    ? Effect.fail(defect)
    : Effect.map(logDefect(what, defect), (ref) =>
        defectWords(SqlError.isSqlError(defect) ? sqlProblem(defect) : "an unexpected error", ref)
      )

/** Prunes one kind by itself: where that fails, the report says why, and the run continues. A database that is away ends the run. */
const alone = Effect.fnUntraced(function* <E, R>(kind: string, work: Effect.Effect<Pruned, E, R>) {
  const onDatabase = yield* useDatabase
  return yield* onDatabase(work).pipe(
    Effect.catchDefect((defect) =>
      Effect.map(problemOf(`pruning ${kind} failed`, defect), (problem): Pruned => ({ kind, removed: 0, problem }))
    )
  )
})

/** One run over everything that grows. `look` numbers the runs. */
const prune = Effect.fnUntraced(function* (reach: Reach, look: number) {
  const archives = yield* SessionArchives
  const logs = yield* LogFiles
  const { config } = yield* (yield* ConfigStore).current
  const run: Run = { ...reach, config, now_ms: yield* Clock.currentTimeMillis }
  const report: Array<Pruned> = []
  const touched = new Set<string>()
  /** One kind in its turn, and the tables that it leaves room in where it removed something. */
  const take = Effect.fnUntraced(function* <E, R>(
    kind: Kind,
    tables: ReadonlyArray<string>,
    work: Effect.Effect<Pruned, E, R>
  ) {
    yield* run.step(kind)
    const pruned = yield* alone(kind, work)
    report.push(pruned)
    if (pruned.removed > 0) for (const table of tables) touched.add(table)
  })
  if (!run.dry_run) {
    const cut = yield* alone(
      "sessions",
      Effect.map(archives.finish, (removed) => ({ kind: "sessions", removed }))
    )
    if (cut.problem !== undefined)
      report.push({ ...cut, problem: `some earlier removals could not be finished: ${cut.problem}` })
    if (cut.removed > 0) touched.add("session_events")
  }
  for (const kind of ["sessions", "archives"] as const)
    yield* take(kind, ["session_events", "sessions", "signals"], pruneSessions(kind, run))
  for (const rule of RULES) {
    const steps_max = run.all ? Number.POSITIVE_INFINITY : PRUNE_STEPS_MAX
    const removed = run.dry_run ? countDue(rule, run) : removeDue(rule, run, steps_max)
    yield* take(
      rule.kind,
      [rule.table],
      Effect.map(removed, (removed) => ({ kind: rule.kind, removed }))
    )
  }
  yield* take(
    "logs",
    [],
    Effect.map(logs.trim(run.dry_run), (trimmed) => ({ kind: "logs", ...trimmed }))
  )
  for (const kind of ["clones", "images"] as const) yield* take(kind, [], pruneFolders(kind, run))
  if (!run.dry_run) {
    // Rows that are only updated leave room behind, too: each look takes another table.
    touched.add(NAMES[look % NAMES.length] ?? "sessions")
    const tidied = yield* alone(TIDYING, Effect.as(tidy(touched), { kind: TIDYING, removed: 0 }))
    if (tidied.problem !== undefined) report.push(tidied)
    yield* record(report, run.who)
  }
  return report
})

const totalOf = (kind: Kind, sessions: ReadonlyArray<{ readonly bytes: number }>, problem?: string): Pruned => ({
  kind,
  removed: sessions.length,
  ...(kind === "archives" ? { bytes: sessions.reduce((sum, { bytes }) => sum + bytes, 0) } : {}),
  ...(problem === undefined ? {} : { problem })
})

/** Archives or deletes sessions, one after the other. One that cannot go now is passed over and is due again at the next look. */
const pruneSessions = Effect.fnUntraced(function* (kind: "sessions" | "archives", run: Run) {
  const archives = yield* SessionArchives
  const look = (limit: number) =>
    kind === "sessions" ? dueForArchive(run, limit) : dueForDeletion(run.config.retention, run.now_ms, limit)
  if (run.dry_run) return totalOf(kind, yield* look(DRY_SESSIONS_MAX))
  const gone: Array<{ readonly bytes: number }> = []
  let problem: string | undefined
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
        ),
        // A session that cannot go must not keep the others.
        Effect.catchDefect((defect) =>
          Effect.map(problemOf(`pruning the session ${session_id} failed`, defect), (why) => {
            problem ??= `${session_id}: ${why}`
            return false
          })
        )
      )
      if (left) gone.push(each)
      // A connection on which nothing comes for minutes is taken for broken.
      if (gone.length % SESSIONS_STEP === 0) yield* run.step(`${kind}: ${gone.length}`)
      yield* Effect.sleep(PRUNE_PAUSE_MS)
    }
    if (!run.all || found.length < SESSIONS_LOOK_MAX || gone.length === before) return totalOf(kind, gone, problem)
  }
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
