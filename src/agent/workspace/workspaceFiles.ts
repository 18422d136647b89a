/**
 * Files below an open folder of the workspace, reached one name at a time so that no symbolic link is ever followed, even if folders are
 * swapped for links meanwhile (D20, R39). `/proc/self/fd/N/name` with O_NOFOLLOW is what openat(2) is elsewhere.
 *
 * A workspace may be on a file system that does not answer, so that nothing here waits on the agent's own thread. What takes a signal
 * changes nothing any more once that is aborted. Errors have the codes of the kernel, and `ELOOP` for any symbolic link, `EISDIR` for a
 * folder, `EMLINK` for a file with a second name, `ENODEV` for anything else but a regular file, `EFBIG`.
 */
import * as fs from "node:fs"
import { lstat, mkdir, opendir, rename, rm } from "node:fs/promises"
import { promisify } from "node:util"
import { codeOf, descriptorPath } from "#src/shared/files/nofollow.ts"

const { constants } = fs
const [open, fstat, read, write, fchmod] = [
  promisify(fs.open),
  promisify(fs.fstat),
  promisify(fs.read),
  promisify(fs.write),
  promisify(fs.fchmod)
] as const

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
// Without O_NONBLOCK, opening a FIFO would wait for a writer.
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

const FOLDER_MODE = 0o755
const CHUNK_BYTES = 64 * 1024

const childPath = (folder: number, name: string): string => `${descriptorPath(folder)}/${name}`
const refusal = (code: string): Error => Object.assign(new Error(code), { code })

/** Closes in its own time: nobody waits for that. */
export const closeLater = (descriptor: number): void => fs.close(descriptor, () => undefined)

const openChild = async (folder: number, name: string): Promise<number> => {
  try {
    return await open(childPath(folder, name), FOLDER)
  } catch (error) {
    // The kernel says ENOTDIR of a link, too. This look only chooses the words; nothing is opened by it.
    const isLink =
      codeOf(error) === "ENOTDIR" &&
      (await lstat(childPath(folder, name)).then(
        (stat) => stat.isSymbolicLink(),
        () => false
      ))
    throw isLink ? refusal("ELOOP") : error
  }
}

const makeFolder = async (folder: number, name: string): Promise<void> => {
  try {
    await mkdir(childPath(folder, name), FOLDER_MODE)
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error
  }
}

/** Opens the folder below `root` that `names` lead to; the caller closes it. With `create`, missing folders are made. */
export const openFolder = async (
  root: number,
  names: ReadonlyArray<string>,
  create: boolean,
  signal: AbortSignal
): Promise<number> => {
  if (names.length === 0) return await open(childPath(root, "."), FOLDER)
  let folder = root
  for (const name of names) {
    try {
      signal.throwIfAborted()
      if (create) await makeFolder(folder, name)
      const next = await openChild(folder, name)
      if (folder !== root) closeLater(folder)
      folder = next
    } catch (error) {
      if (folder !== root) closeLater(folder)
      throw error
    }
  }
  return folder
}

/** The bytes of a file that had `size` of them a moment ago: by one read, unless it grew or its file system gives less at a time. */
const readWhole = async (file: number, size: number, bytes_max: number): Promise<Buffer> => {
  const chunks: Array<Buffer> = []
  // One more than it has, so that a file that grew is noticed.
  let chunk = Buffer.allocUnsafe(size + 1)
  let filled = 0
  let bytes = 0
  for (;;) {
    const { bytesRead } = await read(file, chunk, filled, chunk.length - filled, null)
    bytes += bytesRead
    filled += bytesRead
    if (bytes > bytes_max) throw refusal("EFBIG")
    if (bytesRead === 0 || (bytes === size && bytesRead === size))
      return chunks.length === 0
        ? chunk.subarray(0, filled)
        : Buffer.concat([...chunks, chunk.subarray(0, filled)], bytes)
    if (filled < chunk.length) continue
    chunks.push(chunk)
    chunk = Buffer.allocUnsafe(CHUNK_BYTES)
    filled = 0
  }
}

