/**
 * The files of a skill on this host, read for choird. No link is followed, and nothing but plain files of one name each is read: what a person
 * is shown later is what is in the folder, and not a file that the folder points to.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { Effect, Result } from "effect"
import {
  SKILL_BUNDLE_BYTES_MAX,
  SKILL_BUNDLE_FILES_MAX,
  type SkillFile,
  TRIED_BYTES_MAX,
  TRIED_FILES_MAX
} from "#schema/SkillOffer.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { descriptorPath, openFolder } from "#src/shared/files/nofollow.ts"
import { failed, usageError } from "#src/choirctl/terminal/failure.ts"
import { safeLine } from "#src/choirctl/terminal/text.ts"

/** Entries of the folder and of those in it that are looked at. */
const ENTRIES_MAX = 2000
/** Folders within folders. */
const DEPTH_MAX = 16
/** A folder's own repository does not belong to the skill. */
const LEFT_OUT = new Set([".git"])

const OPEN = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

interface Limits {
  readonly files: number
  readonly bytes: number
}

/** Of a skill that is added. */
const ADDED: Limits = { files: SKILL_BUNDLE_FILES_MAX, bytes: SKILL_BUNDLE_BYTES_MAX }

/** Of a folder that a trial is given. */
export const TRIED: Limits = { files: TRIED_FILES_MAX, bytes: TRIED_BYTES_MAX }

interface Walk {
  readonly limits: Limits
  readonly files: Array<SkillFile>
  readonly problems: Array<string>
  bytes: number
  entries: number
}

const refusedKind = (path: string): string | undefined => {
  const stat = lstatSync(path)
  if (stat.isSymbolicLink()) return "a symbolic link is refused: copy what it points to"
  if (stat.isFile() && stat.nlink > 1) return "a file with a second name (a hard link) is refused: copy it"
  return stat.isFile() || stat.isDirectory() ? undefined : "neither a file nor a folder"
}

const readOne = (walk: Walk, place: string, path: string) => {
  const file = openSync(place, OPEN)
  try {
    const stat = fstatSync(file)
    if (!stat.isFile() || stat.nlink > 1) return walk.problems.push(`${path}: it changed while it was read`)
    walk.bytes += stat.size
    if (walk.bytes > walk.limits.bytes) return
    const bytes = readFileSync(file).subarray(0, stat.size)
    const executable = (stat.mode & constants.S_IXUSR) !== 0
    return walk.files.push({ path, executable, base64: bytes.toString("base64") })
  } finally {
    closeSync(file)
  }
}

const isOver = ({ bytes, entries, files, limits }: Walk) =>
  bytes > limits.bytes || entries > ENTRIES_MAX || files.length > limits.files

const walkFolder = (walk: Walk, root: number, names: ReadonlyArray<string>): void => {
  const folder = openFolder(root, names, { create: false })
  try {
    const found = readdirSync(descriptorPath(folder)).sort()
    walk.entries += found.length
    if (names.length >= DEPTH_MAX && found.length > 0)
      return void walk.problems.push(`${names.join("/")}: more than ${DEPTH_MAX} folders deep`)
    for (const name of found) {
      if (isOver(walk)) return
      if (LEFT_OUT.has(name)) continue
      const place = `${descriptorPath(folder)}/${name}`
      const path = [...names, name].join("/")
      const problem = refusedKind(place)
      if (problem !== undefined) walk.problems.push(`${path}: ${problem}`)
      else if (lstatSync(place).isDirectory()) walkFolder(walk, root, [...names, name])
      else readOne(walk, place, path)
    }
  } finally {
    closeSync(folder)
  }
}

const limitProblem = ({ bytes, entries, files, limits }: Walk): string | undefined => {
  if (bytes > limits.bytes) return `more than ${bytesText(limits.bytes)}`
  if (files.length > limits.files || entries > ENTRIES_MAX) return `more than ${limits.files} files`
  return undefined
}

const read = (path: string, limits: Limits): Walk => {
  const walk: Walk = { limits, files: [], problems: [], bytes: 0, entries: 0 }
  const stat = lstatSync(path)
  if (!stat.isDirectory()) {
    const problem = refusedKind(path)
    if (problem === undefined) readOne(walk, path, basename(path))
    else walk.problems.push(`${basename(path)}: ${problem}`)
    return walk
  }
  const root = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    walkFolder(walk, root, [])
  } finally {
    closeSync(root)
  }
  return walk
}

/** The files of a skill's folder, or of the one file that a skill is. */
export const skillFolderFiles = Effect.fn("choirctl.skillFolderFiles")(function* (
  path: string,
  limits: Limits = ADDED
) {
  const walked = yield* Effect.fromResult(
    Result.try({
      try: () => read(join(path), limits),
      catch: (error) =>
        usageError(`${path} cannot be read: ${error instanceof Error ? error.message : "unknown"}`, "correct the path")
    })
  )
  const limit = limitProblem(walked)
  const problems = limit === undefined ? walked.problems : [`${path}: ${limit}`]
  if (problems.length > 0)
    return yield* failed("BAD_SKILL", problems.map(safeLine).join("\n"), "correct these files, then add it again")
  return walked.files
})
