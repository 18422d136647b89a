/** Reads what git prints of a tree and refuses whatever could leave the clone or mislead a reader of it (D23, R75). */
import { isUtf8 } from "node:buffer"
import { Result, Schema } from "effect"
import {
  REPO_BYTES_MAX,
  REPO_FILE_BYTES_MAX,
  REPO_FILES_MAX,
  REPO_PATH_BYTES_MAX,
  REPO_PROBLEMS_MAX
} from "#src/shared/limits.ts"

/** One thing that is wrong with a repository, for people. */
export const RepoProblem = Schema.Struct({ repo: Schema.String, path: Schema.String, reason: Schema.String })
export type RepoProblem = typeof RepoProblem.Type

/** A repository whose contents are refused, with every problem that was found, at most {@link REPO_PROBLEMS_MAX}. */
export class BadRepository extends Schema.TaggedError<BadRepository>()("BadRepository", {
  problems: Schema.Array(RepoProblem)
}) {
  override get message() {
    const lines = this.problems.map(({ repo, path, reason }) => `  ${repo}: ${path}: ${reason}`)
    return `correct these files, commit, and build again:\n${lines.join("\n")}`
  }
}

export const badRepository = (problems: ReadonlyArray<RepoProblem>) =>
  new BadRepository({ problems: problems.slice(0, REPO_PROBLEMS_MAX) })

/** A path as it may be printed: nothing in it moves a cursor, hides, or turns the writing around. */
export const shownPath = (path: string): string =>
  path
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
    .slice(0, 200)

export interface TreeEntry {
  readonly mode: string
  readonly id: string
  readonly bytes: number
  readonly path: string
  /** False for a name that is no UTF-8; `path` is then only good for showing. */
  readonly utf8: boolean
}

/** A file of a repository, in memory. */
export interface RepoFile {
  readonly path: string
  readonly executable: boolean
  readonly bytes: Uint8Array
}

const HEADER = /^(\d{6}) (blob|commit|tree) ([0-9a-f]{40}|[0-9a-f]{64}) +(\d+|-)$/u

/** The entries of `git ls-tree -r -l -z`, or `undefined` when the output is not of that form. */
export const parseTree = (output: Uint8Array): ReadonlyArray<TreeEntry> | undefined => {
  const text = Buffer.from(output).toString("latin1")
  const entries: Array<TreeEntry> = []
  for (const line of text.split("\0").slice(0, -1)) {
    const tab = line.indexOf("\t")
    const header = HEADER.exec(line.slice(0, Math.max(tab, 0)))
    if (header === null) return undefined
    const name = Buffer.from(line.slice(tab + 1), "latin1")
    const [, mode = "", , id = "", size = "-"] = header
    entries.push({ mode, id, bytes: Number(size) || 0, path: name.toString("utf8"), utf8: isUtf8(name) })
  }
  return entries
}

const MODES: Readonly<Record<string, string>> = {
  "120000": "a symbolic link is refused",
  "160000": "a submodule is refused"
}

const nameProblem = ({ path, utf8 }: TreeEntry): string | undefined => {
  if (!utf8) return "the name is not UTF-8"
  if (/[\p{C}\p{Zl}\p{Zp}]/u.test(path)) return "the name holds a control or invisible character"
  if (path.includes("\\")) return "the name holds a backslash"
  if (Buffer.byteLength(path) > REPO_PATH_BYTES_MAX) return `the path is longer than ${REPO_PATH_BYTES_MAX} bytes`
  const parts = path.split("/")
  if (parts.some((part) => part === "" || part === "." || part === "..")) return "the path leaves its folder"
  if (parts.some((part) => /^\.git(?:modules)?$/iu.test(part))) return "git's own files are refused"
  return undefined
}

const entryProblem = (entry: TreeEntry): string | undefined => {
  if (entry.mode !== "100644" && entry.mode !== "100755")
    return MODES[entry.mode] ?? `file mode ${entry.mode} is refused`
  if (entry.bytes > REPO_FILE_BYTES_MAX) return `the file is larger than ${REPO_FILE_BYTES_MAX} bytes`
  return nameProblem(entry)
}

/** Names that fold to one on some file system, where the second file would replace the first. */
const collisions = (entries: ReadonlyArray<TreeEntry>) => {
  const spelled = new Map<string, string>()
  const clashing: Array<TreeEntry> = []
  for (const entry of entries) {
    const parts = entry.path.split("/")
    const clash = parts.some((_, index) => {
      const prefix = parts.slice(0, index + 1).join("/")
      const folded = prefix.normalize("NFC").toLowerCase()
      const known = spelled.get(folded)
      if (known === undefined) spelled.set(folded, prefix)
      return known !== undefined && known !== prefix
    })
    if (clash) clashing.push(entry)
  }
  return clashing
}

/** All that is wrong with a tree, without reading one of its files. */
export const treeProblems = (repo: string, entries: ReadonlyArray<TreeEntry>): ReadonlyArray<RepoProblem> => {
  const whole = (reason: string) => [{ repo, path: "(all files)", reason }]
  if (entries.length > REPO_FILES_MAX) return whole(`more than ${REPO_FILES_MAX} files`)
  const single = entries.flatMap((entry) => {
    const reason = entryProblem(entry)
    return reason === undefined ? [] : [{ repo, path: shownPath(entry.path), reason }]
  })
  const twice = collisions(entries).map(({ path }) => ({
    repo,
    path: shownPath(path),
    reason: "the name differs from another only in case or accents"
  }))
  const total = entries.reduce((sum, { bytes }) => sum + bytes, 0)
  return [...single, ...twice, ...(total > REPO_BYTES_MAX ? whole(`more than ${REPO_BYTES_MAX} bytes`) : [])]
}

/** The blobs of `git cat-file --batch` by their id, or `undefined` when the output is not of that form. */
export const parseBlobs = (output: Uint8Array): Result.Result<ReadonlyMap<string, Uint8Array>, string> => {
  const bytes = Buffer.from(output.buffer, output.byteOffset, output.byteLength)
  const blobs = new Map<string, Uint8Array>()
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf(10, at)
    const header = /^([0-9a-f]{40}|[0-9a-f]{64}) blob (\d+)$/u.exec(bytes.toString("latin1", at, end < 0 ? at : end))
    if (header === null) return Result.fail("git did not give the blobs that it was asked for")
    const size = Number(header[2])
    if (end + 2 + size > bytes.length) return Result.fail("git's answer ends within a blob")
    blobs.set(header[1] ?? "", bytes.subarray(end + 1, end + 1 + size))
    at = end + 2 + size
  }
  return Result.succeed(blobs)
}