/** Reads a regular file with one name, and its permission bits. */
export const readFile = async (
  folder: number,
  name: string,
  bytes_max: number
): Promise<{ readonly bytes: Buffer; readonly mode: number }> => {
  const file = await open(childPath(folder, name), FILE)
  try {
    const stat = await fstat(file)
    if (stat.isDirectory()) throw refusal("EISDIR")
    if (!stat.isFile()) throw refusal("ENODEV")
    if (stat.nlink > 1) throw refusal("EMLINK")
    if (stat.size > bytes_max) throw refusal("EFBIG")
    return { bytes: await readWhole(file, stat.size, bytes_max), mode: stat.mode & 0o777 }
  } finally {
    closeLater(file)
  }
}

/** The new content of a file; `temporary` is a free name in the same folder (`EEXIST` when it is taken). */
interface NewContent {
  readonly bytes: Uint8Array
  readonly mode: number
  readonly temporary: string
}

/**
 * Replaces or creates a file at once: readers see the old bytes or the new ones. A link that took the file's place meanwhile is itself
 * replaced, never followed.
 */
export const replaceFile = async (
  folder: number,
  name: string,
  { bytes, mode, temporary }: NewContent,
  signal: AbortSignal
): Promise<void> => {
  const path = childPath(folder, temporary)
  const file = await open(path, NEW_FILE, 0o600)
  try {
    try {
      for (let written = 0; written < bytes.length;) {
        signal.throwIfAborted()
        written += (await write(file, bytes, written)).bytesWritten
      }
      await fchmod(file, mode)
    } finally {
      closeLater(file)
    }
    signal.throwIfAborted()
    await rename(path, childPath(folder, name))
  } catch (error) {
    await rm(path, { force: true })
    throw error
  }
}

/** Signs that would end a line or hide in one. */
const UNSHOWN = /[\p{C}\p{Zl}\p{Zp}\u{fffd}]/u

/** A name as a listing shows it: an odd one as a string of JSON has it, which a call's input takes as it is. Bytes that are not UTF-8 have no such name. */
const listedName = (name: string): string => {
  if (!UNSHOWN.test(name)) return name
  if (name.includes("\u{fffd}")) return `${JSON.stringify(name)} (not UTF-8: only a command can open it)`
  return JSON.stringify(name).replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, (sign) =>
    [...Array(sign.length).keys()].map((at) => `\\u${sign.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")
  )
}

/** Sorted names of an open folder, at most `entries_max`; a folder's ends in `/`, a link's in `@`. */
export const listFolder = async (folder: number, entries_max: number) => {
  const entries: Array<string> = []
  for await (const entry of await opendir(descriptorPath(folder))) {
    if (entries.length === entries_max) return { entries: entries.sort(), truncated: true }
    entries.push(listedName(entry.name) + (entry.isDirectory() ? "/" : entry.isSymbolicLink() ? "@" : ""))
  }
  return { entries: entries.sort(), truncated: false }
}

/** Everything but folders in an open folder, each with its inode, length and last change. */
export const fileVersions = async (folder: number, entries_max: number): Promise<ReadonlyMap<string, string>> => {
  const versions = new Map<string, string>()
  for await (const entry of await opendir(descriptorPath(folder))) {
    if (versions.size === entries_max) break
    const stat = await lstat(childPath(folder, entry.name), { bigint: true }).catch(() => undefined)
    if (stat !== undefined && !stat.isDirectory())
      versions.set(entry.name, `${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}`)
  }
  return versions
}

/** Removes the oldest of these files of an open folder beyond the limits; the one called `newest` stays, and so does everything but files. */
export const removeOldest = async (
  folder: number,
  names: ReadonlyArray<string>,
  newest: string,
  limits: { readonly files: number; readonly bytes: number }
): Promise<void> => {
  const statOf = (name: string) => lstat(childPath(folder, name)).catch(() => undefined)
  const others: Array<{ readonly name: string; readonly written_ms: number; readonly bytes: number }> = []
  for (const name of names) {
    const stat = name === newest ? undefined : await statOf(name)
    if (stat?.isFile() === true) others.push({ name, written_ms: stat.mtimeMs, bytes: stat.size })
  }
  let files = 1
  let bytes = (await statOf(newest))?.size ?? 0
  for (const file of others.sort((a, b) => b.written_ms - a.written_ms)) {
    files += 1
    bytes += file.bytes
    if (files > limits.files || bytes > limits.bytes) await rm(childPath(folder, file.name), { force: true })
  }
}
