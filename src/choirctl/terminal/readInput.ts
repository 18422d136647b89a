/** Standard input that a program or a file hands over. */
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
      ? Effect.fail(usageError(`standard input is longer than ${bytes_max} bytes`, "hand over less"))
      : Effect.void
  })
  return yield* Effect.try({
    try: () => new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(parts)),
    catch: () => usageError("standard input is not UTF-8", "hand over text")
  })
})

/** A text without the line end that `echo` and editors add. */
export const withoutLineEnd = (text: string): string => text.replace(/\r?\n$/u, "")
