/** choirctl config: check config.json, print its schema, show what runs. */
import { Cause, Effect, Exit, Option } from "effect"
import { Command } from "effect/cli"
import { ask } from "#src/choirctl/ask.ts"
import { CommandFailed, EXIT, Unsuccessful } from "#src/choirctl/failure.ts"
import { print } from "#src/choirctl/print.ts"
import { problemsOf, type Problem, validText } from "#src/choirctl/render/config.ts"
import { jsonText } from "#src/choirctl/render/jsonText.ts"
import { configPath, root } from "#src/choirctl/root.ts"
import { Screen } from "#src/choirctl/Screen.ts"

/** With --json the problems are a list of paths and reasons beside the pinned error. */
const refused = Effect.fnUntraced(function* (file: string, problems: ReadonlyArray<Problem>, hint: string) {
  const { json } = yield* root
  const screen = yield* Screen
  const error = { type: "CONFIG", message: `${file} is not valid`, hint }
  if (json) {
    yield* screen.print(jsonText({ ok: false, error, problems }))
    return yield* new Unsuccessful({ exit_code: EXIT.config })
  }
  for (const { path, reason } of problems) yield* screen.note(path === "" ? reason : `${path}: ${reason}`)
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
        : yield* refused(error.file, problemsOf(error.problems), error.hint)
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

const show = Command.make(
  "show",
  {},
  Effect.fnUntraced(function* () {
    const running = yield* ask("system", (choird) => choird.config())
    yield* print(running, (value) => jsonText(value, 2))
  })
).pipe(
  Command.withDescription("Print the configuration that choird runs with, defaults filled in"),
  Command.withExamples([{ command: "choirctl config show" }])
)

export const config = Command.make("config").pipe(
  Command.withDescription("Check, describe and show the configuration"),
  Command.withSubcommands([validate, schema, show])
)
