/** choirctl db: the life of the database. */
import { Effect, Schema } from "effect"
import { Command } from "effect/cli"
import { choirdAnswers } from "#src/choirctl/choirdAnswers.ts"
import { print } from "#src/choirctl/print.ts"
import { withProgress } from "#src/choirctl/progress.ts"
import { migratedText } from "#src/choirctl/render/database.ts"
import { root } from "#src/choirctl/root.ts"
import { Screen } from "#src/choirctl/Screen.ts"

/** What choird says of a migration; `applied` are the numbers that were run. */
const Migrated = Schema.Struct({
  kind: Schema.Literals(["embedded", "postgres"]),
  applied: Schema.Array(Schema.Natural),
  migration: Schema.Natural
})

const migrate = Command.make(
  "migrate",
  {},
  Effect.fnUntraced(function* () {
    const { home } = yield* root
    const screen = yield* Screen
    if (yield* choirdAnswers(home)) return yield* print({ ok: true, running: true, applied: [] }, migratedText)
    const { runTask } = yield* Effect.promise(() => import("#src/choirctl/choirdProgram.ts"))
    const done = yield* runTask(home, ["migrate"], Migrated, screen.note).pipe(withProgress("migrating"))
    yield* print({ ok: true, running: false, ...done }, migratedText)
  })
).pipe(
  Command.withDescription("Bring the database to this version of Choir; a starting choird does so by itself"),
  Command.withExamples([{ command: "choirctl db migrate" }])
)

export const database = Command.make("db").pipe(
  Command.withDescription("Migrate, back up and restore the database"),
  Command.withSubcommands([migrate])
)
