/**
 * The way of one file out of a workspace into a folder of choird's own. The agent can change everything in the workspace, so no link is
 * followed, only a regular file with one name is read, and only bytes with the digest that the event names leave it (D20).
 */
import { createHash } from "node:crypto"
import { closeSync, constants, openSync } from "node:fs"
import { type FileHandle, open, rename, rm } from "node:fs/promises"
import { SENT_COPIES, SENT_FILE_BYTES_MAX, type SentFile } from "#schema/SentFile.ts"
import { descriptorPath, openFolder } from "#src/shared/files/nofollow.ts"
import { pathInside } from "#src/shared/image/workspacePath.ts"

// Without O_NONBLOCK, opening a FIFO would wait for a writer.
const SOURCE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const CHUNK_BYTES = 1024 * 1024
const OWNER_ONLY = 0o600

/** Opens the folder of a path below a workspace for `use`; `undefined` where there is none. */
const inFolderOf = async <A>(
  workspace: string,
  path: string,
  use: (folder: number, name: string) => Promise<A>
): Promise<A | undefined> => {
  const names = pathInside(path)?.split("/") ?? []
  const name = names.at(-1)
  if (name === undefined || name === "") return undefined
  const root = openSync(workspace, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    const folder = openFolder(root, names.slice(0, -1), { create: false })
    try {
      return await use(folder, name)
    } finally {
      closeSync(folder)
    }
  } finally {
    closeSync(root)
  }
}

/** Copies an open file of this length, and answers with the digest of what was copied. */
const copy = async (source: FileHandle, bytes: number, target: FileHandle | undefined): Promise<string> => {
  const digest = createHash("sha256")
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  for (let done = 0; done < bytes;) {
    const { bytesRead } = await source.read(chunk, 0, Math.min(CHUNK_BYTES, bytes - done), done)
    if (bytesRead === 0) break
    digest.update(chunk.subarray(0, bytesRead))
    await target?.writeFile(chunk.subarray(0, bytesRead))
    done += bytesRead
  }
  return digest.digest("hex")
}

/** Whether an open file is the one of the event by its digest; a copy goes to `target`. */
const isSame = async (source: FileHandle, { bytes, sha256 }: SentFile, target?: FileHandle): Promise<boolean> => {
  const stat = await source.stat()
  if (!stat.isFile() || stat.nlink > 1 || stat.size !== bytes || bytes > SENT_FILE_BYTES_MAX) return false
  return (await copy(source, bytes, target)) === sha256
}

const copyFrom = (workspace: string, path: string, file: SentFile, part: string): Promise<boolean | undefined> =>
  inFolderOf(workspace, path, async (folder, name) => {
    const source = await open(`${descriptorPath(folder)}/${name}`, SOURCE)
    try {
      await rm(part, { force: true })
      const target = await open(part, "wx", OWNER_ONLY)
      try {
        if (!(await isSame(source, file, target))) return false
        await target.sync()
        return true
      } finally {
        await target.close()
      }
    } finally {
      await source.close()
    }
  })

const orNot = (work: Promise<boolean | undefined>): Promise<boolean> =>
  work.then(
    (done) => done === true,
    () => false
  )

/** Copies a file to `place`, from the agent's own copy or else from where its tool left it. False where neither is the file of the event. */
export const copyOut = async (workspace: string, file: SentFile, place: string): Promise<boolean> => {
  const part = `${place}.part`
  for (const path of [`${SENT_COPIES}/${file.sha256}`, file.path]) {
    if (!(await orNot(copyFrom(workspace, path, file, part)))) continue
    await rename(part, place)
    return true
  }
  await rm(part, { force: true })
  return false
}

/** Removes a file of a workspace if it is still this one. */
export const removeSent = (workspace: string, path: string, file: SentFile): Promise<boolean> =>
  orNot(
    inFolderOf(workspace, path, async (folder, name) => {
      const place = `${descriptorPath(folder)}/${name}`
      const source = await open(place, SOURCE)
      try {
        if (!(await isSame(source, file))) return false
      } finally {
        await source.close()
      }
      await rm(place, { force: true })
      return true
    })
  )
