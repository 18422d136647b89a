/** One request to the embedded database: a statement with its parameters. */
export const EMBEDDED_REQUEST_BYTES_MAX = 16 * 1024 * 1024
/**
 * The client's half of the Postgres wire protocol, cut into cycles: a startup packet, or everything up to a Sync or a
 * simple Query. The server answers a cycle as a whole and says that it is ready again, so a cycle is the smallest thing that several clients can take turns by.
 */

const STARTUP_3_0 = 196_608
const HEADER_BYTES = 5
const STARTUP_BYTES_MIN = 8
const QUERY = 0x51
const SYNC = 0x53
const TERMINATE = 0x58
const EMPTY = Buffer.alloc(0)

/** A client's request: a cycle to answer, the end of the connection, or something that is refused. */
type ClientRequest =
  | { readonly _tag: "Cycle"; readonly bytes: Uint8Array }
  | { readonly _tag: "Goodbye" }
  | { readonly _tag: "TooLarge" }

const GOODBYE: ClientRequest = { _tag: "Goodbye" }

/** Holds at most one unfinished cycle of {@link EMBEDDED_REQUEST_BYTES_MAX}; an announced length is checked first. */
export class CycleReader {
  #buffer = EMPTY
  #scanned = 0
  #started = false

  /** The requests that `chunk` completes. After Goodbye or TooLarge the rest of the stream means nothing. */
  push(chunk: Uint8Array): ReadonlyArray<ClientRequest> {
    this.#buffer = Buffer.concat([this.#buffer, chunk])
    const requests: Array<ClientRequest> = []
    for (let request = this.#next(); request !== undefined; request = this.#next()) {
      requests.push(request)
      if (request._tag !== "Cycle") break
    }
    return requests
  }

  #next(): ClientRequest | undefined {
    if (!this.#started) return this.#startup()
    while (this.#buffer.length - this.#scanned >= HEADER_BYTES) {
      const type = this.#buffer[this.#scanned]
      const end = this.#scanned + 1 + this.#buffer.readUInt32BE(this.#scanned + 1)
      if (end > EMBEDDED_REQUEST_BYTES_MAX || end < this.#scanned + HEADER_BYTES) return { _tag: "TooLarge" }
      if (this.#buffer.length < end) return undefined
      if (type === TERMINATE) return GOODBYE
      this.#scanned = end
      if (type === SYNC || type === QUERY) return this.#take(end)
    }
    return undefined
  }

  /** A cancel request is a goodbye: the one backend cannot be interrupted, and the client only waits for the end. */
  #startup(): ClientRequest | undefined {
    if (this.#buffer.length < STARTUP_BYTES_MIN) return undefined
    const length = this.#buffer.readUInt32BE(0)
    if (length > EMBEDDED_REQUEST_BYTES_MAX || length < STARTUP_BYTES_MIN) return { _tag: "TooLarge" }
    if (this.#buffer.length < length) return undefined
    if (this.#buffer.readUInt32BE(4) !== STARTUP_3_0) return GOODBYE
    this.#started = true
    return this.#take(length)
  }

  #take(end: number): ClientRequest {
    const bytes = this.#buffer.subarray(0, end)
    this.#buffer = this.#buffer.subarray(end)
    this.#scanned = 0
    return { _tag: "Cycle", bytes }
  }
}
