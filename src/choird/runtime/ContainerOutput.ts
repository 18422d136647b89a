/** Turns what an agent prints into lines that cannot hold it up for long and cannot fill choird's memory. */
import { Clock, Effect, Queue, Stream } from "effect"
import type { Cause } from "effect"
import { take, type TokenBucket } from "#src/choird/queues/TokenBucket.ts"
import { monotonicMsOf } from "#src/shared/monotonicMs.ts"

/** One line of an agent's own output; the rest of the line is cut. */
const CONTAINER_LINE_BYTES_MAX = 16 * 1024
/** Lines of an agent's own output that wait for their reader; more are dropped and counted. */
export const CONTAINER_LINES_MAX = 1000

/** Bytes of an agent's own output that choird looks at, in the long run and at once after a pause; more are dropped. */
const OUTPUT_BYTES_PER_SECOND = 256 * 1024
export const OUTPUT_BYTES_BURST = 2 * 1024 * 1024
/** The cost of each line besides its bytes: an empty one is as much work as a long one. */
const LINE_BYTES = 256
const RATE = { perSecond: OUTPUT_BYTES_PER_SECOND, burst: OUTPUT_BYTES_BURST }
/** How long a pipe is left alone after it brought more than that: a full pipe costs choird nothing, and its agent waits no longer. */
export const OUTPUT_REST_MS = 50

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

const weightOf = (chunk: Buffer) => {
  let weight = chunk.length
  for (const byte of chunk) if (byte === NEWLINE) weight += LINE_BYTES
  return weight
}

/** The last line of a piece of output, whether or not it has ended. */
const lastLine = (chunk: Buffer) => {
  const end = chunk.at(-1) === NEWLINE ? chunk.length - 1 : chunk.length
  return chunk.subarray(chunk.lastIndexOf(NEWLINE, end - 1) + 1, end)
}

/** Lines between a process and one reader. Offering never waits. */
export const makeOutput = Effect.gen(function* () {
  const queue = yield* Queue.dropping<string, Cause.Done>(CONTAINER_LINES_MAX)
  const clock = yield* Clock.Clock
  let bucket: TokenBucket = { tokens: OUTPUT_BYTES_BURST, at_ms: monotonicMsOf(clock) }
  let dropped = 0
  const tell = (text: string) => Queue.offerUnsafe(queue, text)
  const offer = (line: string) => {
    if (dropped > 0 && tell(`(${dropped} lines of output were dropped)`)) dropped = 0
    if (dropped > 0 || !tell(line)) dropped++
  }
  const admits = (chunk: Buffer) => {
    const [next, wait_ms] = take(bucket, RATE, monotonicMsOf(clock), weightOf(chunk))
    bucket = next
    return wait_ms === 0
  }
  return {
    /** The consumer of one stream of bytes; each stream has its own, so that lines do not mix. */
    reader: () => {
      const cutter = lineCutter(CONTAINER_LINE_BYTES_MAX)
      let unseen = 0
      let newest: Buffer | undefined
      const finish = () => {
        cutter.end().forEach(offer)
        if (unseen > 0)
          offer(`(${unseen} bytes of output were dropped: more than ${OUTPUT_BYTES_PER_SECOND / 1024} KiB a second)`)
        unseen = 0
      }
      return {
        /** Whether it took the bytes; otherwise the stream had better rest. */
        data: (chunk: Buffer): boolean => {
          if (!admits(chunk)) {
            unseen += chunk.length
            newest = chunk
            return false
          }
          if (unseen > 0) finish()
          newest = undefined
          cutter.push(chunk).forEach(offer)
          return true
        },
        /** Takes the last line in any case: it often says why a program ends. */
        end: () => {
          finish()
          if (newest !== undefined) [...cutter.push(lastLine(newest)), ...cutter.end()].forEach(offer)
          newest = undefined
        }
      }
    },
    end: () => void Queue.endUnsafe(queue),
    lines: Stream.fromQueue(queue)
  }
})
export type ContainerOutput = Effect.Success<typeof makeOutput>
