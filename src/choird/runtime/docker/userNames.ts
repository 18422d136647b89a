/**
 * The names of a container's user, in the host's folder of its socket and mounted over /etc/passwd and /etc/group: OpenSSH and others refuse to work
 * for a uid without a name, and no image, least of all an operator's own, knows the uids of agents.
 */
import { closeSync, fchmodSync, openSync, rmSync, writeSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { ContainerError, NAME_FILES } from "#src/choird/runtime/ContainerRuntime.ts"
import type { UserIds } from "#src/choird/runtime/agentUser.ts"

/** Everybody in the container reads them, whatever choird's umask is. */
const NAMES_MODE = 0o644

const passwd = ({ gid, uid }: UserIds) =>
  [
    "root:x:0:0:root:/root:/bin/sh",
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
    `choir:x:${uid}:${gid}:Choir agent:/tmp:/bin/sh`,
    ""
  ].join("\n")

const group = ({ gid }: UserIds) => ["root:x:0:", "nogroup:x:65534:", `choir:x:${gid}:`, ""].join("\n")

const remove = (folder: string) => {
  for (const name of Object.values(NAME_FILES)) rmSync(join(folder, name), { force: true })
}

/** A new file, by no link: the folder is the agent's. */
const write = (path: string, text: string) => {
  const fd = openSync(path, "wx", NAMES_MODE)
  try {
    fchmodSync(fd, NAMES_MODE)
    writeSync(fd, text)
  } finally {
    closeSync(fd)
  }
}

/** Whether a user needs a name: root has one in every image. */
export const needsNames = ({ uid }: UserIds): boolean => uid !== 0

/** Writes the names of a user beside its socket, until the scope closes. */
export const writeNames = (user: UserIds, folder: string) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        remove(folder)
        write(join(folder, NAME_FILES.passwd), passwd(user))
        write(join(folder, NAME_FILES.group), group(user))
      },
      catch: (cause) =>
        new ContainerError({
          reason: "failed",
          problem: `the names of the agent's user cannot be written to ${folder}: ${String(cause)}`,
          fix: "Check its file system, then start the agent again"
        })
    }),
    () => Effect.ignore(Effect.try(() => remove(folder)))
  )
