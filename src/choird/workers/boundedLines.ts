/** Lines of a stream whose writer is not trusted with memory. */
import type { Readable } from "node:stream"
import { makeLines } from "#src/shared/wire/jsonLines.ts"

/** Calls `line` for each line; a line beyond `bytes_max` is not kept, and `tooLong` is called once. */
export const readLines = (
  stream: Readable,
  bytes_max: number,
  line: (text: string) => void,
  tooLong: () => void
): void => {
  const cut = makeLines(bytes_max, (text) => {
    line(text)
    return undefined
  })
  stream.on("data", (chunk: Buffer) => {
    if (cut(chunk) === undefined || stream.listenerCount("data") === 0) return
    stream.removeAllListeners("data").resume()
    tooLong()
  })
}
