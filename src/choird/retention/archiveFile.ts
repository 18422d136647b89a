/** Writes the events of a session into its file: a gzip member a page, so that no page is held twice, and a name only when it is whole. */
import { createHash } from "node:crypto"
import { mkdir, open, rename, rm } from "node:fs/promises"
import { dirname } from "node:path"
import { promisify } from "node:util"
import { gzip } from "node:zlib"
import { Effect, Schema, Stream } from "effect"
import { archiveLine, readArchive } from "#src/choird/sessions/archivedLog.ts"
import type { EventRow } from "#src/shared/events/eventRow.ts"

const compress = promisify(gzip)

/** A file that cannot be written, or that differs from what was written. */
export class ArchiveNotWritten extends Schema.TaggedError<ArchiveNotWritten>()("ArchiveNotWritten", {
  path: Schema.String,
  problem: Schema.String
}) {
  override get message() {
    return `${this.path} cannot be written: ${this.problem}. Check the folder's owner and the space on its disk`
  }
}

/** @param page the rows after a revision; none after the last. */
export const writeArchive = Effect.fnUntraced(function* <E, R>(
  path: string,
  page: (after: number) => Effect.Effect<ReadonlyArray<EventRow>, E, R>
) {
  const part = `${path}.part`
  const attempt = <A>(act: () => Promise<A>) =>
    Effect.tryPromise({ try: act, catch: (cause) => new ArchiveNotWritten({ path, problem: String(cause) }) })
  yield* attempt(() => mkdir(dirname(path), { recursive: true, mode: 0o700 }))
  const file = yield* Effect.acquireRelease(
    attempt(async () => {
      await rm(part, { force: true })
      return open(part, "wx", 0o600)
    }),
    (handle) => Effect.promise(() => handle.close().catch(() => undefined))
  )
  // A file that did not get its name is worth nothing, and a full disk needs the room.
  yield* Effect.addFinalizer(() => Effect.promise(() => rm(part, { force: true }).catch(() => undefined)))
  const digest = createHash("sha256")
  let bytes = 0
  let last_rev = 0
  let reduced = 0
  for (;;) {
    const rows = yield* page(last_rev)
    if (rows.length === 0 && bytes > 0) break
    const packed = yield* attempt(() => compress(rows.map(archiveLine).join("")))
    yield* attempt(() => file.writeFile(packed))
    digest.update(packed)
    bytes += packed.length
    last_rev = rows.at(-1)?.rev ?? last_rev
    reduced += rows.filter(({ payload_digest }) => payload_digest !== null).length
    if (rows.length === 0) break
  }
  yield* attempt(() => file.sync())
  let next = 1
  yield* readArchive(part).pipe(
    Stream.runForEach(({ rev }) => {
      const fits = rev === next
      next += 1
      return fits
        ? Effect.void
        : Effect.fail(new ArchiveNotWritten({ path, problem: `revision ${next - 1} is missing` }))
    }),
    Effect.catchTag("ArchiveUnreadable", ({ problem }) => new ArchiveNotWritten({ path, problem }))
  )
  if (next !== last_rev + 1) return yield* new ArchiveNotWritten({ path, problem: "its end is missing" })
  yield* attempt(() => rename(part, path))
  return { bytes, last_rev, reduced, sha256: digest.digest("hex") }
}, Effect.scoped)

export const removeArchive = (path: string) => Effect.promise(() => rm(path, { force: true }).catch(() => undefined))
