/** Standard input as text, and bytes as lines. */

import { Effect, Stdio, Stream } from "effect"
import { usageError } from "./failure.ts"

/** All of standard input as text, at most `bytes_max` bytes of UTF-8. */
export const readInput = Effect.fn("readInput")(function* (bytes_max: number) {
  const { stdin } = yield* Stdio.Stdio
  const parts: Array<Uint8Array> = []
  let bytes = 0
  yield* Stream.runForEach(stdin, (part) => {
    bytes += part.length
    parts.push(part)
    return bytes > bytes_max
      ? Effect.fail(usageError(`standard input is longer than ${bytes_max} bytes`, "use a shorter one"))
      : Effect.void
  })
  return yield* Effect.try({
    try: () => new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(parts)),
    catch: () => usageError("standard input is not UTF-8", "send UTF-8 text")
  })
})

/** A text without the line end that `echo` and editors add. */
export const withoutLineEnd = (text: string): string => text.replace(/\r?\n$/u, "")

export interface Line {
  readonly text: string
  /** Whether the line was longer than allowed, and its end is missing. */
  readonly cut: boolean
}

const LINE_FEED = 0x0a

const lineOf = (bytes: Buffer, bytes_max: number): Line => {
  const cut = bytes.length > bytes_max
  return { text: bytes.subarray(0, bytes_max).toString("utf8").replace(/\r$/u, ""), cut }
}

/** Holds at most one line of `bytes_max` bytes between two pieces. */
export const makeLineSplitter = (bytes_max: number) => {
  let rest = Buffer.alloc(0)
  const keep = (bytes: Buffer) => {
    rest = Buffer.from(Buffer.concat([rest, bytes]).subarray(0, bytes_max + 1))
  }
  return {
    /** The lines that this piece completes. */
    push(piece: Uint8Array): ReadonlyArray<Line> {
      const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)
      const lines: Array<Line> = []
      let start = 0
      for (let end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, start)) {
        keep(bytes.subarray(start, end))
        lines.push(lineOf(rest, bytes_max))
        rest = Buffer.alloc(0)
        start = end + 1
      }
      keep(bytes.subarray(start))
      return lines
    },
    /** The line without an end that is left over. */
    flush(): ReadonlyArray<Line> {
      const left = rest
      rest = Buffer.alloc(0)
      return left.length === 0 ? [] : [lineOf(left, bytes_max)]
    }
  }
}
