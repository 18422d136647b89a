/**
 * A skill of somebody else as files: read with limits, and refused with the path and the reason, before anything of it is stored. One rule
 * for every origin. Pure.
 */
import { createHash } from "node:crypto"
import { isUtf8 } from "node:buffer"
import { Result } from "effect"
import type { SkillSpec } from "#schema/Skill.ts"
import { SKILL_BUNDLE_BYTES_MAX, SKILL_BUNDLE_FILES_MAX } from "#schema/SkillOffer.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { hiddenProblem, hiddenValues } from "#src/shared/image/hiddenCharacters.ts"
import { readSkillFolder, SKILL_FILE, withTools } from "#src/shared/image/skillFolder.ts"
import { readSkill, type SkillSources } from "#src/shared/image/skillFile.ts"

/** Folders within folders of one skill. */
const SKILL_BUNDLE_DEPTH_MAX = 8
/** Problems of one skill that are reported at once. */
const BUNDLE_PROBLEMS_MAX = 20
const PATH_CHARS_MAX = 200
/** Skills of one repository that a refusal names. */
export const SKILL_FOLDERS_NAMED_MAX = 20

export interface BundleFile {
  readonly path: string
  readonly executable: boolean
  readonly bytes: Uint8Array
}

export interface BundleProblem {
  readonly path: string
  readonly reason: string
}

export interface SkillBundle {
  readonly spec: SkillSpec
  /** The skill as its file writes it, where `spec` has the schemas in the places of their pins. */
  readonly written: unknown
  /** With their paths in a repository, such as `skills/notes/SKILL.md`. */
  readonly files: ReadonlyArray<BundleFile>
  readonly sha256: string
}

/** The one digest of these files; a changed byte, path or mode is another one. */
export const bundleDigest = (
  files: ReadonlyArray<{ readonly path: string; readonly executable: boolean; readonly sha256: string }>
): string => {
  const hash = createHash("sha256")
  for (const { executable, path, sha256 } of [...files].sort((a, b) => (a.path < b.path ? -1 : 1)))
    hash.update(`${path}\0${executable ? "x" : "-"}\0${sha256}\n`)
  return hash.digest("hex")
}

const digestOfBytes = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")

/** A path as it may be printed. */
const shown = (path: string) => path.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, "?").slice(0, PATH_CHARS_MAX)

/** Plain names only, so that a path is what it looks like. */
const PLAIN = /^[A-Za-z0-9_][A-Za-z0-9 ()+,=@._-]*$/u
/** Files whose name alone makes git or a shell do something, wherever they are. */
const MEANT_FOR_PROGRAMS = /^\.|^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/iu

const pathProblem = (path: string): string | undefined => {
  const parts = path.split("/")
  if (parts.length > SKILL_BUNDLE_DEPTH_MAX) return `more than ${SKILL_BUNDLE_DEPTH_MAX} folders deep: move it up`
  const bad = parts.find((part) => MEANT_FOR_PROGRAMS.test(part) || !PLAIN.test(part))
  if (bad === undefined) return undefined
  return MEANT_FOR_PROGRAMS.test(bad)
    ? "hidden files and names of devices are refused: leave it out"
    : "a name may hold a-z, A-Z, 0-9, blanks and ( ) + , = @ . _ -: rename it"
}

/** Names that are one on some file system, where the second would replace the first. */
const collisions = (files: ReadonlyArray<BundleFile>): ReadonlyArray<BundleProblem> => {
  const counts = new Map<string, number>()
  const spelled = new Map<string, string>()
  for (const { path } of files) counts.set(path.toLowerCase(), (counts.get(path.toLowerCase()) ?? 0) + 1)
  return files.flatMap(({ path }) => {
    const parts = path.split("/")
    const clash = parts.some((_, index) => {
      const prefix = parts.slice(0, index + 1).join("/")
      const folded = prefix.toLowerCase()
      const known = spelled.get(folded) ?? prefix
      spelled.set(folded, known)
      return known !== prefix || (counts.get(folded) ?? 0) > (index === parts.length - 1 ? 1 : 0)
    })
    return clash ? [{ path: shown(path), reason: "two names are the same or differ only in case: keep one" }] : []
  })
}

const contentProblem = ({ bytes }: BundleFile): string | undefined => {
  if (!isUtf8(bytes) || bytes.includes(0)) return undefined
  const text = Buffer.from(bytes).toString("utf8")
  return hiddenProblem(text.replace(/^\u{FEFF}/u, "").replaceAll("\r\n", "\n"))
}

