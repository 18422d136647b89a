/** The replacement of a small text file as a whole: of those in a home, and of the unit of systemd. */
import { randomBytes } from "node:crypto"
import { basename, dirname, join } from "node:path"
import { Effect, Exit, FileSystem, type PlatformError } from "effect"

const OWNER_ONLY = 0o600

/** Makes the names in a folder durable. By then the file has its name, so that a failure could not leave the old one: it is logged alone. */
const syncFolder = (folder: string) =>
  FileSystem.FileSystem.pipe(
    Effect.flatMap((fs) => fs.open(folder, { flag: "r" })),
    Effect.flatMap((open) => open.sync),
    Effect.scoped,
    Effect.ignore({ log: "Warn" })
  )

/**
 * Replaces or creates a file. Readers see the old text or the new one, also after a crash. A failure or an interruption leaves the old
 * file, and no other beside it. A link at `place` is replaced, not followed.
 *
 * @param mode of the new file, whatever the old one had.
 */
export const writeWhole = Effect.fn("writeWhole")(function* (place: string, text: string, mode: number = OWNER_ONLY) {
  const fs = yield* FileSystem.FileSystem
  const fresh = join(dirname(place), `.${basename(place)}.${randomBytes(6).toString("hex")}`)
  const file = yield* Effect.acquireRelease(fs.open(fresh, { flag: "wx", mode }), (_, exit) =>
    Exit.isSuccess(exit) ? Effect.void : Effect.ignore(fs.remove(fresh, { force: true }))
  )
  // One write may take a part and say nothing, as on a disk that is nearly full.
  yield* file.writeAll(new TextEncoder().encode(text))
  yield* file.sync
  yield* fs.rename(fresh, place)
  yield* syncFolder(dirname(place))
}, Effect.scoped)

/** The system's own words about a file. */
export const systemWords = ({ message, reason }: PlatformError.PlatformError): string =>
  reason.cause instanceof Error ? reason.cause.message : message
