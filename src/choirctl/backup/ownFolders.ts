/**
 * Folders that a backup or a restore makes beside a person's files. One that was killed leaves its folder there, and the next one clears it:
 * so their names are recognised exactly, and no name that a person would choose looks like one.
 */
import { randomBytes } from "node:crypto"
import { lstatSync, mkdirSync, readdirSync } from "node:fs"
import { join } from "node:path"

const RANDOM_BYTES = 6
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
