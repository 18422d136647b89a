/**
 * The record of a build: digests of what the bundles were made from and of the files that came out. It is written last, so a
 * build that was interrupted, or files that were changed since, never count as built. Loads nothing but Node, because every
 * `npm start` and every test run looks here first.
 */
import { hash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** Digests of files by path. */
export type Digests = Readonly<Record<string, string>>

export interface BuildStamp {
  /** Digest of everything the bundles are made from. */
  readonly inputs: string
  /** Digest of what the database template is made from, which takes long and seldom changes. */
  readonly template_inputs: string
  /** Every file of the build, relative to `dist/`. */
  readonly files: Digests
  /** How long the build took, for the message of the next one. */
  readonly seconds: number
}

/** The file in `dist/` that holds the stamp. */
export const STAMP = "build.json"
export const TEMPLATE = "postgres-template.tar.gz"

const TEMPLATE_SOURCES = ["src/choird/database/pglite.ts", "src/choird/database/postgres-template.ts"]
/** The packages as npm resolved them, and as npm installed them. */
const PACKAGES = ["package-lock.json", "node_modules/.package-lock.json"]
const SOURCES = ["schema", "src", "demo", "tools", "rolldown.config.ts", "package.json", "tsconfig.json"]
/** The programs of the repository itself, which no bundle contains. */
const NOT_BUNDLED = /^(?:tools\/(?!build|BuildStamp|compileAgent)|demo\/[^/]+\.ts$)/u

/** Every file at `path` below `root`, sorted, so that the order of a folder's entries does not matter. */
export const filesAt = (root: string, path: string): ReadonlyArray<string> => {
  const place = join(root, path)
  if (!existsSync(place)) return []
  if (statSync(place).isFile()) return [path]
  return readdirSync(place, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .toSorted()
}

export const digestFiles = (root: string, paths: ReadonlyArray<string>): Digests =>
  Object.fromEntries(paths.map((path) => [path, hash("sha256", readFileSync(join(root, path)))]))

/** V8's compiled form and the database template fit one version of Node on one kind of machine. */
const digestInputs = (root: string, paths: ReadonlyArray<string>): string =>
  hash("sha256", JSON.stringify([process.version, process.arch, digestFiles(root, paths)]))

const inputsAt = (root: string, paths: ReadonlyArray<string>): string =>
  digestInputs(
    root,
    [...paths, ...PACKAGES].flatMap((path) => filesAt(root, path)).filter((path) => !NOT_BUNDLED.test(path))
  )

export const inputsOf = (root: string): string => inputsAt(root, SOURCES)
export const templateInputsOf = (root: string): string => inputsAt(root, TEMPLATE_SOURCES)

/** The stamp of the last complete build, if there is one. */
export const readStamp = (dist: string): BuildStamp | undefined => {
  try {
    return JSON.parse(readFileSync(join(dist, STAMP), "utf8")) as BuildStamp
  } catch {
    return undefined
  }
}

/** Replaces the stamp in one step. */
export const writeStamp = (dist: string, stamp: BuildStamp): void => {
  const partial = join(dist, `${STAMP}.${process.pid}`)
  writeFileSync(partial, `${JSON.stringify(stamp, undefined, 2)}\n`)
  renameSync(partial, join(dist, STAMP))
}

const unchanged = (dist: string, files: Digests): boolean => {
  try {
    return Object.entries(files).every(([path, digest]) => hash("sha256", readFileSync(join(dist, path))) === digest)
  } catch {
    return false
  }
}

/** Whether `dist/` holds, byte for byte, what a build of these inputs left there. */
export const isBuilt = (dist: string, inputs: string): boolean => {
  const stamp = readStamp(dist)
  return stamp?.inputs === inputs && unchanged(dist, stamp.files)
}

/** Whether the database template in `dist/` can stay. */
export const hasTemplate = (dist: string, template_inputs: string): boolean => {
  const stamp = readStamp(dist)
  const digest = stamp?.files[TEMPLATE]
  return stamp?.template_inputs === template_inputs && digest !== undefined && unchanged(dist, { [TEMPLATE]: digest })
}
