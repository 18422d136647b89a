/**
 * Files that people sent, in the workspace of their agent (`.choirtmp/recv`). The agent can change everything there, so each folder is
 * opened without following links, names are choird's own, and a file is new and whole before it has its name (D20).
 *
 * What changes folders is synchronous, as the functions that it uses, and throws errors of the file system.
 */
import {
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { open, rename, rm } from "node:fs/promises"
import { codeOf, descriptorPath, openFolder } from "#src/shared/files/nofollow.ts"
import { join } from "node:path"
import { Effect } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { RECEIVED_MARK } from "#src/shared/files/receivedMark.ts"
import { WorkspaceLabels } from "#src/choird/sessions/WorkspaceLabels.ts"
import { DAY_MS } from "#src/shared/days.ts"

/** Where a received file is, below the workspace. */
const FOLDER = [".choirtmp", "recv"]
/** How long a file stays, and how many there are at once, with their bytes together; the oldest go first. */
const RECEIVED_KEPT_MS = 7 * DAY_MS
export const RECEIVED_FILES_MAX = 1000
const RECEIVED_FOLDER_BYTES_MAX = 256 * 1024 * 1024
/** Names that are looked at for one file: the agent may have made a million of them, and all of choird would wait. */
export const RECEIVED_LOOKED_MAX = 2 * RECEIVED_FILES_MAX

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

const FILE_MODE = 0o644

/** The owner of the workspace, as whom its agent runs, gets what choird puts there. Only root can give. */
const give = (fd: number, root: number): void => {
  if (process.getuid?.() !== 0) return
  const { gid, uid } = fstatSync(root)
  fchownSync(fd, uid, gid)
}

/** The folder of received files. Each folder on the way is the agent's, which keeps more there. */
const openReceived = (root: number): number => {
  for (const depth of FOLDER.keys()) {
    const folder = openFolder(root, FOLDER.slice(0, depth + 1), { create: true })
    try {
      give(folder, root)
    } finally {
      closeSync(folder)
    }
  }
  return openFolder(root, FOLDER, { create: false })
}

const namesIn = (folder: number): ReadonlyArray<string> => {
  const names: Array<string> = []
  const entries = opendirSync(descriptorPath(folder))
  try {
    for (let entry = entries.readSync(); entry !== null; entry = entries.readSync()) {
      names.push(entry.name)
      if (names.length === RECEIVED_LOOKED_MAX) break
    }
    return names
  } finally {
    entries.closeSync()
  }
}

/** Removes what is old or too much, so that a chat with many files does not fill the disk. */
const prune = (folder: number, now_ms: number): void => {
  const files = namesIn(folder).flatMap((name) => {
    const found = lstatSync(`${descriptorPath(folder)}/${name}`, { throwIfNoEntry: false })
    return found === undefined || found.isDirectory() ? [] : [{ name, at_ms: found.mtimeMs, bytes: found.size }]
  })
  let [kept, total] = [0, 0]
  for (const { at_ms, bytes, name } of files.toSorted((one, other) => other.at_ms - one.at_ms)) {
    kept += 1
    total += bytes
    const isOld = at_ms < now_ms - RECEIVED_KEPT_MS
    if (isOld || kept > RECEIVED_FILES_MAX || total > RECEIVED_FOLDER_BYTES_MAX)
      rmSync(`${descriptorPath(folder)}/${name}`, { force: true })
  }
}

/**
 * Stores a file under a name that choird made; returns its path below the workspace. The same name again replaces it. Its bytes are written beside
 * other work, since the disk may be as busy as its agent makes it.
 */
export const storeReceived = async (
  workspace: string,
  name: string,
  bytes: Uint8Array,
  now_ms: number
): Promise<string> => {
  const root = openSync(workspace, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    const folder = openReceived(root)
    try {
      prune(folder, now_ms)
      const path = `${descriptorPath(folder)}/${name}`
      await rm(`${path}.part`, { force: true })
      const file = await open(`${path}.part`, NEW_FILE, FILE_MODE)
      try {
        await file.writeFile(bytes)
        await file.chmod(FILE_MODE)
        give(file.fd, root)
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(`${path}.part`, path)
      return [...FOLDER, name].join("/")
    } finally {
      closeSync(folder)
    }
  } finally {
    closeSync(root)
  }
}

/** Where there is no folder, nobody works in the workspace; a mark that is there stays. The folder may be the agent's: no link there is followed. */
const mark = (path: string) =>
  Effect.sync(() => {
    try {
      writeFileSync(path, "", { mode: 0o644, flag: "wx" })
    } catch (cause) {
      if (!["EEXIST", "ENOENT"].includes(codeOf(cause) ?? "")) throw cause
    }
  })

/** Labels a workspace that is about to get a file from a person: stored, and told to the agent that works there, before the file is there. */
export const makeLabelReceived = Effect.gen(function* () {
  const config = yield* ConfigStore
  const labels = yield* WorkspaceLabels
  return (workspace: string, session_id: SessionId | null) =>
    Effect.andThen(
      labels.receive(workspace),
      session_id === null ? Effect.void : mark(join(config.home, "socks", "agents", session_id, RECEIVED_MARK))
    )
})
