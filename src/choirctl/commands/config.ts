/** choirctl config: check config.json, and make choird run with it. */
import { Cause, Effect, Exit, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { ask } from "#src/choirctl/client/ask.ts"
import { applyText, diffText, historyTable, loadText, validText } from "#src/choirctl/render/config.ts"
import { print, printAdvice, withProgress } from "#src/choirctl/terminal/print.ts"
import { yesFlag } from "#src/choirctl/terminal/questions.ts"
import { configPath, root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { jsonText } from "#src/choirctl/terminal/text.ts"
import { problemsOf } from "#src/shared/config/configProblems.ts"

/** Loaded when it is needed, as the work of every command is. */
const loading = Effect.promise(() => import("./applyConfig.ts"))

const validate = Command.make(
  "validate",
  {},
  Effect.fnUntraced(function* () {
    const { home } = yield* root
    const { refused } = yield* loading
    const { loadFiles } = yield* Effect.promise(() => import("#src/shared/config/configFiles.ts"))
    const loaded = yield* Effect.exit(loadFiles(home))
    if (Exit.isFailure(loaded)) {
      const error = Option.getOrUndefined(Cause.findErrorOption(loaded.cause))
      const { json } = yield* root
      // A problem of the file as a whole is printed beside its name.
      return error === undefined || (!json && problemsOf(error.problems).every(({ path }) => path === ""))
        ? yield* Effect.failCause(loaded.cause)
        : yield* refused(`${error.file} is not valid`, problemsOf(error.problems), error.hint)
    }
    const { unappliedServers } = yield* Effect.promise(() => import("#src/choirctl/home/unappliedServers.ts"))
    const sent = yield* unappliedServers(home, loaded.value.config)
    yield* printAdvice({ ok: true, path: configPath(home), warnings: [...loaded.value.warnings, ...sent] }, validText)
  })
).pipe(
  Command.withDescription("Check config.json and secrets.json, and print the path of each problem"),
  Command.withExamples([{ command: "choirctl config validate" }])
)

const schema = Command.make(
  "schema",
  {},
  Effect.fnUntraced(function* () {
    const { json } = yield* root
    const screen = yield* Screen
    const { configSchema } = yield* Effect.promise(() => import("#src/choirctl/home/initHome.ts"))
    yield* screen.print(jsonText(configSchema, json ? undefined : 2))
  })
).pipe(
  Command.withDescription("Print the JSON Schema of config.json"),
  Command.withExamples([{ command: "choirctl config schema > config.schema.json" }])
)

/** Range of version numbers, checked before choird is asked. */
const isVersion = (value: number) => value >= 1 && value < 2 ** 31
const notVersion = () => "a version must be a whole number from choirctl config history"

const version = Flag.Int("version").pipe(
  Flag.filter(isVersion, notVersion),
  Flag.withDescription("Print this earlier version instead of the running one"),
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
  Command.withDescription("Print the running configuration, including defaults"),
  Command.withExamples([{ command: "choirctl config show" }, { command: "choirctl config show --version 3" }])
)

const load = Command.make(
  "load",
  {},
  Effect.fnUntraced(function* () {
    const { loadConfig } = yield* loading
    yield* printAdvice(yield* loadConfig, loadText)
  })
).pipe(
  Command.withDescription("Read and check config.json, secrets.json and the repositories, and stage them in choird"),
  Command.withExamples([{ command: "choirctl config load" }])
)

const diff = Command.make(
  "diff",
  {},
  Effect.fnUntraced(function* () {
    yield* printAdvice(yield* ask("configuration", (choird) => choird.diff()), diffText)
  })
).pipe(
  Command.withDescription("Show staged changes that are not running yet, and the command that applies each"),
  Command.withExamples([{ command: "choirctl config diff" }])
)

/** A rollback does not write config.json, which belongs to the operator and which choird reads at its next start. */
const fileNote = Effect.fnUntraced(function* (version: number) {
  const { home } = yield* root
  const screen = yield* Screen
  yield* screen.note(
    `config.json is unchanged: choirctl config apply and the next start of choird will read it and so undo the rollback. To keep version ${version}, write it to config.json first: choirctl config show --version ${version} > ${configPath(home)}`
  )
})

const apply = Command.make(
  "apply",
  {
    yes: yesFlag,
    restart: Flag.Boolean("restart").pipe(
      Flag.withDescription("Restart the agents whose changes take effect only at start"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* (flags) {
    const { applyConfig } = yield* loading
    yield* applyConfig(flags)
  })
).pipe(
  Command.withDescription("Read config.json and secrets.json, show the changes, ask for confirmation, and apply them"),
  Command.withExamples([
    { command: "choirctl config apply" },
    { command: "choirctl config apply --yes --restart", description: "From a script" }
  ])
)

const rollback = Command.make(
  "rollback",
  {
    version: Argument.Int("version").pipe(
      Argument.filter(isVersion, notVersion),
      Argument.withDescription("Version number from choirctl config history")
    )
  },
  Effect.fnUntraced(function* ({ version }) {
    const asking = ask("configuration", (choird) => choird.rollback({ payload: { version } }))
    const report = yield* withProgress("rolling back")(asking)
    yield* printAdvice(report, applyText)
    yield* fileNote(version)
  })
).pipe(
  Command.withDescription("Run the configuration of an earlier version again, as a new version"),
  Command.withExamples([{ command: "choirctl config rollback 3" }])
)

const history = Command.make(
  "history",
  {},
  Effect.fnUntraced(function* () {
    yield* print(yield* ask("configuration", (choird) => choird.history()), historyTable)
  })
).pipe(
  Command.withDescription("List configuration versions, newest first"),
  Command.withExamples([{ command: "choirctl config history" }])
)

export const config = Command.make("config").pipe(
  Command.withSubcommands([load, diff, apply, rollback, history, show, validate, schema])
)
