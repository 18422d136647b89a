/** The folder of a home, and the files in it that its operator owns: written whole, for their owner alone, or not at all. */
import { existsSync, lstatSync, readdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect, FileSystem, type PlatformError, Schema } from "effect"
import { configError, failed } from "#src/choirctl/terminal/failure.ts"
import { configPath } from "#src/choirctl/terminal/root.ts"
import { repeatedKeys } from "#src/shared/config/jsonKeys.ts"
import { initHint } from "#src/shared/files/homeFolder.ts"
import { finishRestore } from "#src/shared/files/interruptedRestore.ts"
import { systemWords, writeWhole } from "#src/shared/files/writeWhole.ts"

/** `unusable` is something that cannot become a home. */
type HomePlace =
  | { readonly type: "missing" }
  | { readonly type: "folder"; readonly empty: boolean; readonly mode: number }
  | { readonly type: "unusable"; readonly problem: string; readonly fix: string }

/** @param flag the flag that names another place. */
export const homePlace = (home: string, flag: "--home" | "--to"): HomePlace => {
  const stat = lstatSync(home, { throwIfNoEntry: false })
  if (stat === undefined) return { type: "missing" }
  const unusable = (problem: string, fix = `choose another ${flag}`): HomePlace => ({ type: "unusable", problem, fix })
  if (stat.isSymbolicLink()) return unusable("it is a symbolic link", "name the folder that it leads to")
  if (!stat.isDirectory()) return unusable("it is not a folder")
  if (stat.uid !== process.getuid?.()) return unusable("it belongs to another user")
  return { type: "folder", empty: readdirSync(home).length === 0, mode: stat.mode & 0o777 }
}

export const secretsPath = (home: string): string => join(home, "secrets.json")

/** Refuses a command on a home that is not there. */
export const requireHome = (home: string) =>
  Effect.try({
    try: () => finishRestore(home) || existsSync(home),
    catch: (cause) => configError(`${home} cannot be read: ${String(cause)}`, "choose another --home")
  }).pipe(
    Effect.filterOrFail(
      (there) => there,
      () => configError(`${home} does not exist`, initHint(home))
    )
  )

const notWritten = (path: string) => (error: PlatformError.PlatformError) =>
  failed(
    "FILE",
    `${path} cannot be written and is unchanged: ${systemWords(error)}`,
    `check the free space on its disk and the owner of ${dirname(path)}, then run this again`
  )

/** Replaces or creates a file, 0600, through a link at its place. Readers see the old text or the new one, also after a crash. */
export const writePrivate = Effect.fn("writePrivate")(
  function* (path: string, text: string) {
    const fs = yield* FileSystem.FileSystem
    yield* writeWhole((yield* fs.exists(path)) ? yield* fs.realPath(path) : path, text)
  },
  (effect, path) => Effect.mapError(effect, notWritten(path))
)

/** How a new config.json and secrets.json look on disk. */
export const fileText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

const JsonObject = Schema.Record(Schema.String, Schema.MutableJson)
export type JsonObject = typeof JsonObject.Type

/** A section of config.json as it stands there; an empty one where there is none. */
export const sectionOf = (value: JsonObject, key: string): JsonObject => {
  const section = Object.hasOwn(value, key) ? value[key] : undefined
  return Schema.is(JsonObject)(section) ? section : {}
}

const decodeObject = Schema.decodeUnknownEffect(Schema.fromJsonString(JsonObject))

/** config.json as its owner wrote it, to be changed in places and written again, and what it holds, defaults not filled in. */
export const readConfigText = Effect.fn("readConfigText")(function* (home: string) {
  const fs = yield* FileSystem.FileSystem
  const path = configPath(home)
  if (!(yield* fs.exists(path))) return yield* configError(`${path} does not exist`, initHint(home))
  const text = yield* fs.readFileString(path)
  const hint = "correct the file, then check it with choirctl config validate"
  const value = yield* Effect.mapError(decodeObject(text), () => configError(`${path} is not valid JSON`, hint))
  // Of two equal keys the first has no effect, so that a change of it would have none either.
  const [repeated] = repeatedKeys(text)
  if (repeated === undefined) return { text, written: value }
  return yield* configError(`${path} has the key ${repeated.join(".")} twice`, hint)
})
