/** Lines of a stream whose writer is not trusted with memory. */
import type { Readable } from "node:stream"

/** Calls `line` for each line; a line beyond `bytes_max` is not kept, and `tooLong` is called once. */
export const readLines = (
  stream: Readable,
  bytes_max: number,
  line: (text: string) => void,
  tooLong: () => void
): void => {
  let kept: Array<Buffer> = []
  let bytes = 0
  stream.on("data", (chunk: Buffer) => {
    let rest = chunk
    for (let end = rest.indexOf(10); end >= 0 && bytes + end <= bytes_max; end = rest.indexOf(10)) {
      line(Buffer.concat([...kept, rest.subarray(0, end)]).toString("utf8"))
      rest = rest.subarray(end + 1)
      kept = []
      bytes = 0
    }
    bytes += rest.length
    if (bytes <= bytes_max) kept.push(rest)
    else if (stream.listenerCount("data") > 0) {
      stream.removeAllListeners("data").resume()
      kept = []
      tooLong()
    }
  })
}
