/** The answers of an unfinished `choirctl init`, so that a later failure or Ctrl-C loses none. Secrets are in secrets.json alone. */
import { join } from "node:path"
import { Effect, FileSystem, type PlatformError, Schema } from "effect"
import type { CommandFailed } from "#src/choirctl/terminal/failure.ts"
import { fileText, writePrivate } from "./homeFiles.ts"
import { PROVIDERS } from "./providers.ts"

/** The answers so far. */
export const Answers = Schema.Struct({
  provider: Schema.optionalKey(Schema.Literals(PROVIDERS)),
  endpoint: Schema.optionalKey(Schema.String),
  name: Schema.optionalKey(Schema.String),
  /** Whether the provider's key was asked for: secrets.json has it, or it was left for later. */
  key_asked: Schema.optionalKey(Schema.Boolean),
  /** The server that the key is for: scheme, host and port. */
  key_server: Schema.optionalKey(Schema.String),
  /** The secret that holds the key. */
  key_secret: Schema.optionalKey(Schema.String),
  /** Whether the model passed its trial, or is to be kept although it did not. */
  model_accepted: Schema.optionalKey(Schema.Boolean),
  /** Null where it is unknown. */
  price: Schema.optionalKey(
    Schema.NullOr(
      Schema.Struct({
        input: Schema.Finite,
        output: Schema.Finite,
        cache_read: Schema.optionalKey(Schema.Finite),
        cache_write: Schema.optionalKey(Schema.Finite)
      })
    )
  ),
  /** The model that answers when the first one cannot; empty for none. */
  fallback: Schema.optionalKey(Schema.String),
  /** The fallback that passed its trial, or that is to be kept although it did not. */
  fallback_accepted: Schema.optionalKey(Schema.String),
  without_telegram: Schema.optionalKey(Schema.Boolean),
  /** Empty where the person pairs with a code. */
  telegram_user_id: Schema.optionalKey(Schema.String),
  /** The name of that user, where they sent a code. */
  telegram_first_name: Schema.optionalKey(Schema.String),
  /** Empty for the zone of this machine. */
  timezone: Schema.optionalKey(Schema.String),
  bot_accepted: Schema.optionalKey(Schema.Boolean),
  runtime: Schema.optionalKey(Schema.Literals(["auto", "sandbox", "process", "docker"]))
})
export type Answers = typeof Answers.Type

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Answers))

const draftPath = (home: string) => join(home, "init-draft.json")

export interface SetupDraft {
  /** The answers of an earlier run or this one. */
  answers(): Answers
  /** Keeps further answers. */
  keep(more: Answers): Effect.Effect<void, CommandFailed | PlatformError.PlatformError>
  /** Forgets answers, to ask for them again. */
  forget(...names: ReadonlyArray<keyof Answers>): Effect.Effect<void, CommandFailed | PlatformError.PlatformError>
}

/** Opens the draft of a home; an unreadable draft counts as missing. */
export const openDraft = Effect.fn("openDraft")(function* (home: string) {
  const fs = yield* FileSystem.FileSystem
  const path = draftPath(home)
  let answers: Answers = yield* fs.readFileString(path).pipe(
    Effect.flatMap(decode),
    Effect.orElseSucceed(() => ({}))
  )
  const replace = (next: Answers) =>
    Effect.suspend(() => {
      answers = next
      return Effect.provideService(writePrivate(path, fileText(next)), FileSystem.FileSystem, fs)
    })
  return {
    answers: () => answers,
    keep: (more) => replace({ ...answers, ...more }),
    forget: (...names) =>
      replace(Object.fromEntries(Object.entries(answers).filter(([name]) => !names.some((other) => other === name))))
  } satisfies SetupDraft
})

/** Removes the draft, once config.json says it all. */
export const removeDraft = (home: string) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => Effect.ignore(fs.remove(draftPath(home), { force: true })))

/** The kept answer, or else the answer to the question, which is then kept. */
export const answered = Effect.fnUntraced(function* <K extends keyof Answers, E, R>(
  draft: SetupDraft,
  name: K,
  question: Effect.Effect<NonNullable<Answers[K]>, E, R>
) {
  const before = draft.answers()[name]
  if (before !== undefined && before !== null) return before
  const answer = yield* question
  yield* draft.keep({ [name]: answer })
  return answer
})
