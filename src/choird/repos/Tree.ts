/** The tree of a repository, read from git's output. Entries that could leave the clone or mislead a reader are refused (D23, R75). */
import { isUtf8 } from "node:buffer"
import { Schema } from "effect"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { MANIFEST_BYTES_MAX } from "#src/shared/image/toolManifest.ts"

/** Paths and, for each, the SHA-256 of its content and whether it is executable. */
export const Contents = Schema.Record(Schema.String, Schema.String)
export type Contents = typeof Contents.Type

/** The files that an image is made of. */
const MATTERS = /^(?:tools|skills|schemas|profiles|identity)\/|^Dockerfile(?:\.base)?$/u

export const contentsOf = (files: ReadonlyArray<RepoFile>): Contents =>
  Object.fromEntries(
    files
      .filter(({ path }) => MATTERS.test(path))
      .map((file) => [file.path, `${digestOf(file)}${file.executable ? " x" : ""}`])
  )

/** Files in the tree of a global or agent repository (R75). */
export const REPO_FILES_MAX = 5000
/** One file of a global or agent repository (R75). */
export const REPO_FILE_BYTES_MAX = 20 * 1024 * 1024
/** All files of a global or agent repository (R75). They are streamed; the next three limits say what is in memory. */
const REPO_BYTES_MAX = 200 * 1024 * 1024
/** Manifests, skills, identity and Dockerfiles of one repository, which choird reads itself. */
const REPO_READ_BYTES_MAX = 8 * 1024 * 1024
/** The path of a file in a global or agent repository. */
export const REPO_PATH_BYTES_MAX = 512
/** Folders within folders of a global or agent repository. */
const REPO_DEPTH_MAX = 32
/** Folders of a global or agent repository. */
export const REPO_FOLDERS_MAX = 5000
/** Problems of a repository that are reported at once. */
const REPO_PROBLEMS_MAX = 50

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

/** A path that is safe to print: nothing in it moves a cursor, hides, or reverses the text. */
export const shownPath = (path: string): string =>
  path
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
    .slice(0, 200)

export interface TreeEntry {
  readonly mode: string
  readonly id: string
  readonly bytes: number
  readonly path: string
  /** False for a name that is not UTF-8; `path` is then only for display. */
  readonly utf8: boolean
}

/** The content of a file that is not held in memory. */
export interface StoredBlob {
  readonly size: number
  /** Lowercase hex. */
  readonly sha256: string
  /** The file of this host with the content; absent where nobody asked for it. */
  readonly file?: string
}

/** A file of a repository. Small ones that choird reads itself are in memory, all others are a digest and perhaps a file of this host. */
export interface RepoFile {
  readonly path: string
  readonly executable: boolean
  readonly bytes: Uint8Array | StoredBlob
}

/** A file whose content is in memory. */
export interface HeldFile extends RepoFile {
  readonly bytes: Uint8Array
}

export const isHeld = (file: RepoFile): file is HeldFile => file.bytes instanceof Uint8Array

export const sizeOf = ({ bytes }: RepoFile): number => (bytes instanceof Uint8Array ? bytes.length : bytes.size)

export const digestOf = ({ bytes }: RepoFile): string => (bytes instanceof Uint8Array ? sha256(bytes) : bytes.sha256)

/** The files of a repository that choird itself reads: manifests, skills and their pins, schemas, profiles, identity and Dockerfiles. */
const READ =
  /^(?:(?:tools|skills|schemas|profiles)\/[^/]+\.json|skills\/[^/]+\/SKILL\.md|identity\/[^/]+|Dockerfile(?:\.base)?|skills\.lock\.json)$/u

/** Programs of tools that are small enough to be scripts, whose beginning says whether a system can run them. */
const SCRIPT = /^tools\/[^/]+$/u
const SCRIPT_BYTES_MAX = 64 * 1024

/** Whether choird reads the file, and would not refuse it for its size alone. */
export const isRead = ({ bytes, path }: Pick<TreeEntry, "bytes" | "path">): boolean =>
  (bytes <= MANIFEST_BYTES_MAX && READ.test(path)) || (bytes <= SCRIPT_BYTES_MAX && SCRIPT.test(path))

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

/** The problem of a path that is too long or too deep for a repository. */
export const pathProblem = (path: string): string | undefined => {
  if (Buffer.byteLength(path) > REPO_PATH_BYTES_MAX) return `the path is longer than ${REPO_PATH_BYTES_MAX} bytes`
  return path.split("/").length - 1 > REPO_DEPTH_MAX
    ? `the path is more than ${REPO_DEPTH_MAX} folders deep`
    : undefined
}

