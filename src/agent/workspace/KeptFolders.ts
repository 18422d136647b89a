/**
 * Folders of the workspace that stay open for a moment, since lanes read one file after the other from the same one. A folder is used again only
 * while the kernel says that it lies where its names lead, so that to read from it is the same as to walk there. Its word comes from memory: no
 * file system is asked.
 */
import { readlinkSync } from "node:fs"
import { Effect, Queue } from "effect"
import { restarted } from "#src/shared/background.ts"
import { descriptorPath } from "#src/shared/files/nofollow.ts"
import { closeLater, openFolder } from "./workspaceFiles.ts"

/** Folders that are open at once beside those in use; the oldest go first. */
export const FOLDERS_KEPT_MAX = 8
/** How long one stays open at most, so that nobody has to wait who wants to unmount a file system. */
export const FOLDER_KEPT_MS_MAX = 1000

/** The end of a deleted folder's path, as the kernel says it. A folder that is really called so is never kept. */
const GONE = " (deleted)"

interface KeptFolder {
  readonly descriptor: number
  users: number
  isKept: boolean
}

export interface KeptFolders {
  /** Does something in the folder below the root that `names` lead to. */
  use<A>(names: ReadonlyArray<string>, signal: AbortSignal, act: (folder: number) => Promise<A>): Promise<A>
}

const placeOf = (descriptor: number): string => readlinkSync(descriptorPath(descriptor))

/** They are closed with the scope, each once nobody uses it. */
export const makeKeptFolders = Effect.fnUntraced(function* (root: number) {
  const kept = new Map<string, KeptFolder>()
  const begun = yield* Queue.sliding<void>(1)

  const closeUnused = (folder: KeptFolder) => {
    if (!folder.isKept && folder.users === 0) closeLater(folder.descriptor)
  }
  const letGo = (path: string, folder: KeptFolder) => {
    kept.delete(path)
    folder.isKept = false
    closeUnused(folder)
  }
  const letAllGo = Effect.sync(() => {
    for (const [path, folder] of kept) letGo(path, folder)
  })
  yield* Effect.addFinalizer(() => letAllGo)
  yield* Queue.take(begun).pipe(
    Effect.andThen(Effect.sleep(FOLDER_KEPT_MS_MAX)),
    Effect.andThen(letAllGo),
    Effect.forever,
    restarted("the closing of unused folders"),
    Effect.forkScoped
  )

  const known = (path: string): KeptFolder | undefined => {
    const folder = kept.get(path)
    if (folder === undefined) return undefined
    const top = placeOf(root)
    if (placeOf(folder.descriptor) === `${top === "/" ? "" : top}/${path}`) return folder
    letGo(path, folder)
    return undefined
  }
  const keep = (path: string, descriptor: number): KeptFolder => {
    const folder = { descriptor, users: 0, isKept: !path.endsWith(GONE) }
    if (!folder.isKept) return folder
    const before = kept.get(path)
    if (before !== undefined) letGo(path, before)
    if (kept.size === 0) Queue.offerUnsafe(begun, undefined)
    kept.set(path, folder)
    for (const [oldest, each] of kept) {
      if (kept.size <= FOLDERS_KEPT_MAX) break
      letGo(oldest, each)
    }
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
    }
  } satisfies KeptFolders
})