/** The file with these tools named, in place of any that it names. */
const allowing = (file: BundleFile, tools: ReadonlyArray<string>): Result.Result<BundleFile, BundleProblem> => {
  const named = file.path === SKILL_FILE ? withTools(Buffer.from(file.bytes).toString("utf8"), tools) : undefined
  return named === undefined
    ? Result.fail({ path: file.path, reason: "--tools needs a SKILL.md with front matter" })
    : Result.succeed({ ...file, bytes: Buffer.from(named) })
}

const jsonName = (path: string): string | undefined => /^([^/]+)\.json$/u.exec(path)?.[1]

/** The skill itself: SKILL.md at the top, or the one JSON file that there is. */
const mainOf = (files: ReadonlyArray<BundleFile>): Result.Result<BundleFile, BundleProblem> => {
  const main = files.find(({ path }) => path === SKILL_FILE)
  if (main !== undefined) return Result.succeed(main)
  const [only, ...more] = files
  if (only !== undefined && more.length === 0 && jsonName(only.path) !== undefined) return Result.succeed(only)
  const near = files.find(({ path }) => path.toLowerCase() === SKILL_FILE.toLowerCase())
  return Result.fail(
    near === undefined
      ? { path: SKILL_FILE, reason: `it is missing: a skill is a folder with a ${SKILL_FILE}, or a file <name>.json` }
      : { path: shown(near.path), reason: `name it ${SKILL_FILE}` }
  )
}

const specOf = (
  main: BundleFile,
  sources: SkillSources
): Result.Result<Pick<SkillBundle, "spec" | "written">, ReadonlyArray<string>> => {
  if (!isUtf8(main.bytes)) return Result.fail(["not UTF-8"])
  const text = Buffer.from(main.bytes).toString("utf8")
  const stem = jsonName(main.path)
  if (stem !== undefined)
    return Result.flatMap(readSkill(stem, text, sources), (spec) => {
      const written: unknown = JSON.parse(text)
      // JSON has escapes, which the text does not show.
      const escaped = hiddenValues(written)
      return escaped.length > 0 ? Result.fail(escaped) : Result.succeed({ spec, written })
    })
  return Result.flatMap(readSkillFolder(undefined, text), (written) =>
    Result.map(readSkill(written.name, JSON.stringify(written), sources), (spec) => ({ spec, written }))
  )
}

const wholeProblems = (files: ReadonlyArray<BundleFile>): ReadonlyArray<BundleProblem> => {
  const whole = (reason: string) => [{ path: "(all files)", reason }]
  if (files.length > SKILL_BUNDLE_FILES_MAX) return whole(`more than ${SKILL_BUNDLE_FILES_MAX} files`)
  const bytes = files.reduce((sum, file) => sum + file.bytes.length, 0)
  return bytes > SKILL_BUNDLE_BYTES_MAX ? whole(`more than ${bytesText(SKILL_BUNDLE_BYTES_MAX)}`) : []
}

/**
 * The skill of a folder's files, whose paths are relative to it.
 *
 * @param allow tools for it, in place of those that it names.
 */
export const readBundle = (
  given: ReadonlyArray<BundleFile>,
  { allow = [], ...sources }: SkillSources & { readonly allow?: ReadonlyArray<string> } = {}
): Result.Result<SkillBundle, ReadonlyArray<BundleProblem>> => {
  const large = wholeProblems(given)
  if (large.length > 0) return Result.fail(large)
  const problems = [
    ...given.flatMap((file) => {
      const reason = pathProblem(file.path) ?? contentProblem(file)
      return reason === undefined ? [] : [{ path: shown(file.path), reason }]
    }),
    ...collisions(given)
  ]
  const found = mainOf(given)
  if (Result.isFailure(found)) return Result.fail([...problems, found.failure].slice(0, BUNDLE_PROBLEMS_MAX))
  const main = allow.length === 0 ? found : allowing(found.success, allow)
  if (Result.isFailure(main)) return Result.fail([...problems, main.failure].slice(0, BUNDLE_PROBLEMS_MAX))
  const spec = specOf(main.success, sources)
  if (Result.isFailure(spec))
    problems.push(...spec.failure.map((reason) => ({ path: shown(main.success.path), reason })))
  if (problems.length > 0 || Result.isFailure(spec)) return Result.fail(problems.slice(0, BUNDLE_PROBLEMS_MAX))
  const { name } = spec.success.spec
  const folder = main.success.path === SKILL_FILE ? `skills/${name}` : "skills"
  const files = given.map((file) => {
    const { bytes, executable } = file.path === main.success.path ? main.success : file
    return { path: `${folder}/${file.path}`, executable, bytes }
  })
  const sha256 = bundleDigest(files.map((file) => ({ ...file, sha256: digestOfBytes(file.bytes) })))
  return Result.succeed({ ...spec.success, files, sha256 })
}
