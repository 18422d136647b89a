/** A connection to the embedded database in the shape that the Postgres client expects of a socket. */
import { Duplex } from "node:stream"
import type { MessagePort } from "node:worker_threads"
import { TAKEN } from "./workerProtocol.ts"

/**
 * A write ends when the other side has read it, so Node's own high-water mark bounds what lies in the port. One that is not read
 * within `stuckMs` milliseconds is reported to `onStuck`.
 */
export class PortStream extends Duplex {
  readonly #port: MessagePort
  readonly #stuckMs: number
  readonly #onStuck: () => void
  #timer: NodeJS.Timeout | undefined
  #taken: (() => void) | undefined

  constructor(port: MessagePort, stuckMs: number, onStuck: () => void) {
    super({ allowHalfOpen: false })
    this.#port = port
    this.#stuckMs = stuckMs
    this.#onStuck = onStuck
    port.on("message", (message: Uint8Array | typeof TAKEN) => {
      if (message !== TAKEN) return void this.push(message)
      clearTimeout(this.#timer)
      this.#taken?.()
    })
    port.on("close", () => this.destroy())
  }

  // What arrives is one answer, which the other side caps; there is nothing to ask for.
  override _read() {}

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: () => void) {
    this.#taken = done
    this.#timer = setTimeout(this.#onStuck, this.#stuckMs)
    // A copy without the client's pooled buffer around it.
    const bytes = new Uint8Array(chunk)
    this.#port.postMessage(bytes, [bytes.buffer])
  }

  override _final(done: () => void) {
    done()
    this.destroy()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void) {
    clearTimeout(this.#timer)
    this.#port.close()
    done(error)
  }
}
