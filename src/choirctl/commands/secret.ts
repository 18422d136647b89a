/** choirctl secret: the values that config.json only names. */
import { Effect, Option, Redacted } from "effect"
import { Argument, Command, Prompt } from "effect/cli"
import { SecretName } from "#schema/Ids.ts"
import { ask, choirdAnswers } from "#src/choirctl/client/ask.ts"
import { secretsText } from "#src/choirctl/render/config.ts"
import { failed, usageError } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { readInput, withoutLineEnd } from "#src/choirctl/terminal/input.ts"
import { print, printAdvice } from "#src/choirctl/terminal/print.ts"
import { askPerson, confirm, yesFlag } from "#src/choirctl/terminal/questions.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"

/** The value of a secret as it is typed or piped in. */
export const SECRET_BYTES_MAX = 64 * 1024

/** Loaded when it is needed, since it brings the whole schema of config.json. */
const files = Effect.promise(() => import("#src/choirctl/home/secretsFile.ts"))

const secretName = Argument.String("name").pipe(
  Argument.withDescription("Name that config.json refers to"),
  Argument.withSchema(SecretName)
)

const list = Command.make(
  "list",
  {},
  Effect.fnUntraced(function* () {
    const { home } = yield* root
    const { secretNames } = yield* files
    yield* printAdvice(
      yield* secretNames(home),
      (names) => names.join("\n") || "no secret is set: choirctl secret set <name>"
    )
  }, onHost)
).pipe(
  Command.withDescription("List the names of secrets, never their values"),
  Command.withExamples([{ command: "choirctl secret list" }])
)

/** From the argument, else from a question without echo, else from standard input. */
const valueOf = Effect.fnUntraced(function* (name: SecretName, argument: Option.Option<Redacted.Redacted>) {
  const { json } = yield* root
  const screen = yield* Screen
  if (Option.isSome(argument)) {
    yield* screen.note(
      "warning: a value on the command line is visible to every process on this host and kept in the shell's history"
    )
    return argument.value
  }
  if (!screen.typed_input) return Redacted.make(withoutLineEnd(yield* readInput(SECRET_BYTES_MAX)))
  if (json || !screen.interactive)
    return yield* usageError("no value was given", `pass it on standard input: choirctl secret set ${name} < file`)
  return yield* askPerson(Prompt.Password({ message: `Value of ${name}` }))
})

/** choird holds secrets in memory, so a running choird does not see a change until it reloads them. */
const applyNote = Effect.fnUntraced(function* () {
  const { home } = yield* root
  const screen = yield* Screen
  if (yield* choirdAnswers(home))
    yield* screen.note("to make choird and its agents use this change: choirctl secret apply")
})

const set = Command.make(
  "set",
  {
    name: secretName,
    value: Argument.Redacted("value").pipe(
      Argument.withDescription(
        "Not recommended: without it, choirctl asks for the value or reads it from standard input"
      ),
      Argument.optional
    )
  },
  Effect.fnUntraced(function* ({ name, value }) {
    const { home } = yield* root
    const { setSecret } = yield* files
    const secret = yield* valueOf(name, value)
    const text = Redacted.value(secret)
    if (text === "") return yield* usageError("the value is empty", `to delete it: choirctl secret delete ${name}`)
    if (Buffer.byteLength(text) > SECRET_BYTES_MAX)
      return yield* usageError(`the value is longer than ${SECRET_BYTES_MAX} bytes`, "use a shorter one")
    const replaced = yield* setSecret(home, name, secret)
    yield* print({ ok: true, name, replaced }, () => `${replaced ? "replaced" : "set"} ${name}`)
    yield* applyNote()
  }, onHost)
).pipe(
  Command.withDescription("Set a secret, typed without echo or read from standard input"),
  Command.withExamples([{ command: "choirctl secret set openrouter-key < key.txt" }])
)

/** The places of config.json that would miss the secret; none when config.json cannot be read. */
const references = Effect.fnUntraced(function* (home: string, name: SecretName) {
  const { loadFiles, secretReferences } = yield* Effect.promise(() => import("#src/shared/config/configFiles.ts"))
  const loaded = yield* Effect.option(loadFiles(home))
  return Option.match(loaded, {
    onNone: () => [],
    onSome: ({ config }) => secretReferences(config).flatMap(({ path, secret }) => (secret === name ? [path] : []))
  })
})

const remove = Command.make(
  "delete",
  { name: secretName, yes: yesFlag },
  Effect.fnUntraced(function* ({ name, yes }) {
    const { home } = yield* root
    const screen = yield* Screen
    const { deleteSecret, secretNames } = yield* files
    const unknown = failed("UNKNOWN_SECRET", `there is no secret ${name}`, "choirctl secret list")
    if (!(yield* secretNames(home)).includes(name)) return yield* unknown
    const used = yield* references(home, name)
    yield* confirm({
      yes,
      about: [
        `The value of ${name} will be deleted; there is no other copy.`,
        ...used.map((path) => `config.json uses it at ${path}.`)
      ],
      ask: `Delete ${name}?`,
      command: `choirctl secret delete ${name} --yes`
    })
    if (!(yield* deleteSecret(home, name))) return yield* unknown
    for (const path of used) yield* screen.note(`warning: config.json still refers to ${name} at ${path}`)
    yield* print({ ok: true, name, referenced_by: used }, () => `deleted ${name}`)
    yield* applyNote()
  }, onHost)
).pipe(
  Command.withDescription("Delete a secret"),
  Command.withExamples([{ command: "choirctl secret delete openrouter-key" }])
)

const apply = Command.make(
  "apply",
  {},
  Effect.fnUntraced(function* () {
    yield* printAdvice(yield* ask("configuration", (choird) => choird.applySecrets()), secretsText)
  })
).pipe(
  Command.withDescription("Make choird reload secrets.json, and running agents fetch the changes"),
  Command.withExamples([{ command: "choirctl secret apply" }])
)

export const secret = Command.make("secret").pipe(Command.withSubcommands([list, set, remove, apply]))
