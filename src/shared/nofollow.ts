/**
 * Files below an open folder, reached one name at a time so that no symbolic link is ever followed, whoever swaps folders for
 * links meanwhile (D20, R39). `/proc/self/fd/N/name` with O_NOFOLLOW is what openat(2) is elsewhere.
 *
 * These functions are synchronous and throw errors of the file system, with its codes. Besides those of the kernel: `ELOOP` for
 * any symbolic link, `EISDIR` for a folder, `EMLINK` for a file with a second name, `ENODEV` for what is no regular file, `EFBIG`.
 */
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync
} from "node:fs"

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
// Without O_NONBLOCK, opening a FIFO would wait for a writer.
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

const FOLDER_MODE = 0o755
const CHUNK_BYTES = 64 * 1024

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

const readWhole = (file: number, bytes_max: number): Buffer => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  for (;;) {
    const chunk = Buffer.allocUnsafe(Math.max(CHUNK_BYTES, Math.min(fstatSync(file).size, bytes_max) - bytes + 1))
    const read = readSync(file, chunk, 0, chunk.length, null)
    if (read === 0) return Buffer.concat(chunks, bytes)
    bytes += read
    if (bytes > bytes_max) throw refusal("EFBIG")
    chunks.push(chunk.subarray(0, read))
  }
}

/** Reads a regular file with one name, and its permission bits. */
export const readFile = (
  folder: number,
  name: string,
  bytes_max: number
): { readonly bytes: Buffer; readonly mode: number } => {
  const file = openSync(childPath(folder, name), FILE)
  try {
    const stat = fstatSync(file)
    if (stat.isDirectory()) throw refusal("EISDIR")
    if (!stat.isFile()) throw refusal("ENODEV")
    if (stat.nlink > 1) throw refusal("EMLINK")
    if (stat.size > bytes_max) throw refusal("EFBIG")
    return { bytes: readWhole(file, bytes_max), mode: stat.mode & 0o777 }
  } finally {
    closeSync(file)
  }
}

/**
 * Replaces or creates a file at once: readers see the old bytes or the new ones. `temporary` is a free name in the same folder
 * (`EEXIST` when it is taken). A link that took the file's place meanwhile is itself replaced, never followed.
 */
export const replaceFile = (
  folder: number,
  name: string,
  content: { readonly bytes: Uint8Array; readonly mode: number; readonly temporary: string }
): void => {
  const temporary = childPath(folder, content.temporary)
  const file = openSync(temporary, NEW_FILE, 0o600)
  try {
    try {
      for (let written = 0; written < content.bytes.length;) written += writeSync(file, content.bytes, written)
      fchmodSync(file, content.mode)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, childPath(folder, name))
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}
