/**
 * The versions of all files of a workspace before and after a command, by which a command of a labelled lane labels what it changed and nothing else.
 * No link is followed. What cannot be looked at whole has no versions, so that the command may have changed anything.
 */
import * as fs from "node:fs"
import { lstat, opendir, statfs } from "node:fs/promises"
import { promisify } from "node:util"
import { descriptorPath } from "#src/shared/files/nofollow.ts"
import { closeLater } from "./workspaceFiles.ts"

const { constants } = fs
const open = promisify(fs.open)

/** Files and folders of a workspace that are looked at. */
export const TREE_ENTRIES_MAX = 10_000
/** Folders in each other, each of which is open while what is in it is looked at. */
const TREE_DEPTH_MAX = 64
/** Entries of one folder that are looked at beside each other. */
const BESIDE_MAX = 64
/** The kernel gives two changes within this time the same date, so that what is changed later than this after a look has another one. */
export const TREE_TICK_MS = 20
const SECOND_NS = 1_000_000_000n

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

/**
 * File systems whose kernel dates each change of a file itself, so that no program can hide one: ext4, XFS, Btrfs, tmpfs, overlay, ZFS, F2FS. Others may
 * take the date of a change from what a program says.
 */
const DATES_CHANGES: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1, 0xf2f52010
])

/** git's own folders, which almost every command of git changes: they are taken for changed, and a look leaves them out. */
const GIT = ".git"

interface Version {
  readonly isFolder: boolean
  readonly text: string
}

export type TreeVersions = ReadonlyMap<string, Version>

/** A workspace that cannot be looked at whole. */
class TooMuch extends Error {}

const versionOf = (stat: fs.BigIntStats): Version => ({
  isFolder: stat.isDirectory(),
  // The entries of a folder are looked at themselves; another folder of its name is another one.
  text: stat.isDirectory() ? `${stat.ino}` : `${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}`
})

/** The versions so far, and whether a date has a part of a second: a file system with whole seconds tells too little. */
interface Look {
  readonly found: Map<string, Version>
  readonly device: bigint
  isFine: boolean
}

const visit = async (folder: number, path: string, depth: number, look: Look, signal: AbortSignal): Promise<void> => {
  const { found } = look
  const names: Array<string> = []
  for await (const { name } of await opendir(descriptorPath(folder))) {
    names.push(name)
    if (names.length + found.size > TREE_ENTRIES_MAX) throw new TooMuch()
  }
  const within = (name: string) => (path === "" ? name : `${path}/${name}`)
  for (let from = 0; from < names.length; from += BESIDE_MAX) {
    signal.throwIfAborted()
    const some = names.slice(from, from + BESIDE_MAX)
    // A name that is not UTF-8 is not found, and no path of an event could say it.
    const stats = await Promise.all(some.map((name) => lstat(`${descriptorPath(folder)}/${name}`, { bigint: true })))
    for (const [at, stat] of stats.entries()) {
      found.set(within(some[at] ?? ""), versionOf(stat))
      look.isFine ||= stat.ctimeNs % SECOND_NS !== 0n
      // Something else is mounted there.
      if (stat.isDirectory() && stat.dev !== look.device) throw new TooMuch()
    }
  }
  for (const name of names) {
    if (found.get(within(name))?.isFolder !== true || name.toLowerCase() === GIT) continue
    if (depth === TREE_DEPTH_MAX) throw new TooMuch()
    const child = await open(`${descriptorPath(folder)}/${name}`, FOLDER)
    try {
      await visit(child, within(name), depth + 1, look, signal)
    } finally {
      closeLater(child)
    }
  }
}

/** The versions of everything below an open folder; `undefined` where they are too many or something moved meanwhile. */
export const treeVersions = async (root: number, signal: AbortSignal): Promise<TreeVersions | undefined> => {
  try {
    const { type } = await statfs(descriptorPath(root))
    if (!DATES_CHANGES.has(type)) return undefined
    const { dev } = await lstat(`${descriptorPath(root)}/.`, { bigint: true })
    const look: Look = { found: new Map(), device: dev, isFine: false }
    await visit(root, "", 0, look, signal)
    return look.isFine || look.found.size === 0 ? look.found : undefined
  } catch {
    return undefined
  }
}

const isGit = (path: string): boolean => path.toLowerCase() === GIT || path.toLowerCase().endsWith(`/${GIT}`)

/** The paths that were made, moved or changed between two looks. What is in a folder that is new is not named beside it. */
export const changedPaths = (before: TreeVersions, after: TreeVersions): ReadonlyArray<string> => {
  const isChanged = (path: string, { isFolder, text }: Version) =>
    before.get(path)?.text !== text || (isFolder && isGit(path))
  const changed = new Set<string>()
  for (const [path, version] of [...after].toSorted(([one], [other]) => one.length - other.length)) {
    const isNamed = [...path.matchAll(/\//gu)].some(({ index }) => changed.has(path.slice(0, index)))
    if (!isNamed && isChanged(path, version)) changed.add(path)
  }
  return [...changed]
}