const nameProblem = ({ path, utf8 }: TreeEntry): string | undefined => {
  if (!utf8) return "the name is not UTF-8"
  if (/[\p{C}\p{Zl}\p{Zp}]/u.test(path)) return "the name holds a control or invisible character"
  if (path.includes("\\")) return "the name holds a backslash"
  const parts = path.split("/")
  if (parts.some((part) => part === "" || part === "." || part === "..")) return "the path leaves its folder"
  if (parts.some((part) => /^\.git(?:modules)?$/iu.test(part))) return "git's own files are refused"
  return undefined
}

const entryProblem = (entry: TreeEntry): string | undefined => {
  if (entry.mode !== "100644" && entry.mode !== "100755")
    return MODES[entry.mode] ?? `file mode ${entry.mode} is refused`
  if (entry.bytes > REPO_FILE_BYTES_MAX) return `the file is larger than ${REPO_FILE_BYTES_MAX} bytes`
  return pathProblem(entry.path) ?? nameProblem(entry)
}

/** Problems of files by themselves, at most as many as are reported. */
const fileProblems = (repo: string, entries: ReadonlyArray<TreeEntry>): ReadonlyArray<RepoProblem> => {
  const problems: Array<RepoProblem> = []
  for (const entry of entries) {
    const reason = entryProblem(entry)
    if (reason !== undefined) problems.push({ repo, path: shownPath(entry.path), reason })
    if (problems.length === REPO_PROBLEMS_MAX) break
  }
  return problems
}

interface Folder {
  /** Folders in it, by their names. */
  readonly folders: Map<string, Folder>
  /** The first spelling of each name in it. */
  readonly spelled: Map<string, string>
}

interface SameNames {
  /** Paths with a name that is another spelling of an earlier one in the same folder. */
  readonly paths: ReadonlyArray<string>
  /** Whether there are more folders than were asked for; the search then ends there. */
  readonly isLarge: boolean
}

const folder = (): Folder => ({ folders: new Map(), spelled: new Map() })

/**
 * Finds names within one folder that are one on some file system, where the second would replace the first. Compares each name with those
 * beside it, and looks at a folder's name once for all files in it: the work grows
 * with the bytes of the paths.
 */
const sameNames = (paths: ReadonlyArray<string>, folders_max: number): SameNames => {
  const same: Array<string> = []
  const top = folder()
  let folders = 0
  /** Whether the name is the first of its kind in its folder, or spelled as that one is. */
  const isOwn = ({ spelled }: Folder, name: string) => {
    const folded = name.normalize("NFC").toLowerCase()
    const known = spelled.get(folded)
    if (known === undefined) spelled.set(folded, name)
    return known === undefined || known === name
  }
  for (const path of paths) {
    const names = path.split("/")
    const file = names.pop() ?? ""
    let here: Folder | undefined = top
    for (const name of names) {
      let next: Folder | undefined = here.folders.get(name)
      if (next === undefined && isOwn(here, name)) {
        if ((folders += 1) > folders_max) return { paths: same, isLarge: true }
        next = folder()
        here.folders.set(name, next)
      }
      here = next
      if (here === undefined) break
    }
    if (here === undefined || !isOwn(here, file)) same.push(path)
  }
  return { paths: same, isLarge: false }
}

/** All problems of a tree, found without reading its files. Names are compared once each path is known to be short. */
export const treeProblems = (repo: string, entries: ReadonlyArray<TreeEntry>): ReadonlyArray<RepoProblem> => {
  const whole = (reason: string) => [{ repo, path: "(all files)", reason }]
  if (entries.length > REPO_FILES_MAX) return whole(`more than ${REPO_FILES_MAX} files`)
  const sum = (some: ReadonlyArray<TreeEntry>) => some.reduce((total, { bytes }) => total + bytes, 0)
  const found = [
    ...fileProblems(repo, entries),
    ...(sum(entries) > REPO_BYTES_MAX ? whole(`more than ${REPO_BYTES_MAX} bytes`) : []),
    ...(sum(entries.filter(isRead)) > REPO_READ_BYTES_MAX
      ? whole(`more than ${REPO_READ_BYTES_MAX} bytes of manifests, skills, identity and Dockerfiles`)
      : [])
  ]
  if (found.length > 0) return found
  const { isLarge, paths } = sameNames(
    entries.map(({ path }) => path),
    REPO_FOLDERS_MAX
  )
  if (isLarge) return whole(`more than ${REPO_FOLDERS_MAX} folders`)
  return paths.map((path) => ({
    repo,
    path: shownPath(path),
    reason: "the name differs from another only in case or accents"
  }))
}
