/**
 * Folders of the workspace that stay open for a moment, since lanes read one file after the other from the same one. A folder is used again only
 * while the kernel says that it lies where its names lead, so that to read from it is the same as to walk there. Its word comes from memory: no
 * file system is asked.
 */
import { readlinkSync } from "node:fs"
import { descriptorPath } from "#src/shared/files/nofollow.ts"
import { closeLater, openFolder } from "./workspaceFiles.ts"

/** Folders that are open at once beside those in use; the oldest go first. */
export const FOLDERS_KEPT_MAX = 8
/** How long one stays open, so that nobody has to wait who wants to unmount a file system. */
export const FOLDER_KEPT_MS_MAX = 1000

/** What the kernel adds to the path of a folder that is gone. A folder may really be called so, and is never kept. */
const GONE = " (deleted)"

interface KeptFolder {
  readonly descriptor: number
  readonly opened_ms: number
  users: number
  isKept: boolean
}

export interface KeptFolders {
  /** Does something in the folder below the root that `names` lead to. */
  use<A>(names: ReadonlyArray<string>, signal: AbortSignal, act: (folder: number) => Promise<A>): Promise<A>
  /** Closes them, each once nobody uses it. */
  close(): void
}

const placeOf = (descriptor: number): string => readlinkSync(descriptorPath(descriptor))

export const makeKeptFolders = (root: number): KeptFolders => {
  const kept = new Map<string, KeptFolder>()
  let timer: NodeJS.Timeout | undefined

  const closeUnused = (folder: KeptFolder) => {
    if (!folder.isKept && folder.users === 0) closeLater(folder.descriptor)
  }
  const letGo = (path: string, folder: KeptFolder) => {
    if (kept.get(path) === folder) kept.delete(path)
    folder.isKept = false
    closeUnused(folder)
  }
  const letOldGo = () => {
    timer = undefined
    const now = performance.now()
    for (const [path, folder] of kept) if (now - folder.opened_ms >= FOLDER_KEPT_MS_MAX) letGo(path, folder)
    later()
  }
  const later = () => {
    if (kept.size > 0) timer ??= setTimeout(letOldGo, FOLDER_KEPT_MS_MAX).unref()
  }

  const known = (path: string): KeptFolder | undefined => {
    const folder = kept.get(path)
    if (folder === undefined) return undefined
    const top = placeOf(root)
    const isThere = placeOf(folder.descriptor) === `${top === "/" ? "" : top}/${path}`
    if (isThere && performance.now() - folder.opened_ms < FOLDER_KEPT_MS_MAX) return folder
    letGo(path, folder)
    return undefined
  }
  const keep = (path: string, descriptor: number): KeptFolder => {
    const folder = { descriptor, opened_ms: performance.now(), users: 0, isKept: !path.endsWith(GONE) }
    if (!folder.isKept) return folder
    const before = kept.get(path)
    if (before !== undefined) letGo(path, before)
    kept.set(path, folder)
    for (const [oldest, each] of kept) {
      if (kept.size <= FOLDERS_KEPT_MAX) break
      letGo(oldest, each)
    }
    later()
    return folder
  }

  return {
    use: async (names, signal, act) => {
      if (names.length === 0) return await act(root)
      const path = names.join("/")
      const folder = known(path) ?? keep(path, await openFolder(root, names, false, signal))
      folder.users += 1
      try {
        return await act(folder.descriptor)
      } finally {
        folder.users -= 1
        closeUnused(folder)
      }
    },
    close: () => {
      clearTimeout(timer)
      for (const [path, folder] of kept) letGo(path, folder)
    }
  }
}
