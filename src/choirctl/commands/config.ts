/** choirctl config: check config.json, and make choird run with it, in two phases (spec 17.6). */
import { Cause, Effect, Exit, Option, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { ask, askStream } from "#src/choirctl/ask.ts"
import { CommandFailed, EXIT, failed, refusedByChoird, Unsuccessful } from "#src/choirctl/failure.ts"
import { print } from "#src/choirctl/print.ts"
import { withProgress } from "#src/choirctl/progress.ts"
import { applyText, diffText, historyTable, loadText, validText } from "#src/choirctl/render/config.ts"
import { jsonText } from "#src/choirctl/render/jsonText.ts"
import { configPath, root } from "#src/choirctl/root.ts"
import { safeLine } from "#src/choirctl/render/safeText.ts"
import { Screen } from "#src/choirctl/Screen.ts"
import { type Problem, problemsOf, problemText } from "#src/shared/configProblems.ts"

/** With --json the problems are a list of paths and reasons beside the pinned error. */
const refused = Effect.fnUntraced(function* (message: string, problems: ReadonlyArray<Problem>, hint: string) {
  const { json } = yield* root
  const screen = yield* Screen
  const error = { type: "CONFIG", message, hint }
  if (json) {
    yield* screen.print(jsonText({ ok: false, error, problems }))
    return yield* new Unsuccessful({ exit_code: EXIT.config })
  }
  for (const problem of problems) yield* screen.note(safeLine(problemText(problem)))
  return yield* new CommandFailed({ type: error.type, problem: error.message, hint, exit_code: EXIT.config })
})

const validate = Command.make(
  "validate",
  {},
  Effect.fnUntraced(function* () {
    const { home } = yield* root
    const { loadFiles } = yield* Effect.promise(() => import("#src/shared/configFiles.ts"))
    const loaded = yield* Effect.exit(loadFiles(home))
    if (Exit.isFailure(loaded)) {
      const error = Option.getOrUndefined(Cause.findErrorOption(loaded.cause))
      return error === undefined
        ? yield* Effect.failCause(loaded.cause)
        : yield* refused(`${error.file} is not valid`, problemsOf(error.problems), error.hint)
    }
    const { warnings } = loaded.value
    yield* print({ ok: true, path: configPath(home), warnings }, validText)
  })
).pipe(
  Command.withDescription("Check config.json and secrets.json; names the path of each problem"),
  Command.withExamples([{ command: "choirctl config validate" }])
)

const schema = Command.make(
  "schema",
  {},
  Effect.fnUntraced(function* () {
    const { json } = yield* root
    const screen = yield* Screen
    const { configSchema } = yield* Effect.promise(() => import("#src/choirctl/configSchema.ts"))
    yield* screen.print(jsonText(configSchema, json ? undefined : 2))
  })
).pipe(
  Command.withDescription("Print the JSON Schema of config.json"),
  Command.withExamples([{ command: "choirctl config schema > config.schema.json" }])
)

/** What a number of `config history` may be, so that anything else is told before choird is asked. */
const isVersion = (value: number) => value >= 1 && value < 2 ** 31
const notVersion = () => "a version is a whole number from 1, as choirctl config history shows it"

const version = Flag.Int("version").pipe(
  Flag.filter(isVersion, notVersion),
  Flag.withDescription("What an earlier version held, in the place of what runs"),
  Flag.withMetavar("<number>"),
  Flag.optional
)

const show = Command.make(
  "show",
  { version },
  Effect.fnUntraced(function* ({ version }) {
    const shown = Option.isNone(version)
      ? yield* ask("system", (choird) => choird.config())
      : yield* ask("configuration", (choird) => choird.version({ params: { version: version.value } }))
    yield* print(shown, (value) => jsonText(value, 2))
  })
).pipe(
  Command.withDescription("Print the configuration that choird runs with, defaults filled in"),
  Command.withExamples([{ command: "choirctl config show" }, { command: "choirctl config show --version 3" }])
)

const load = Command.make(
  "load",
  {},
  Effect.fnUntraced(function* () {
    const screen = yield* Screen
    const steps = askStream("configuration", (choird) => choird.load())
    const last = yield* steps.pipe(
      Stream.tap((step) => (step.type === "step" ? screen.note(safeLine(step.text)) : Effect.void)),
      Stream.runLast
    )
    const end = Option.getOrUndefined(last)
    if (end?.type === "failed") {
      const { error, problems = [] } = end
      return error.type === "CONFIG"
        ? yield* refused(`nothing is staged: ${error.message}`, problems, error.hint ?? "choirctl config validate")
        : yield* refusedByChoird(error)
    }
    if (end?.type !== "done")
      return yield* failed("LOAD_BROKE_OFF", "choird ended before everything was read", "choirctl config load")
    for (const warning of end.result.warnings) yield* screen.note(`warning: ${safeLine(warning)}`)
    yield* print(end.result, loadText)
  })
).pipe(
  Command.withDescription("Read and check config.json, secrets.json and the repositories, and stage them in choird"),
  Command.withExamples([{ command: "choirctl config load" }])
)

const diff = Command.make(
  "diff",
  {},
  Effect.fnUntraced(function* () {
    yield* print(yield* ask("configuration", (choird) => choird.diff()), diffText)
  })
).pipe(
  Command.withDescription("Show what is staged and does not run yet, and what puts it to work"),
  Command.withExamples([{ command: "choirctl config diff" }])
)

/** config.json is its operator's: what choird goes back to is not written there, and its next start reads the file. */
const fileNote = Effect.fnUntraced(function* (version: number) {
  const { home } = yield* root
  const screen = yield* Screen
  yield* screen.note(
    `config.json is as it was, and choird's next start reads it; to keep what runs: choirctl config show --version ${version} > ${configPath(home)}`
  )
})

const apply = Command.make(
  "apply",
  {},
  Effect.fnUntraced(function* () {
    const report = yield* withProgress("applying")(ask("configuration", (choird) => choird.apply()))
    yield* print(report, applyText)
  })
).pipe(
  Command.withDescription("Take over what is staged and needs no restart; shows what is still to be done"),
  Command.withExamples([{ command: "choirctl config apply" }])
)

const rollback = Command.make(
  "rollback",
  {
    version: Argument.Int("version").pipe(
      Argument.filter(isVersion, notVersion),
      Argument.withDescription("A number of choirctl config history")
    )
  },
  Effect.fnUntraced(function* ({ version }) {
    const asking = ask("configuration", (choird) => choird.rollback({ payload: { version } }))
    const report = yield* withProgress("going back")(asking)
    yield* print(report, applyText)
    yield* fileNote(report.version)
  })
).pipe(
  Command.withDescription("Run again with what an earlier version held, under a new number"),
  Command.withExamples([{ command: "choirctl config rollback 3" }])
)

const history = Command.make(
  "history",
  {},
  Effect.fnUntraced(function* () {
    yield* print(yield* ask("configuration", (choird) => choird.history()), historyTable)
  })
).pipe(
  Command.withDescription("List the versions that ran, the newest first"),
  Command.withExamples([{ command: "choirctl config history" }])
)

export const config = Command.make("config").pipe(
  Command.withDescription("Check, load, compare, apply and show the configuration"),
  Command.withSubcommands([load, diff, apply, rollback, history, show, validate, schema])
)
