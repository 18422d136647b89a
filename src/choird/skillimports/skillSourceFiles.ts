/**
 * The files of a skill at its source. A git repository is fetched into a folder that is gone afterwards, one commit deep and without
 * configuration, hooks or filters of anybody's; what choirctl read comes with the request.
 */
import { join } from "node:path"
import { Effect, FileSystem, Result } from "effect"
import { type SkillPin, type SkillSource } from "#schema/SkillOffer.ts"
import { Git } from "#src/choird/repos/Git.ts"
import { checkSource } from "#src/choird/repos/RepoSource.ts"
import { isHeld, shownPath } from "#src/choird/repos/Tree.ts"
import { type BundleFile, SKILL_FOLDERS_NAMED_MAX } from "#src/choird/repos/skillBundle.ts"
import { SKILL_FILE } from "#src/shared/image/skillFolder.ts"
import { badSkill, unreachable } from "./SkillRefused.ts"

/** A skill's files, with paths relative to its folder, and where exactly they are from. */
export interface SourceFiles {
  readonly files: ReadonlyArray<BundleFile>
  readonly pin: Omit<SkillPin, "sha256">
}

const LABEL = "the skill"

/** Folders of a repository that have a skill, the top as an empty text. */
const skillFolders = (paths: ReadonlyArray<string>): ReadonlyArray<string> =>
  paths.flatMap((path) =>
    path === SKILL_FILE ? [""] : path.endsWith(`/${SKILL_FILE}`) ? [path.slice(0, -SKILL_FILE.length - 1)] : []
  )

const isCalled = (folder: string, wanted: string) => folder === wanted || folder.endsWith(`/${wanted}`)

/** The one folder that is meant, or the names to choose from. */
const chosenFolder = (paths: ReadonlyArray<string>, wanted: string | undefined): Result.Result<string, string> => {
  const all = skillFolders(paths)
  const found = wanted === undefined ? all : all.filter((folder) => isCalled(folder, wanted.replace(/^\/+|\/+$/gu, "")))
  const [only, ...more] = found
  if (only !== undefined && (more.length === 0 || (wanted === undefined && only === ""))) return Result.succeed(only)
  const named = (found.length === 0 ? all : found)
    .slice(0, SKILL_FOLDERS_NAMED_MAX)
    .map((folder) => shownPath(folder || "."))
  if (named.length === 0) return Result.fail(`it has no ${SKILL_FILE}`)
  const which =
    wanted === undefined || found.length > 0 ? `it has ${found.length} skills` : `it has no skill ${shownPath(wanted)}`
  return Result.fail(`${which}: choose one with --skill: ${named.join(", ")}`)
}

const fromGit = Effect.fnUntraced(function* (
  { ref, skill, url }: Extract<SkillSource, { type: "git" }>,
  parent: string
) {
  const fs = yield* FileSystem.FileSystem
  const git = yield* Git
  const source = yield* Effect.mapError(Effect.fromResult(checkSource({ url, ref })), ({ problem }) =>
    unreachable({ message: `${shownPath(url)} at ${shownPath(ref)} cannot be used: ${problem}` })
  )
  yield* fs.makeDirectory(parent, { recursive: true, mode: 0o700 })
  const place = join(yield* fs.makeTempDirectoryScoped({ directory: parent, prefix: "skill-" }), "clone")
  yield* git.init(place)
  const remote = yield* git.lookup(place, source)
  yield* git.fetch(place, source, remote)
  const commit = yield* git.cached(place, source)
  if (commit === undefined) return yield* unreachable({ message: `${url} has no commit at ${ref}` })
  const chosen = chosenFolder(yield* git.paths(place, commit), skill)
  if (Result.isFailure(chosen)) return yield* badSkill(`${url}: ${chosen.failure}`, "name one of its skills")
  const folder = chosen.success
  const tree = yield* git.subtree(place, commit, folder)
  if (tree === undefined) return yield* unreachable({ message: `git cannot read the folder ${shownPath(folder)}` })
  const found = yield* git.files(place, tree, LABEL, { held: () => true })
  const files = found.flatMap((file) => (isHeld(file) ? [file] : []))
  if (files.length < found.length) return yield* badSkill(`${LABEL}: its files are larger than is read of a skill`)
  const from = folder === "" ? url : `${url} ${folder}`
  return { files, pin: { from, ref, commit, tree } } satisfies SourceFiles
}, Effect.scoped)

/** @param parent a folder of choird's own, where a clone is made and removed. */
export const sourceFiles = (source: SkillSource, parent: string) => {
  if (source.type === "git")
    return Effect.catchTags(fromGit(source, parent), {
      BadRepository: ({ problems }) =>
        Effect.fail(badSkill(problems.map(({ path, reason }) => `${path}: ${reason}`).join("\n"))),
      FetchFailed: (error) => Effect.fail(unreachable(error)),
      GitFailed: (error) => Effect.fail(unreachable(error)),
      GitMissing: (error) => Effect.fail(unreachable(error)),
      PlatformError: (error) => Effect.fail(unreachable(error)),
      RefNotFound: (error) => Effect.fail(unreachable(error))
    })
  const files = source.files.map(({ base64, executable, path }) => ({
    path,
    executable,
    bytes: Buffer.from(base64, "base64")
  }))
  return Effect.succeed<SourceFiles>({ files, pin: { from: source.from } })
}
