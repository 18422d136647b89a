/**
 * Files of a Bot API server of one's own that runs with `--local`: it names a path on its disk where Telegram's server offers a download. Its answer is not
 * believed: choird reads only below the folder that the configuration names, and follows no link there.
 */
import { closeSync, constants, openSync } from "node:fs"
import { open } from "node:fs/promises"
import { basename, dirname, relative, sep } from "node:path"
import { Effect, Schema } from "effect"
import { codeOf, descriptorPath, openFolder } from "#src/shared/files/nofollow.ts"

/** UTF-16 units of a path. */
const PATH_CHARS_MAX = 4096

/** Why a file of such a server is not there, with what to do about it. No path is in it, since the server's have the bot's token. */
export class LocalFileRefused extends Schema.TaggedError<LocalFileRefused>()("LocalFileRefused", {
  reason: Schema.String
}) {
  override get message() {
    return this.reason
  }
}

const refuse = (reason: string) => new LocalFileRefused({ reason })

const WITHOUT_LOCAL = "start that server without --local"

const NOT_CONFIGURED = `the bot's own Bot API server runs with --local, so that it keeps files on its disk and offers no download. Set "local_files" of this gateway in config.json to the folder that it keeps them in (its --dir), or ${WITHOUT_LOCAL}`

const reasonOf = (folder: string, error: unknown): string => {
  switch (codeOf(error)) {
    case "ENOENT":
    case "ENOTDIR":
      return `it is not below ${folder} on choird's host. If the Bot API server runs elsewhere or in a container, make its folder readable under the same path, or ${WITHOUT_LOCAL}`
    case "EACCES":
    case "EPERM":
      return `choird's user may not read it below ${folder}; give that user read access to the folder`
    case "ELOOP":
      return `there is a symbolic link on its way below ${folder}, and choird follows none there`
    case "EISDIR":
      return `it is not a plain file below ${folder}`
    default:
      return `it could not be read below ${folder}`
  }
}

const isPath = (path: string): boolean => path.length <= PATH_CHARS_MAX && path.startsWith("/") && !path.includes("\0")

/** The bytes of a file, up to the limit; undefined if there are more. */
const bytesAt = async (path: string, bytes_max: number): Promise<Buffer | undefined> => {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const found = await file.stat()
    if (!found.isFile()) throw Object.assign(new Error("not a file"), { code: "EISDIR" })
    if (found.size > bytes_max) return undefined
    // A file that grows meanwhile is not read further.
    const bytes = Buffer.alloc(found.size)
    const { bytesRead } = await file.read(bytes, 0, found.size, 0)
    return bytes.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/**
 * The bytes of a file that the server names by its path; undefined if they are more than `bytes_max`.
 *
 * @param folder the folder of the server's files, as the configuration names it
 */
export const readLocalFile = Effect.fn("readLocalFile")(function* (
  folder: string | undefined,
  path: string,
  bytes_max: number
) {
  if (folder === undefined) return yield* refuse(NOT_CONFIGURED)
  const names = relative(folder, dirname(path)).split(sep)
  const outside = !isPath(path) || names[0] === ".."
  if (outside)
    return yield* refuse(
      `the Bot API server keeps it outside of ${folder}, the folder in "local_files" of this gateway. Set local_files to the folder that the server keeps its files in (its --dir)`
    )
  return yield* Effect.tryPromise({
    try: async () => {
      const root = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY)
      try {
        const within = openFolder(
          root,
          names.filter((name) => name !== ""),
          { create: false }
        )
        try {
          return await bytesAt(`${descriptorPath(within)}/${basename(path)}`, bytes_max)
        } finally {
          closeSync(within)
        }
      } finally {
        closeSync(root)
      }
    },
    catch: (error) => refuse(reasonOf(folder, error))
  })
})
