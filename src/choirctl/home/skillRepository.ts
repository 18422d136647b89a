/** The repository around a skill on this host, as far as the gate needs it: its pinned schemas and the facts of its tools. */
import { basename, dirname, join, resolve } from "node:path"
import { Effect, FileSystem, Result } from "effect"
import { SKILL_FILE } from "#src/shared/image/skillFolder.ts"
import { PINNED_SCHEMA_BYTES_MAX, PINNED_SCHEMAS_MAX, readPinnedSchema } from "#src/shared/image/pinnedSchemas.ts"
import { BUILT_IN_FACTS, manifestFacts } from "#src/shared/image/toolFacts.ts"
import { MANIFEST_BYTES_MAX, readToolManifest } from "#src/shared/image/toolManifest.ts"
import { IMAGE_TOOLS_MAX } from "#src/shared/limits.ts"

/** The folder above `skills`, or the folder of a file that lies elsewhere. */
const rootOf = (file: string): string => {
  const folder = dirname(resolve(file))
  const skills = basename(file) === SKILL_FILE ? dirname(folder) : folder
  return basename(skills) === "skills" ? dirname(skills) : skills
}

/** The texts of a folder's `.json` files that are plain and small enough; the build says what is wrong with others. */
const textsIn = Effect.fnUntraced(function* (folder: string, most: number, bytesMax: number) {
  const fs = yield* FileSystem.FileSystem
  const names = yield* Effect.orElseSucceed(fs.readDirectory(folder), () => [])
  const files = names.filter((name) => name.endsWith(".json")).sort()
  return yield* Effect.forEach(files.slice(0, most), (name) =>
    Effect.gen(function* () {
      const { size, type } = yield* fs.lstat(join(folder, name))
      if (type !== "File" || size > BigInt(bytesMax)) return []
      return [{ stem: name.slice(0, -".json".length), text: yield* fs.readFileString(join(folder, name)) }]
    }).pipe(Effect.orElseSucceed(() => []))
  ).pipe(Effect.map((found) => found.flat()))
})

/** Schemas and tools beside a skill's file. */
export const skillRepository = Effect.fnUntraced(function* (file: string) {
  const root = rootOf(file)
  const schemas = (yield* textsIn(join(root, "schemas"), PINNED_SCHEMAS_MAX, PINNED_SCHEMA_BYTES_MAX)).flatMap(
    ({ stem, text }) => {
      const read = readPinnedSchema(stem, text)
      return Result.isSuccess(read) ? [[stem, read.success] as const] : []
    }
  )
  const tools = (yield* textsIn(join(root, "tools"), IMAGE_TOOLS_MAX, MANIFEST_BYTES_MAX)).flatMap(({ text }) => {
    const read = readToolManifest("global", text)
    const manifest = Result.isSuccess(read) ? read.success.manifest : undefined
    return manifest === undefined ? [] : [[manifest.llm.name, manifestFacts(manifest)] as const]
  })
  return { schemas: new Map(schemas), facts: new Map([...BUILT_IN_FACTS, ...tools]) }
})
