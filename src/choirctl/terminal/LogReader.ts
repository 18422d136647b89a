/**
 * A log that is read while it grows, is truncated or is rotated. A rotation renames the file into the archive, whose names sort by
 * time: a slow reader finds there the lines between the file that it read and the current one.
 */
import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync, statSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { gunzipSync } from "node:zlib"
import { Effect } from "effect"
import { archiveName, archiveStem } from "#src/shared/files/logArchives.ts"
import { codeOf } from "#src/shared/files/nofollow.ts"
import { LOG_CHUNK_BYTES } from "#src/shared/limits.ts"
import { LOG_LINE_BYTES_MAX } from "#src/shared/text/logs.ts"
import { failed } from "./failure.ts"
import { type Line, makeLineSplitter } from "./input.ts"

/** How often `choirctl logs` looks for new lines. */
export const LOG_POLL_MS = 200
/** Tries to open a log between two of its rotations. */
const LOG_OPEN_TRIES_MAX = 5
/** An archived log that `choirctl logs` reads whole, when it missed a rotation: several times what one may hold. */
const LOG_ARCHIVE_READ_BYTES_MAX = 256 * 1024 * 1024

const LINE_FEED = 0x0a

/** The result of `find`, or nothing if there is no such file. */
const present = <A>(find: () => A): A | undefined => {
  try {
    return find()
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  }
}

/** One file that can be read to its end repeatedly. */
const makeFileReader = (file: number) => {
  const chunk = Buffer.allocUnsafe(LOG_CHUNK_BYTES)
  let splitter = makeLineSplitter(LOG_LINE_BYTES_MAX)
  let offset = 0
  let lines_end = 0
  const restart = (at: number) => {
    offset = at
    lines_end = at
    splitter = makeLineSplitter(LOG_LINE_BYTES_MAX)
  }
  return {
    /** The next lines; `undefined` at the end. */
    read: (): ReadonlyArray<Line> | undefined => {
      const { size } = fstatSync(file)
      // A writer removes half a line when it cannot write the rest; a file that is shorter still was emptied.
      if (size < offset) restart(size >= lines_end ? lines_end : 0)
      const bytes = readSync(file, chunk, 0, chunk.length, offset)
      if (bytes === 0) return undefined
      const last = chunk.subarray(0, bytes).lastIndexOf(LINE_FEED)
      if (last >= 0) lines_end = offset + last + 1
      offset += bytes
      return splitter.push(chunk.subarray(0, bytes))
    },
    rest: () => splitter.flush(),
    inode: () => fstatSync(file).ino,
    close: () => closeSync(file)
  }
}

const splitWhole = (bytes: Buffer): ReadonlyArray<Line> => {
  const splitter = makeLineSplitter(LOG_LINE_BYTES_MAX)
  return [...splitter.push(bytes), ...splitter.flush()]
}

const makeReader = (path: string) => {
  const archive = join(dirname(path), "archive", basename(path, ".log"))
  const stems = (): ReadonlyArray<string> => {
    const names = present(() => readdirSync(archive)) ?? []
    return [...new Set(names.flatMap((name) => archiveStem(name) ?? []))].toSorted()
  }

  /** The file that has the name now, and the newest archive before it; a rotation in between would tear them apart. */
  const openNow = () => {
    for (let tries = 1; ; tries += 1) {
      const newest = stems().at(-1) ?? ""
      const descriptor = present(() => openSync(path, "r"))
      if (newest === (stems().at(-1) ?? "") || tries === LOG_OPEN_TRIES_MAX)
        return { file: descriptor === undefined ? undefined : makeFileReader(descriptor), newest }
      if (descriptor !== undefined) closeSync(descriptor)
    }
  }
  let now = openNow()

  /** The lines of an archive, whether it is compressed by now or not; none when it was removed meanwhile. */
  const archived = (stem: string): ReadonlyArray<Line> => {
    const plain = present(() => readFileSync(join(archive, archiveName(stem, false))))
    if (plain !== undefined) return splitWhole(plain)
    const gz = present(() => readFileSync(join(archive, archiveName(stem, true))))
    return gz === undefined ? [] : splitWhole(gunzipSync(gz, { maxOutputLength: LOG_ARCHIVE_READ_BYTES_MAX }))
  }

  return {
    exists: () => now.file !== undefined,
    read: () => now.file?.read(),
    rest: () => now.file?.rest() ?? [],
    /** Whether another file has the name, or none. The writer of the earlier file has finished it. */
    isOver: (): boolean => {
      const found = statSync(path, { throwIfNoEntry: false })
      return found?.ino !== now.file?.inode()
    },
    /** Continues with the file that has the name now. Returns the lines that were archived unseen. */
    renew: (): ReadonlyArray<Line> => {
      const before = now
      now = openNow()
      const later = stems().filter((stem) => stem > before.newest && stem <= now.newest)
      // The first of them is the file that was read to its end here.
      const unseen = before.file === undefined ? later : later.slice(1)
      const lines = [...(before.file?.rest() ?? []), ...unseen.flatMap(archived)]
      before.file?.close()
      return lines
    },
    close: () => now.file?.close()
  }
}

const attempt = <A>(path: string, work: () => A) =>
  Effect.try({
    try: work,
    catch: (cause) => failed("FILE", `${path} cannot be read (${codeOf(cause) ?? String(cause)})`, "choirctl doctor")
  })

const ending = (lines: ReadonlyArray<Line>, count: number) => (count === 0 ? [] : lines.slice(-count))

export interface Tail {
  readonly path: string
  readonly follow: boolean
  /** How many of the newest lines to begin with; all of them when undefined. */
  readonly last: number | undefined
  /** The hint when there is no such log. */
  readonly hint: string
}

/** Gives every line of a log to `emit`, and with `follow` every line that comes, until it is interrupted. */
export const tailLog = Effect.fn("tailLog")(function* <R>(
  { follow, hint, last, path }: Tail,
  emit: (line: Line) => Effect.Effect<void, never, R>
) {
  const reader = yield* Effect.acquireRelease(
    attempt(path, () => makeReader(path)),
    ({ close }) => Effect.sync(close)
  )
  if (!reader.exists()) return yield* failed("NO_LOG", `there is no log ${path}`, hint)
  const drain = (take: (lines: ReadonlyArray<Line>) => Effect.Effect<void, never, R>) =>
    Effect.gen(function* () {
      for (let lines = yield* attempt(path, reader.read); lines !== undefined;) {
        yield* take(lines)
        lines = yield* attempt(path, reader.read)
      }
    })
  const emitAll = (lines: ReadonlyArray<Line>) => Effect.forEach(lines, emit, { discard: true })

  if (last === undefined) yield* drain(emitAll)
  else {
    let newest: ReadonlyArray<Line> = []
    yield* drain((lines) => Effect.sync(() => void (newest = ending([...newest, ...lines], last))))
    // A reader that follows the log waits for the end of a line that is still being written.
    yield* emitAll(follow ? newest : ending([...newest, ...reader.rest()], last))
  }
  if (!follow) return yield* emitAll(reader.rest())
  const look = Effect.gen(function* () {
    yield* Effect.sleep(LOG_POLL_MS)
    yield* drain(emitAll)
    if (!(yield* attempt(path, reader.isOver))) return
    // Lines written between the last read and the rename.
    yield* drain(emitAll)
    yield* emitAll(yield* attempt(path, reader.renew))
    yield* drain(emitAll)
  })
  return yield* Effect.forever(look)
}, Effect.scoped)
