/** Turns what an agent prints into lines that cannot block it and cannot fill choird's memory. */
import { Queue, Stream } from "effect"
import type { Cause } from "effect"

/** One line of an agent's own output; the rest of the line is cut. */
const CONTAINER_LINE_BYTES_MAX = 16 * 1024
/** Lines of an agent's own output that wait for their reader; more are dropped and counted. */
export const CONTAINER_LINES_MAX = 1000

const NEWLINE = 10

/** Cuts bytes into lines of at most `bytesMax`; the rest of a longer line is counted and thrown away. */
export const lineCutter = (bytesMax: number) => {
  let held: Array<Buffer> = []
  let heldBytes = 0
  let cutBytes = 0
  const finish = () => {
    const text = new TextDecoder().decode(Buffer.concat(held)).replace(/\r$/u, "")
    const line = cutBytes === 0 ? text : `${text} (${cutBytes} bytes of this line were cut)`
    held = []
    heldBytes = 0
    cutBytes = 0
    return line
  }
  const hold = (part: Buffer) => {
    const kept = part.subarray(0, bytesMax - heldBytes)
    if (kept.length > 0) held.push(Buffer.from(kept))
    heldBytes += kept.length
    cutBytes += part.length - kept.length
  }
  return {
    push: (chunk: Buffer): ReadonlyArray<string> => {
      const lines: Array<string> = []
      let from = 0
      for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
        hold(chunk.subarray(from, at))
        lines.push(finish())
        from = at + 1
      }
      hold(chunk.subarray(from))
      return lines
    },
    /** The last line when it does not end in a newline. */
    end: (): ReadonlyArray<string> => (heldBytes === 0 ? [] : [finish()])
  }
}

export type OutputQueue = Queue.Queue<string, Cause.Done>

/** Lines between a process and one reader. Offering never waits. */
export const makeOutput = (queue: OutputQueue) => {
  let dropped = 0
  const offer = (line: string) => {
    if (dropped > 0 && Queue.offerUnsafe(queue, `(${dropped} lines of output were dropped)`)) dropped = 0
    if (dropped > 0 || !Queue.offerUnsafe(queue, line)) dropped++
  }
  return {
    /** The consumer of one stream of bytes; each stream has its own, so that lines do not mix. */
    reader: () => {
      const cutter = lineCutter(CONTAINER_LINE_BYTES_MAX)
      return {
        data: (chunk: Buffer) => cutter.push(chunk).forEach(offer),
        end: () => cutter.end().forEach(offer)
      }
    },
    end: () => void Queue.endUnsafe(queue),
    lines: Stream.fromQueue(queue)
  }
}

export const outputQueue = Queue.dropping<string, Cause.Done>(CONTAINER_LINES_MAX)
