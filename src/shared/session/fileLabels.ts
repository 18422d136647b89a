/**
 * The files of a workspace that hold text from outside, each with where that came from. The log is the authority, by the paths that tools wrote:
 * a mark on a file itself would be lost by the next copy, and any command could take it away. A label of a folder counts for all below it.
 */
import type { Source } from "#schema/Source.ts"
import { withSources } from "./sources.ts"

export type FileLabels = ReadonlyMap<string, ReadonlyArray<Source>>

/** Files and folders of one workspace that have labels of their own; files of one folder then become that folder. */
export const LABELLED_FILES_MAX = 256
/** Characters of such a path; of a longer one its folder is labelled. */
export const LABELLED_PATH_CHARS_MAX = 256
/** Characters of all paths and sources together. */
const LABELS_CHARS_MAX = 48 * 1024

/** Paths in folders with copies of files that have other paths elsewhere: git's own, the worktrees of jobs, and what was sent to people. */
const IS_COPY = /(?:^|\/)(?:\.git|\.worktrees|\.choirtmp\/send\/\.kept)\/./u
/** Signs that some file systems leave out of a name. */
const UNSEEN = /\p{Default_Ignorable_Code_Point}/gu

export const NO_FILES: FileLabels = new Map()

/**
 * A path as labels are compared: some file systems take spellings of one name for the same. Capitals first, which letters have in common that are
 * not each other's small one: the two small sigmas, or sz and ss.
 */
const compared = (path: string): string =>
  path.replaceAll(UNSEEN, "").normalize("NFKC").toUpperCase().toLowerCase().normalize("NFKC")

const isAt = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`)

/** The folder around a path; empty for the workspace itself. */
const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf("/")))

/** The sources of all labelled files. */
export const sourcesOfAll = (labels: FileLabels): ReadonlyArray<Source> =>
  [...labels.values()].reduce<ReadonlyArray<Source>>((all, sources) => withSources(all, sources), [])

/** The labels of what is at these paths, or of all files where nobody knows the paths; none where nothing there is labelled. */
export const labelsAt = (
  labels: FileLabels,
  paths: ReadonlyArray<string> | undefined
): ReadonlyArray<ReadonlyArray<Source>> => {
  if (labels.size === 0) return []
  const looked = paths?.map(compared)
  if (looked === undefined || looked.some((path) => IS_COPY.test(path))) return [...labels.values()]
  return [...labels].flatMap(([labelled, sources]) => {
    const at = compared(labelled)
    return looked.some((path) => isAt(path, at)) ? [sources] : []
  })
}

const isTooMuch = (labels: FileLabels): boolean => {
  let chars = 0
  for (const [path, sources] of labels) {
    chars += path.length
    for (const source of sources) chars += source.length
  }
  return labels.size > LABELLED_FILES_MAX || chars > LABELS_CHARS_MAX
}

/** The folder with the most labelled paths in it; `undefined` where all are in the workspace's own. */
const fullestFolder = (labels: FileLabels): string | undefined => {
  const counts = new Map<string, number>()
  for (const path of labels.keys()) {
    const folder = parentOf(path)
    if (folder !== "") counts.set(folder, (counts.get(folder) ?? 0) + 1)
  }
  const [fullest] = [...counts].toSorted(([, one], [, other]) => other - one)
  return fullest?.[0]
}

/** One label for all of a folder. */
const joined = (labels: FileLabels, folder: string): FileLabels => {
  const kept = [...labels].filter(([path]) => !isAt(path, folder))
  const below = new Map([...labels].filter(([path]) => isAt(path, folder)))
  return new Map([...kept, [folder, sourcesOfAll(below)]])
}

/** The path whose label says the same of a longer one, or of one in git's own folder, of which git makes others. */
const shortPath = (path: string): string => {
  const git = path.split("/").findIndex((name) => compared(name) === ".git")
  let short = git === -1 ? path : path.split("/", git + 1).join("/")
  while (short.length > LABELLED_PATH_CHARS_MAX) short = parentOf(short)
  return short
}

/**
 * With these paths labelled too; the same where nothing is new. `undefined` where only a label of the whole workspace says enough, since labels are
 * too many and no folder holds them.
 */
export const withFileLabels = (
  labels: FileLabels,
  paths: ReadonlyArray<string>,
  sources: ReadonlyArray<Source>
): FileLabels | undefined => {
  let next: FileLabels = labels
  for (const each of paths) {
    const path = shortPath(each)
    if (path === "") return undefined
    const known = next.get(path)
    const all = withSources(known ?? [], sources)
    if (known !== undefined && all === known) continue
    next = new Map([...next, [path, all]])
  }
  while (isTooMuch(next)) {
    const folder = fullestFolder(next)
    if (folder === undefined) return undefined
    next = joined(next, folder)
  }
  return next
}
