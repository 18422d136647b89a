/** The socket's short name in a container, `/run/choir.sock` (D10): a link in its tmpfs, since what is mounted is the socket's folder. */
import { basename, dirname } from "node:path"
import { Effect, FileSystem } from "effect"

/** Where containers have the socket. On a host it stands elsewhere, and nothing is made there. */
export const CONTAINER_SOCKET = "/run/choir/choird.sock"

/** The link beside the socket's folder, which other programs of the container may use. The agent does without it. */
export const linkSocket = Effect.fnUntraced(function* (socket: string) {
  const fs = yield* FileSystem.FileSystem
  const folder = dirname(socket)
  yield* fs.symlink(`${basename(folder)}/${basename(socket)}`, `${folder}.sock`).pipe(
    Effect.catchReason("PlatformError", "AlreadyExists", () => Effect.void),
    Effect.catch(({ message }) => Effect.logWarning(`the link ${folder}.sock could not be made: ${message}`))
  )
})
