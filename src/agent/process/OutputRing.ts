/** The kept part of an output stream: its beginning and its end, in memory that never grows beyond a limit (R48). */

/** A stream's output as text. */
export interface CapturedOutput {
  /** Head and tail, with a line between them that says what was left out. Invalid UTF-8 became U+FFFD. */
  readonly text: string
  /** Bytes between head and tail that were dropped. */
  readonly dropped: number
}

export class OutputRing {
  readonly #half: number
  readonly #head: Array<Buffer> = []
  #head_bytes = 0
  #tail: Buffer | undefined
  /** Bytes that ever went to the tail; modulo its size, the next place to write. */
  #tail_total = 0

  constructor(bytes_max: number) {
    this.#half = Math.floor(bytes_max / 2)
  }

  push(chunk: Uint8Array): void {
    const toHead = chunk.subarray(0, this.#half - this.#head_bytes)
    if (toHead.length > 0) this.#pushHead(toHead)
    const rest = chunk.subarray(toHead.length)
    if (rest.length > 0) this.#pushTail(rest)
  }

  /** Many tiny chunks are joined, so that their count is bounded as well as their bytes. */
  #pushHead(bytes: Uint8Array): void {
    const last = this.#head.at(-1)
    if (last !== undefined && last.length < 4096) this.#head[this.#head.length - 1] = Buffer.concat([last, bytes])
    else this.#head.push(Buffer.from(bytes))
    this.#head_bytes += bytes.length
  }

  #pushTail(bytes: Uint8Array): void {
    const tail = (this.#tail ??= Buffer.allocUnsafe(this.#half))
    const kept = bytes.subarray(Math.max(0, bytes.length - this.#half))
    this.#tail_total += bytes.length - kept.length
    const at = this.#tail_total % this.#half
    const first = kept.subarray(0, this.#half - at)
    tail.set(first, at)
    tail.set(kept.subarray(first.length), 0)
    this.#tail_total += kept.length
  }

  captured(): CapturedOutput {
    const head = Buffer.concat(this.#head)
    const tail = this.#tail ?? Buffer.alloc(0)
    const dropped = Math.max(0, this.#tail_total - this.#half)
    if (dropped === 0) {
      return { text: Buffer.concat([head, tail.subarray(0, this.#tail_total)]).toString("utf8"), dropped }
    }
    const at = this.#tail_total % this.#half
    const end = Buffer.concat([tail.subarray(at), tail.subarray(0, at)])
    return { text: `${head.toString("utf8")}\n[${dropped} bytes left out]\n${end.toString("utf8")}`, dropped }
  }
}
