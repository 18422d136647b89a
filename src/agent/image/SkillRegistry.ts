/** Every skill there is: built-in and the image's. It is filled once at start and never changes. */
import { Context, Effect, FileSystem, Layer, Result, Schema } from "effect"
import type { SkillSpec } from "#schema/Skill.ts"
import type { JsonSchemaObject } from "#schema/SkillContract.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { IMAGE_SKILLS_MAX } from "#src/shared/limits.ts"
import type { ToolCapabilities } from "#src/shared/image/builtInTools.ts"
import { PINNED_SCHEMAS_MAX, readPinnedSchema } from "#src/shared/image/pinnedSchemas.ts"
import { allSkillProblems, readSkill, SCHEMAS_FOLDER } from "#src/shared/image/skillFile.ts"
import { MANIFEST_BYTES_MAX } from "#src/shared/image/toolManifest.ts"

/** Skills by their names. */
export type SkillBook = ReadonlyMap<string, SkillSpec>

/** A skill that cannot be offered. The agent does not start without it. */
export class SkillBroken extends Schema.TaggedError<SkillBroken>()("SkillBroken", {
  /** The skill's file, or the folder that cannot be read. */
  file: Schema.String,
  problems: Schema.Array(Schema.String)
}) {
  override get message() {
    return `the skill ${this.file} cannot be used: ${this.problems.join("; ")}. Fix it, then build and restart the agent`
  }
}

/** The skills that lanes may run; none where nobody provides them. */
export const SkillRegistry = Context.Reference<SkillBook>("choir/agent/image/SkillRegistry", {
  defaultValue: () => new Map()
})

const readFile = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const broken = (reason: string) => new SkillBroken({ file, problems: [reason] })
  const { size, type } = yield* Effect.mapError(fs.lstat(file), ({ message }) => broken(message))
  if (type !== "File") return yield* broken("it is not a regular file")
  if (size > BigInt(MANIFEST_BYTES_MAX)) return yield* broken(`it is larger than ${MANIFEST_BYTES_MAX} bytes`)
  return yield* Effect.mapError(fs.readFileString(file), ({ message }) => broken(message))
})

/** The `.json` files of a folder of the image, without Choir's own; a folder that is not there has none. */
const filesOf = Effect.fnUntraced(function* (folder: string, most: number, what: string) {
  const fs = yield* FileSystem.FileSystem
  const entries = yield* fs.readDirectory(folder).pipe(
    Effect.catchReason("PlatformError", "NotFound", () => Effect.succeed([])),
    Effect.mapError(({ message }) => new SkillBroken({ file: folder, problems: [message] }))
  )
  const files = entries.filter((name) => name.endsWith(".json") && !name.startsWith("_")).sort()
  if (files.length > most)
    return yield* new SkillBroken({ file: folder, problems: [`it holds more than ${most} ${what}`] })
  return files
})

/** The schemas that the image's skills may pin. */
const loadSchemas = Effect.fnUntraced(function* (choir: string) {
  const folder = `${choir}/${SCHEMAS_FOLDER}`
  const schemas = new Map<string, JsonSchemaObject>()
  // Those of two repositories.
  for (const name of yield* filesOf(folder, 2 * PINNED_SCHEMAS_MAX, "schemas")) {
    const file = `${folder}/${name}`
    const stem = name.slice(0, -".json".length)
    const read = readPinnedSchema(stem, yield* readFile(file))
    if (Result.isFailure(read)) return yield* new SkillBroken({ file, problems: read.failure })
    schemas.set(stem, read.success)
  }
  return schemas
})

/** The built-in skills, and the files `skills/<name>.json` of the folder `choir`. */
export const loadSkills = Effect.fnUntraced(function* (choir: string) {
  const folder = `${choir}/skills`
  const files = yield* filesOf(folder, IMAGE_SKILLS_MAX, "skills")
  const schemas = yield* loadSchemas(choir)
  const book = new Map<string, SkillSpec>(BUILT_IN_SKILLS.map((spec) => [spec.name, spec]))
  for (const name of files) {
    const file = `${folder}/${name}`
    const read = readSkill(name.slice(0, -".json".length), yield* readFile(file), { schemas })
    if (Result.isFailure(read)) return yield* new SkillBroken({ file, problems: read.failure })
    book.set(read.success.name, read.success)
  }
  return book
})

/** Fails unless every tool that a skill allows is there, and its contract declares all that these tools can do. */
export const requireTools = (book: SkillBook, tools: ToolCapabilities): Effect.Effect<void, SkillBroken> =>
  Effect.forEach(
    book.values(),
    (spec) => {
      const problems = allSkillProblems(spec, tools)
      return problems.length === 0 ? Effect.void : Effect.fail(new SkillBroken({ file: spec.name, problems }))
    },
    { discard: true }
  )

/** `choir` is the image's folder. */
export const layerSkills = (choir: string) => Layer.effect(SkillRegistry, loadSkills(choir))
