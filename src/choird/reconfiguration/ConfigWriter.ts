/** Edits of config.json by choird itself: written whole in place, loaded and applied, or taken back. */
import { join } from "node:path"
import { Context, Effect, FileSystem, Layer, Schedule, Schema } from "effect"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Reconfiguration } from "#src/choird/reconfiguration/Reconfiguration.ts"
import { differences } from "#src/choird/reconfiguration/resourcesInUse.ts"
import { CONFIG_FILE, loadFiles } from "#src/shared/config/configFiles.ts"
import { problemText } from "#src/shared/config/configProblems.ts"
import { editJson } from "#src/shared/config/jsonEdits.ts"
import { withHomeFilesLock } from "#src/shared/files/homeFilesLock.ts"
import { writeWhole } from "#src/shared/files/writeWhole.ts"

/** How often an apply that another one keeps busy is tried again, and how many times. */
const BUSY_RETRY_MS = 500
const BUSY_TRIES_MAX = 20

/** The value at a place of config.json, `undefined` to remove it. */
export interface Edit {
  readonly path: ReadonlyArray<string>
  readonly value: unknown
}

export class EditRefused extends Schema.TaggedError<EditRefused>()("EditRefused", { reason: Schema.String }) {
  override get message() {
    return this.reason
  }
}

/** Replaces config.json: all or nothing, even after a crash. */
export const makeReplaceConfig = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const { home } = yield* ConfigStore
  return Effect.fnUntraced(function* (text: string) {
    const place = yield* fs.realPath(join(home, CONFIG_FILE))
    yield* Effect.provideService(writeWhole(place, text), FileSystem.FileSystem, fs)
  })
})

export class ConfigWriter extends Context.Service<
  ConfigWriter,
  {
    /** Writes the edits and applies them. Refused, with the file as it was, if other changes wait in it or the result is not valid. */
    apply(who: string, edits: ReadonlyArray<Edit>): Effect.Effect<void, EditRefused>
  }
>()("choir/choird/ConfigWriter") {
  static readonly layer = Layer.effect(
    ConfigWriter,
    Effect.suspend(() => make())
  )
}

const refused = (error: { readonly message: string }) => new EditRefused({ reason: error.message })

const make = Effect.fnUntraced(function* () {
  const fs = yield* FileSystem.FileSystem
  const reconfiguration = yield* Reconfiguration
  const replace = yield* makeReplaceConfig
  const store = yield* ConfigStore
  const file = join(store.home, CONFIG_FILE)
  const alone = withHomeFilesLock(store.home)

  const write = Effect.fnUntraced(function* (edits: ReadonlyArray<Edit>) {
    const text = yield* fs.readFileString(file)
    const { config: written } = yield* loadFiles(store.home)
    const { config: running } = yield* store.current
    const waiting = differences(running, written).map(({ path }) => path.join("."))
    if (waiting.length > 0)
      return yield* new EditRefused({
        reason: `config.json has unapplied changes (${waiting.join(", ")}): apply them, or undo them`
      })
    yield* replace(edits.reduce((made, { path, value }) => editJson(made, path, value), text))
    // Checked as an operator's edit is; what is not valid never stays.
    yield* Effect.tapError(loadFiles(store.home), () => replace(text))
    return text
  })

  const loadAndApply = (who: string) =>
    Effect.andThen(
      reconfiguration.load(who, () => Effect.void),
      reconfiguration.apply(who)
    ).pipe(
      Effect.retry({
        while: ({ kind }) => kind === "BUSY",
        schedule: Schedule.spaced(BUSY_RETRY_MS),
        times: BUSY_TRIES_MAX
      }),
      Effect.mapError(
        ({ message, problems }) => new EditRefused({ reason: [message, ...problems.map(problemText)].join("; ") })
      )
    )

  return ConfigWriter.of({
    apply: Effect.fn("ConfigWriter.apply")(function* (who, edits) {
      const before = yield* Effect.mapError(alone(write(edits)), refused)
      yield* Effect.tapError(loadAndApply(who), () => Effect.ignore(alone(replace(before)), { log: "Warn" }))
    })
  })
})
