/** A log file as it grows, is emptied, or gives way to a new one (spec 22.2). */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs"
import { Effect } from "effect"
import { LOG_CHUNK_BYTES, LOG_LINE_BYTES_MAX, LOG_POLL_MS } from "#src/shared/limits.ts"
import { codeOf } from "#src/shared/nofollow.ts"
import { failed } from "./failure.ts"
import { type Line, makeLineSplitter } from "./lineSplitter.ts"

const open = (path: string) => {
  try {
    return openSync(path, "r")
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  }
}

const makeReader = (path: string) => {
  const chunk = Buffer.allocUnsafe(LOG_CHUNK_BYTES)
  let splitter = makeLineSplitter(LOG_LINE_BYTES_MAX)
  let file = open(path)
  let offset = 0

  /** Takes up the file that has this name now, from its start. */
  const restart = (next: number | undefined) => {
    if (file !== undefined) closeSync(file)
    file = next
    offset = 0
    splitter = makeLineSplitter(LOG_LINE_BYTES_MAX)
  }

  /** The next lines; `undefined` at the end of the file. */
  const read = (): ReadonlyArray<Line> | undefined => {
    if (file === undefined) return undefined
    if (fstatSync(file).size < offset) restart(open(path))
    if (file === undefined) return undefined
    const bytes = readSync(file, chunk, 0, chunk.length, offset)
    offset += bytes
    return bytes === 0 ? undefined : splitter.push(chunk.subarray(0, bytes))
  }

  /** Whether another file took the name. The old one was read to its end by then. */
  const renew = (): boolean => {
    const now = statSync(path, { throwIfNoEntry: false })
    if (now === undefined) return false
    if (file !== undefined && fstatSync(file).ino === now.ino) return false
    restart(open(path))
    return true
  }

  return {
    exists: () => file !== undefined,
    read,
    renew,
    rest: () => splitter.flush(),
    close: () => restart(undefined)
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
  /** What to do when there is no such log. */
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
    // The start of a line that is still being written is no line yet for one who follows.
    yield* emitAll(follow ? newest : ending([...newest, ...reader.rest()], last))
  }
  if (!follow) return yield* emitAll(reader.rest())
  const look = Effect.gen(function* () {
    yield* Effect.sleep(LOG_POLL_MS)
    yield* drain(emitAll)
    if (!(yield* attempt(path, reader.renew))) return
    yield* drain(emitAll)
  })
  return yield* Effect.forever(look)
}, Effect.scoped)
