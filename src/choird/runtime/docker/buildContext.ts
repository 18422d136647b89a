/** The context of a build: a tar of files with fixed owners, modes and times, so that the same files make the same layers. */
import { createReadStream } from "node:fs"
import type { Readable } from "node:stream"
import { Effect, Schema } from "effect"
import type { Pack } from "tar-stream"
import type { RepoFile } from "#src/choird/repos/Tree.ts"

/** A file of a context, in memory or on this host; a folder has no content. */
export interface ContextEntry {
  readonly name: string
  readonly mode: number
  readonly content: Uint8Array | HostFile | "folder"
}

/** A file that is too large to hold in memory. */
export interface HostFile {
  readonly path: string
  readonly bytes: number
  /** Of its content, in lowercase hex, where that is known. */
  readonly sha256?: string
}

/** A context that could not be read to its end. */
export class ContextUnreadable extends Schema.TaggedError<ContextUnreadable>()("ContextUnreadable", {
  reason: Schema.String
}) {
  override get message() {
    return `the files of the build cannot be read: ${this.reason}`
  }
}

/** Files of a repository, whose contents were asked for. */
export const repoEntries = (files: ReadonlyArray<RepoFile>): ReadonlyArray<ContextEntry> =>
  files.map(({ bytes, executable, path }) => ({
    name: path,
    mode: executable ? 0o755 : 0o644,
    content: bytes instanceof Uint8Array ? bytes : { path: bytes.file ?? "", bytes: bytes.size, sha256: bytes.sha256 }
  }))

/** One entry; the engine reads it before the next one is begun. */
const write = (pack: Pack, { content, mode, name }: ContextEntry) =>
  Effect.callback<void, ContextUnreadable>((resume) => {
    const header = { name, mode, mtime: new Date(0), uid: 0, gid: 0, uname: "", gname: "" }
    const done = (error?: Error | null) =>
      resume(error ? Effect.fail(new ContextUnreadable({ reason: error.message })) : Effect.void)
    if (content === "folder") {
      pack.entry({ ...header, type: "directory" }, done)
    } else if (content instanceof Uint8Array) {
      pack.entry(header, Buffer.from(content.buffer, content.byteOffset, content.byteLength), done)
    } else {
      const file = createReadStream(content.path)
      const entry = pack.entry({ ...header, size: content.bytes }, done)
      file.on("error", done)
      entry.on("error", done)
      file.pipe(entry)
      return Effect.sync(() => void file.destroy())
    }
    return undefined
  })

/**
 * A stream of the tar, and the work of filling it, which waits for whoever reads. The stream ends with an error when the work fails
 * or its scope closes early.
 */
export const buildContext = Effect.fnUntraced(function* (entries: ReadonlyArray<ContextEntry>) {
  const { pack } = yield* Effect.promise(() => import("tar-stream"))
  const tar = yield* Effect.acquireRelease(
    Effect.sync(() => pack()),
    (tar) => Effect.sync(() => tar.destroy())
  )
  const fill = Effect.forEach(entries, (entry) => write(tar, entry), { discard: true }).pipe(
    Effect.andThen(Effect.sync(() => tar.finalize())),
    Effect.tapError((error) => Effect.sync(() => tar.destroy(error)))
  )
  return { stream: tar as unknown as Readable, fill }
})
