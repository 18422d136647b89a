/** choirctl db: the life of the database. */
import { resolve } from "node:path"
import { Effect, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { choirdAnswers } from "#src/choirctl/client/ask.ts"
import { failed } from "#src/choirctl/terminal/failure.ts"
import { printAdvice, withProgress } from "#src/choirctl/terminal/print.ts"
import { confirm, confirmReplaced, yesFlag } from "#src/choirctl/terminal/questions.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { safeLine } from "#src/choirctl/terminal/text.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { plural } from "#src/shared/text/counts.ts"
import { requireFile, requirePlace } from "#src/choirctl/commands/flags/arguments.ts"

interface MigrationReport {
  readonly running: boolean
  readonly applied: ReadonlyArray<number>
  readonly migration?: number
}

const migratedText = ({ applied, migration, running }: MigrationReport): string => {
  if (running) return "choird is running and migrated its database when it started"
  return applied.length === 0
    ? `the database is up to date (migration ${migration})`
    : `ran migrations ${applied.join(", ")}; the database is at migration ${migration}`
}

interface Copied {
  readonly created_at: string
  readonly sessions: number
  readonly events: number
}

const contents = ({ events, sessions }: Copied) => `${plural(sessions, "session")} with ${plural(events, "event")}`

/** Repeats each time what a backup leaves out, for a person who would otherwise learn it after a loss. */
const backedUpText = (made: Copied & { readonly path: string; readonly bytes: number }): string =>
  [
    `${made.path}: ${contents(made)}, ${bytesText(made.bytes)}, as of ${made.created_at}`,
    "Not included: config.json, secrets.json, repositories, images, logs and the workspaces."
  ].join("\n")

const restoredText = (restored: Copied): string =>
  `restored ${contents(restored)}, as of ${restored.created_at}; choird resumes the active ones when it starts`

/** Whether choird runs on an existing home. */
const choirdRuns = Effect.fnUntraced(function* (home: string) {
  const { requireHome } = yield* Effect.promise(() => import("#src/choirctl/home/homeFiles.ts"))
  yield* requireHome(home)
  return yield* choirdAnswers(home)
})

/** The report of a migration; `applied` are the numbers that were run. */
const Migrated = Schema.Struct({
  kind: Schema.Literals(["embedded", "postgres"]),
  applied: Schema.Array(Schema.Natural),
  migration: Schema.Natural
})

const Restored = Schema.Struct({
  rows: Schema.Natural,
  sessions: Schema.Natural,
  events: Schema.Natural,
  broken: Schema.Array(Schema.Struct({ session_id: Schema.String, reason: Schema.String })),
  created_at: Schema.String,
  migration: Schema.Natural
})

const migrate = Command.make(
  "migrate",
  {},
  Effect.fnUntraced(function* () {
    const { home } = yield* root
    const screen = yield* Screen
    if (yield* choirdRuns(home)) return yield* printAdvice({ ok: true, running: true, applied: [] }, migratedText)
    const { runTask } = yield* Effect.promise(() => import("#src/choirctl/daemon/choirdProgram.ts"))
    const done = yield* runTask(home, ["migrate"], Migrated, screen.note).pipe(withProgress("migrating"))
    yield* printAdvice({ ok: true, running: false, ...done }, migratedText)
  })
).pipe(
  Command.withDescription("Migrate the database to this version of Choir; choird also does this when it starts"),
  Command.withExamples([{ command: "choirctl db migrate" }])
)

const file = Argument.String("file").pipe(
  Argument.withDescription("Backup file"),
  Argument.map((path) => resolve(path))
)

const backup = Command.make(
  "backup",
  { file, yes: yesFlag },
  Effect.fnUntraced(function* ({ file, yes }) {
    const screen = yield* Screen
    const { home } = yield* root
    const { requireHome } = yield* Effect.promise(() => import("#src/choirctl/home/homeFiles.ts"))
    yield* requireHome(home)
    yield* requirePlace(file)
    yield* confirmReplaced(file, yes, "choirctl db backup")
    const { makeBackup } = yield* Effect.promise(() => import("#src/choirctl/backup/backupFile.ts"))
    const { broken, bytes, events, header, rows, sessions } = yield* makeBackup(file)
    for (const { reason, session_id } of broken)
      yield* screen.note(`warning: session ${session_id} does not verify: ${safeLine(reason)}`)
    const { created_at, migration } = header
    yield* printAdvice(
      { ok: true, path: file, bytes, created_at, migration, sessions, events, rows, broken },
      backedUpText
    )
  })
).pipe(
  Command.withDescription("Back up the database to a file, whether choird is running or not"),
  Command.withExamples([{ command: "choirctl db backup /backup/choir.gz" }])
)

const restore = Command.make(
  "restore",
  {
    file,
    force: Flag.Boolean("force").pipe(
      Flag.withDescription("Replace a database that has sessions, and accept sessions that do not verify"),
      Flag.withDefault(false)
    ),
    moved_from: Flag.String("moved-from").pipe(
      Flag.withDescription("Path of the home that was backed up, if it differs; can be repeated"),
      Flag.withMetavar("<folder>"),
      Flag.atLeast(0)
    ),
    yes: yesFlag
  },
  Effect.fnUntraced(function* ({ file, force, moved_from, yes }) {
    const { home } = yield* root
    const screen = yield* Screen
    if (yield* choirdRuns(home))
      return yield* failed(
        "CHOIRD_RUNS",
        "choird is running, and a restore replaces its database",
        "choirctl daemon stop"
      )
    yield* requireFile(file, "choirctl db backup")
    if (force)
      yield* confirm({
        yes,
        about: [`Every session in the database of ${safeLine(home)} will be replaced by those of the backup.`],
        ask: "Replace the database?",
        command: `choirctl db restore ${file} --force --yes`
      })
    const { runTask } = yield* Effect.promise(() => import("#src/choirctl/daemon/choirdProgram.ts"))
    const args = [
      "restore",
      file,
      ...(force ? ["--force"] : []),
      ...moved_from.flatMap((path) => ["--moved-from", path])
    ]
    const done = yield* runTask(home, args, Restored, (text) => screen.note(safeLine(text)))
    for (const { reason, session_id } of done.broken)
      yield* screen.note(`warning: session ${session_id} does not verify: ${safeLine(reason)}`)
    yield* printAdvice({ ok: true, path: file, ...done }, restoredText)
  })
).pipe(
  Command.withDescription("Restore the database from a backup; choird must not be running"),
  Command.withExamples([{ command: "choirctl db restore /backup/choir.gz" }])
)

export const database = Command.make("db").pipe(Command.withSubcommands([migrate, backup, restore]))
