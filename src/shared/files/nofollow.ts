/**
 * Folders below an open one, reached one name at a time so that no symbolic link is ever followed, even if folders are swapped for
 * links meanwhile (D20, R39). `/proc/self/fd/N/name` with O_NOFOLLOW is what openat(2) is elsewhere.
 *
 * These functions are synchronous, for folders of Choir's own, and throw errors of the file system, with its codes; `ELOOP` for any
 * symbolic link.
 */
import { closeSync, constants, lstatSync, mkdirSync, openSync } from "node:fs"

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

const FOLDER_MODE = 0o755

/** The path under which this process alone reaches an open folder. A child may be started there. */
export const descriptorPath = (folder: number): string => `/proc/self/fd/${folder}`

const childPath = (folder: number, name: string): string => `${descriptorPath(folder)}/${name}`

const refusal = (code: string): Error => Object.assign(new Error(code), { code })

/** The code of a file system error, or `undefined` for any other value. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined

const openChildFolder = (folder: number, name: string): number => {
  try {
    return openSync(childPath(folder, name), FOLDER)
  } catch (error) {
    // The kernel says ENOTDIR of a link, too. This look only chooses the words; nothing is opened by it.
    const isLink =
      codeOf(error) === "ENOTDIR" && lstatSync(childPath(folder, name), { throwIfNoEntry: false })?.isSymbolicLink()
    throw isLink === true ? refusal("ELOOP") : error
  }
}

const makeFolder = (folder: number, name: string, mode: number): void => {
  try {
    mkdirSync(childPath(folder, name), mode)
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error
  }
}

/** Opens the folder below `root` that `names` lead to; the caller closes it. With `create`, missing folders are made with `mode`. */
export const openFolder = (
  root: number,
  names: ReadonlyArray<string>,
  options: { readonly create: boolean; readonly mode?: number }
): number => {
  let folder = openSync(childPath(root, "."), FOLDER)
  for (const name of names) {
    try {
      if (options.create) makeFolder(folder, name, options.mode ?? FOLDER_MODE)
      const next = openChildFolder(folder, name)
      closeSync(folder)
      folder = next
    } catch (error) {
      closeSync(folder)
      throw error
    }
  }
  return folder
}
