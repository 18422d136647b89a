/** What an image offers its agent: the skills and tools that its files describe. */
import { join } from "node:path"
import { Effect, FileSystem, Result, Schema } from "effect"
import type { SkillSpec } from "#schema/Skill.ts"
import { effectOf, ToolManifest } from "#schema/Tool.ts"
import type { ToolSummary } from "#schema/AgentsApi.ts"
import { readSkill } from "#src/shared/image/skillProblems.ts"
import type { ToolScope } from "#src/shared/image/toolManifest.ts"
import { ImageDrift } from "./ImageFolder.ts"

const decodeManifest = Schema.decodeUnknownResult(Schema.fromJsonString(ToolManifest))

/** The texts of the `.json` files of a folder by their names; a folder that is not there has none. */
const filesOf = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const drift = ({ message }: { readonly message: string }) => new ImageDrift({ path: folder, reason: message })
  const names = yield* fs.readDirectory(folder).pipe(
    Effect.catchReason("PlatformError", "NotFound", () => Effect.succeed([])),
    Effect.mapError(drift)
  )
  const files = names.filter((name) => name.endsWith(".json")).sort()
  return yield* Effect.forEach(files, (name) =>
    Effect.map(Effect.mapError(fs.readFileString(join(folder, name)), drift), (text) => ({
      stem: name.slice(0, -".json".length),
      text
    }))
  )
})

/** The skills of the image at `path`, which holds the folder `choir`. One that no agent could load is a drift. */
export const imageSkills = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<ReadonlyArray<SkillSpec>, ImageDrift, FileSystem.FileSystem> {
  const folder = join(path, "choir", "skills")
  const read = (yield* filesOf(folder)).map(({ stem, text }) => readSkill(stem, text))
  const broken = read.find(Result.isFailure)
  if (broken !== undefined) return yield* new ImageDrift({ path: folder, reason: broken.failure.join("; ") })
  return read.flatMap((skill) => (Result.isSuccess(skill) ? [skill.success] : []))
})

/** The tools of the image at `path`, the global ones first. */
export const imageTools = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<ReadonlyArray<ToolSummary>, ImageDrift, FileSystem.FileSystem> {
  const scopes: ReadonlyArray<ToolScope> = ["global", "agent"]
  const found = yield* Effect.forEach(scopes, (source) => {
    const folder = join(path, "choir", "tools", source)
    return Effect.flatMap(filesOf(folder), (files) =>
      Effect.forEach(files, ({ stem, text }) => {
        const manifest = decodeManifest(text)
        if (Result.isFailure(manifest))
          return Effect.fail(new ImageDrift({ path: `${folder}/${stem}.json`, reason: manifest.failure.message }))
        const { llm, runtime } = manifest.success
        const { description, name } = llm
        return Effect.succeed({
          name,
          source,
          effect: effectOf(manifest.success),
          exposure: runtime.exposure,
          description
        })
      })
    )
  })
  return found.flat()
})
