/** The profiles of an agent's jobs, from its image. They are read once at start and never change. */
import { Context, Effect, FileSystem, Layer, Result } from "effect"
import type { JobProfile } from "#schema/JobProfile.ts"
import { PROFILES_FOLDER, PROFILES_MAX, readProfile } from "#src/shared/image/skillFile.ts"
import { SkillBroken } from "./SkillRegistry.ts"

/** Profiles by their types. */
export type ProfileBook = ReadonlyMap<string, JobProfile>

/** The profiles by which jobs may be started; none where nobody provides them. */
export const ProfileRegistry = Context.Reference<ProfileBook>("choir/agent/image/ProfileRegistry", {
  defaultValue: () => new Map()
})

/** The files `skills/_profiles/<agent_type>.json` of the folder `choir`. */
const loadProfiles = Effect.fnUntraced(function* (choir: string) {
  const fs = yield* FileSystem.FileSystem
  const folder = `${choir}/${PROFILES_FOLDER}`
  const broken = (file: string) => (problem: { readonly message: string }) =>
    new SkillBroken({ file, problems: [problem.message] })
  const names = yield* fs.readDirectory(folder).pipe(
    Effect.catchReason("PlatformError", "NotFound", () => Effect.succeed([])),
    Effect.mapError(broken(folder))
  )
  const files = names.filter((name) => name.endsWith(".json")).sort()
  // Those of two repositories.
  if (files.length > 2 * PROFILES_MAX)
    return yield* new SkillBroken({ file: folder, problems: [`it holds more than ${2 * PROFILES_MAX} profiles`] })
  const book = new Map<string, JobProfile>()
  for (const name of files) {
    const file = `${folder}/${name}`
    const { type } = yield* Effect.mapError(fs.stat(file), broken(file))
    if (type !== "File") return yield* new SkillBroken({ file, problems: ["it is not a regular file"] })
    const text = yield* Effect.mapError(fs.readFileString(file), broken(file))
    const read = readProfile(name.slice(0, -".json".length), text)
    if (Result.isFailure(read)) return yield* new SkillBroken({ file, problems: read.failure })
    book.set(read.success.agent_type, read.success)
  }
  return book
})

/** `choir` is the image's folder. */
export const layerProfiles = (choir: string) => Layer.effect(ProfileRegistry, loadProfiles(choir))
