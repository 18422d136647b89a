/** New files and folders beside a person's own: whole before they take their name, and recognised if a killed command leaves them. */
import { randomBytes } from "node:crypto"
import {
  closeSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync
} from "node:fs"
import { basename, dirname, join } from "node:path"
import { Effect } from "effect"
import { failed } from "#src/choirctl/terminal/failure.ts"
import { codeOf } from "#src/shared/files/nofollow.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"

/** Fails where a folder's disk has less than `needed` bytes free. A disk that does not tell is taken to have them. */
export const requireSpace = (folder: string, needed: number) =>
  Effect.suspend(() => {
    const free = freeBytes(folder)
    return free === undefined || free >= needed
      ? Effect.void
      : failed(
          "DISK_FULL",
          `the disk of ${folder} has ${bytesText(free)} free, and this needs about ${bytesText(needed)}`,
          "make room on it, or choose a place on another disk"
        )
  })

/** Bytes free on the disk of a folder, where it tells. */
export const freeBytes = (folder: string): number | undefined => {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return undefined
  }
}

const RANDOM = /^[0-9a-f]{12}$/u
const OWNER_FOLDER = 0o700

/** Whether something is a folder of this user itself, and no link to one. */
export const isUsersFolder = (path: string): boolean => {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat?.isDirectory() === true && stat.uid === process.getuid?.()
}

/** Makes a new folder whose name begins with a prefix. */
export const makeOwnFolder = (parent: string, prefix: string): string => {
  const path = join(parent, `${prefix}${randomBytes(RANDOM_BYTES).toString("hex")}`)
  mkdirSync(path, { mode: OWNER_FOLDER })
  return path
}

/** Whether a name is one that {@link makeOwnFolder} gives. */
export const isOwnName = (prefix: string, name: string): boolean =>
  name.startsWith(prefix) && RANDOM.test(name.slice(prefix.length))

/** The folders in `parent` that {@link makeOwnFolder} made with this prefix. */
export const ownFoldersIn = (parent: string, prefix: string): ReadonlyArray<string> =>
  readdirSync(parent)
    .filter((name) => isOwnName(prefix, name))
    .map((name) => join(parent, name))
    .filter(isUsersFolder)

const OWNER_FILE = 0o600
const RANDOM_BYTES = 6

/** The words on the errors that a place on a disk has. */
const WRITE_PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: "its folder does not exist",
  ENOTDIR: "its folder is a file",
  EACCES: "you may not write there",
  EPERM: "you may not write there",
  EROFS: "the disk is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "your quota on the disk is used up",
  EISDIR: "it is a folder"
}

const writeProblem = (cause: unknown): string => WRITE_PROBLEMS[codeOf(cause) ?? ""] ?? String(cause)

/** Runs a file operation for the file at `path`; an error becomes a failed command. */
export const onFile = <A>(path: string, act: () => A) =>
  Effect.try({
    try: act,
    catch: (cause) => failed("FILE", `${path} cannot be written: ${writeProblem(cause)}`, "choose another place for it")
  })

/** The open file, which is gone with the scope unless {@link putInPlace} has given it its name. */
export const freshFile = (path: string) => {
  const fresh = join(dirname(path), `.${basename(path)}.${randomBytes(RANDOM_BYTES).toString("hex")}`)
  return Effect.acquireRelease(
    onFile(path, () => ({ fresh, descriptor: openSync(fresh, "wx", OWNER_FILE) })),
    ({ descriptor }) =>
      Effect.sync(() => {
        closeSync(descriptor)
        rmSync(fresh, { force: true })
      })
  )
}

/** Makes the file durable before it takes its name, and the name before this returns. */
export const putInPlace = (path: string, fresh: string, descriptor: number) =>
  onFile(path, () => {
    fsyncSync(descriptor)
    renameSync(fresh, path)
    const folder = openSync(dirname(path), "r")
    fsyncSync(folder)
    closeSync(folder)
  })
