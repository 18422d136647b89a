/** Writes the tar of a backup member by member, and keeps the size and digest of each for its manifest. */
import { createHash } from "node:crypto"
import { createReadStream, createWriteStream, read, statSync } from "node:fs"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { promisify } from "node:util"
import { createGzip } from "node:zlib"
import { Effect, Fiber } from "effect"
import type { Header, Pack } from "tar-stream"
import { failed } from "#src/choirctl/terminal/failure.ts"
import type { Member } from "./manifest.ts"

const FILE_MODE = 0o600
const FOLDER_MODE = 0o700
const READ_BYTES = 256 * 1024
/** Bundles, the database and most large files are already compressed. */
const COMPRESSION = 1

/** A file of a workspace, open for reading. Its size may change while it is read; the tar then keeps the size that was announced. */
export interface OpenFile {
  readonly descriptor: number
  readonly bytes: number
  readonly mode: number
  readonly mtime: Date
}

const unwritten = (path: string) => (cause: unknown) =>
  failed("FILE", `${path} cannot be written: ${String(cause)}`, "make room on its disk, or choose another place")

/** The fields of a header that have no default. */
type Announced = Pick<Header, "name"> & Partial<Header>
type AnnouncedFile = Announced & Pick<Header, "size" | "mode">

const sink = (tar: Pack, header: Announced) => {
  const { promise, reject, resolve } = Promise.withResolvers<void>()
  const entry = tar.entry(header, (error) => (error ? reject(error) : resolve()))
  // The waiter for the entry learns of its error; nobody else has to.
  entry.on("error", () => undefined)
  promise.catch(() => undefined)
  return { entry, done: promise }
}

const readSome = promisify(read)

/** The contents of an open file. A stream of Node's would close the descriptor when it is left before its end, and it is its owner's. */
async function* contentsOf(descriptor: number): AsyncGenerator<Uint8Array, void> {
  for (;;) {
    const { buffer, bytesRead } = await readSome(descriptor, Buffer.allocUnsafe(READ_BYTES), 0, READ_BYTES, null)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
  }
}

/** Exactly the announced number of bytes: a file that has grown is cut, one that has shrunk is filled with zeros. */
const copy = async (source: AsyncIterable<Uint8Array>, tar: Pack, header: Announced & { readonly size: number }) => {
  const { done, entry } = sink(tar, header)
  const hash = createHash("sha256")
  let left = header.size
  const put = async (piece: Uint8Array) => {
    hash.update(piece)
    left -= piece.length
    if (!entry.write(piece))
      await Promise.race([new Promise<void>((resolve) => entry.once("drain", () => resolve())), done])
  }
  for await (const piece of source) {
    if (left > 0) await put(piece.subarray(0, left))
    if (left === 0) break
  }
  const exact = left === 0
  for (let missing = left; missing > 0; missing = left) await put(Buffer.alloc(Math.min(missing, READ_BYTES)))
  entry.end(undefined)
  await done
  return { sha256: hash.digest("hex"), exact }
}

/** A tar that goes to `path`, a new file, for as long as the scope is open. */
export const makeArchive = Effect.fn("ArchiveWriter.make")(function* (path: string) {
  const { pack } = yield* Effect.promise(() => import("tar-stream"))
  const tar = yield* Effect.acquireRelease(
    Effect.sync(() => pack()),
    (tar) => Effect.sync(() => tar.destroy())
  )
  const file = createWriteStream(path, { flags: "wx", mode: FILE_MODE, flush: true })
  const written = yield* Effect.forkScoped(
    Effect.tryPromise({
      try: () => pipeline(Readable.from(tar), createGzip({ level: COMPRESSION }), file),
      catch: unwritten(path)
    }),
    { startImmediately: true }
  )
  const members: Array<Member> = []
  /** Filling the tar waits for its reader, and would do so forever once that has failed. */
  const whileWritten = <A>(work: () => Promise<A>) =>
    Effect.raceFirst(
      Effect.tryPromise({ try: work, catch: unwritten(path) }),
      Effect.andThen(Fiber.join(written), Effect.never)
    )

  const fromStream = (header: AnnouncedFile, source: () => AsyncIterable<Uint8Array>) =>
    Effect.map(
      whileWritten(() => copy(source(), tar, header)),
      (copied) => {
        const { mode, name, size } = header
        members.push({ name, type: "file", mode, bytes: size, sha256: copied.sha256 })
        return copied
      }
    )
  const bare = (header: Announced, member: Member) =>
    Effect.map(
      whileWritten(() => sink(tar, header).done),
      () => void members.push(member)
    )

  return {
    members: (): ReadonlyArray<Member> => members,
    text: (name: string, text: string, mtime: Date, mode = FILE_MODE) => {
      const bytes = Buffer.from(text)
      const header = { name, size: bytes.length, mode, mtime }
      return Effect.asVoid(fromStream(header, () => Readable.from([bytes])))
    },
    /** A file that nobody else writes. */
    file: (name: string, source: string, mtime: Date) =>
      Effect.suspend(() => {
        const header = { name, size: statSync(source).size, mode: FILE_MODE, mtime }
        return Effect.asVoid(fromStream(header, () => createReadStream(source, { highWaterMark: READ_BYTES })))
      }),
    /** A file that somebody may write meanwhile. Answers whether it had the announced size, and the digest of what was copied. */
    open: (name: string, { bytes, descriptor, mode, mtime }: OpenFile) =>
      fromStream({ name, size: bytes, mode, mtime }, () => contentsOf(descriptor)),
    folder: (name: string, mtime: Date) =>
      bare(
        { name, type: "directory", mode: FOLDER_MODE, mtime },
        { name, type: "folder", bytes: 0, sha256: createHash("sha256").digest("hex") }
      ),
    link: (name: string, target: string, mtime: Date) =>
      bare(
        { name, type: "symlink", linkname: target, mtime },
        { name, type: "link", bytes: 0, sha256: createHash("sha256").update(target).digest("hex") }
      ),
    /** Ends the tar; the file is on the disk when this returns. */
    end: Effect.suspend(() => {
      tar.finalize()
      return Fiber.join(written)
    })
  }
})
export type Archive = Effect.Success<ReturnType<typeof makeArchive>>
