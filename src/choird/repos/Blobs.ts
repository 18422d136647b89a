/**
 * The output of `git cat-file --batch`, read as a stream: a blob is digested piece by piece, and stays in memory only if it is small and
 * wanted, so that no repository costs choird more than a few megabytes, however large its files are.
 */
import { createHash, type Hash } from "node:crypto"
import { join } from "node:path"
import { Effect, FileSystem, type PlatformError, Result, Schema, Stream } from "effect"
import { isRead, REPO_FILE_BYTES_MAX, type StoredBlob, type TreeEntry } from "./Tree.ts"

/** Other files of one repository that are in memory while an image is built or a change is shown. */
const REPO_HELD_BYTES_MAX = 8 * 1024 * 1024
/** A file up to this size is held while an image is built, as long as there is room; larger ones are written to a folder. */
const REPO_SMALL_FILE_BYTES_MAX = 16 * 1024

/** The contents that a reader of a repository needs beyond the files that choird reads itself. */
export interface Wanted {
  /** Files whose content is to be in memory, as far as REPO_HELD_BYTES_MAX reaches. */
  readonly held?: (path: string) => boolean
  /** An empty folder that takes the content of all other files. Without it they are digests alone. */
  readonly folder?: string
}

/** Output of git in an unexpected form. */
export class UnreadableBlobs extends Schema.TaggedError<UnreadableBlobs>()("UnreadableBlobs", {}) {
  override get message() {
    return "git did not return the requested blobs"
  }
}

export type Piece =
  | { readonly type: "begin"; readonly id: string; readonly size: number }
  | { readonly type: "data"; readonly bytes: Uint8Array }
  | { readonly type: "end" }

const HEADER = /^([0-9a-f]{40}|[0-9a-f]{64}) blob (\d+)$/u
const HEADER_BYTES_MAX = 128
const LINE_END = 10

/** A reader that takes the output in parts of any size, and returns the pieces that each part adds. */
const makeBlobReader = () => {
  let header = ""
  /** Bytes of content that are still to come; undefined between two blobs. */
  let left: number | undefined
  /** Whether nothing is half read. */
  const isWhole = () => left === undefined && header === ""
  const read = (part: Uint8Array): Result.Result<ReadonlyArray<Piece>, UnreadableBlobs> => {
    const bytes = Buffer.from(part.buffer, part.byteOffset, part.byteLength)
    const pieces: Array<Piece> = []
    for (let at = 0; at < bytes.length;) {
      if (left === undefined) {
        const end = bytes.indexOf(LINE_END, at)
        header += bytes.toString("latin1", at, end < 0 ? bytes.length : end)
        if (header.length > HEADER_BYTES_MAX) return Result.fail(new UnreadableBlobs())
        if (end < 0) return Result.succeed(pieces)
        const [, id, size] = HEADER.exec(header) ?? []
        if (id === undefined || Number(size) > REPO_FILE_BYTES_MAX) return Result.fail(new UnreadableBlobs())
        pieces.push({ type: "begin", id, size: Number(size) })
        header = ""
        left = Number(size)
        at = end + 1
      } else if (left > 0) {
        const data = bytes.subarray(at, at + left)
        pieces.push({ type: "data", bytes: data })
        left -= data.length
        at += data.length
      } else {
        if (bytes[at] !== LINE_END) return Result.fail(new UnreadableBlobs())
        pieces.push({ type: "end" })
        left = undefined
        at += 1
      }
    }
    return Result.succeed(pieces)
  }
  return { isWhole, read }
}

/** The blobs that stay in memory: those that choird reads itself, and other wanted ones, as far as there is room. */
const heldIds = (entries: ReadonlyArray<TreeEntry>, { folder, held = () => false }: Wanted): ReadonlySet<string> => {
  const ids = new Set(entries.filter(isRead).map(({ id }) => id))
  let room = REPO_HELD_BYTES_MAX
  for (const { bytes, id, path } of entries) {
    const isWanted = held(path) || (folder !== undefined && bytes <= REPO_SMALL_FILE_BYTES_MAX)
    if (!isWanted || bytes > room || ids.has(id)) continue
    room -= bytes
    ids.add(id)
  }
  return ids
}

interface Open {
  readonly id: string
  readonly size: number
  readonly hash: Hash
  readonly parts: Array<Uint8Array> | undefined
  readonly file: string | undefined
}

/** The blobs of checked entries by their ids, of the output that git gives for them. */
export const readBlobs = <E>(
  output: Stream.Stream<Uint8Array, E>,
  entries: ReadonlyArray<TreeEntry>,
  wanted: Wanted
): Effect.Effect<
  ReadonlyMap<string, Uint8Array | StoredBlob>,
  E | UnreadableBlobs | PlatformError.PlatformError,
  FileSystem.FileSystem
> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const held = heldIds(entries, wanted)
    const blobs = new Map<string, Uint8Array | StoredBlob>()
    const reader = makeBlobReader()
    let open: Open | undefined
    const take = Effect.fnUntraced(function* (piece: Piece) {
      if (piece.type === "begin") {
        const { id, size } = piece
        const file = held.has(id) || wanted.folder === undefined ? undefined : join(wanted.folder, id)
        open = { id, size, hash: createHash("sha256"), parts: held.has(id) ? [] : undefined, file }
        if (file !== undefined) yield* fs.writeFile(file, new Uint8Array(), { flag: "wx" })
      } else if (open !== undefined && piece.type === "data") {
        if (open.parts === undefined) open.hash.update(piece.bytes)
        else open.parts.push(piece.bytes)
        if (open.file !== undefined) yield* fs.writeFile(open.file, piece.bytes, { flag: "a" })
      } else if (open !== undefined) {
        const { file, hash, id, parts, size } = open
        blobs.set(
          id,
          parts === undefined
            ? { size, sha256: hash.digest("hex"), ...(file === undefined ? {} : { file }) }
            : Buffer.concat(parts)
        )
        open = undefined
      }
    })
    return yield* Stream.runForEach(output, (part) =>
      Effect.flatMap(Effect.fromResult(reader.read(part)), (pieces) => Effect.forEach(pieces, take, { discard: true }))
    ).pipe(
      Effect.filterOrFail(
        () => reader.isWhole(),
        () => new UnreadableBlobs()
      ),
      Effect.as(blobs)
    )
  })
