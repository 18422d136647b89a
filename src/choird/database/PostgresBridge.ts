/**
 * Lets several connections share the one backend of the embedded database. A backend answers one cycle at a time, and a
 * connection that has a transaction open keeps the backend until that transaction ends, so transactions never mix.
 *
 * The clients are choird's own and prepare no named statements, so a session leaves nothing behind but its transaction.
 * LISTEN is not supported: a notification would reach the client that happens to hold the backend.
 */
import { CycleReader } from "./CycleReader.ts"
import { EMBEDDED_CONNECTIONS_MAX } from "./Database.ts"

/** One answer of the embedded database. Longer results are read in pages. */
export const EMBEDDED_ANSWER_BYTES_MAX = 64 * 1024 * 1024

/** Answers one cycle; `onData` sees bytes that it must copy. A rejection means that the backend is gone. */
type Backend = (cycle: Uint8Array, onData: (bytes: Uint8Array) => void) => Promise<void>

/** The other end of a connection. It owns the bytes that it is sent. */
interface Peer {
  readonly send: (bytes: Uint8Array<ArrayBuffer>) => void
  readonly hangUp: () => void
}

/** A connection as its peer sees it. */
interface BridgeConnection {
  readonly receive: (chunk: Uint8Array) => void
  readonly close: () => void
}

const HEADER_BYTES = 5
const READY_FOR_QUERY = 0x5a
const READY_BYTES = 6
const IDLE = 0x49
/** Side connections that only carry a cancel request come on top of the pool. */
const CONNECTIONS_MAX = 2 * EMBEDDED_CONNECTIONS_MAX

const message = (type: string, body: string): Uint8Array<ArrayBuffer> => {
  const text = Buffer.from(body, "utf8")
  const bytes = Buffer.from(new ArrayBuffer(HEADER_BYTES + text.length))
  bytes.write(type, "latin1")
  bytes.writeUInt32BE(4 + text.length, 1)
  text.copy(bytes, HEADER_BYTES)
  return bytes
}

const failure = (severity: "ERROR" | "FATAL", code: string, text: string) =>
  message("E", `S${severity}\0V${severity}\0C${code}\0M${text}\0\0`)
const TOO_LARGE = failure("ERROR", "54000", "the result is too large for one answer: read it in pages")
const ROLLBACK = message("Q", "ROLLBACK\0")

const joined = (chunks: ReadonlyArray<Uint8Array>): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return bytes
}

interface Answer {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Whether no transaction is open. */
  readonly idle: boolean
}

interface Connection {
  readonly peer: Peer
  readonly cycles: Array<Uint8Array>
  closed: boolean
}

export class PostgresBridge {
  readonly #backend: Backend
  readonly #idleMs: number
  readonly #onBroken: () => void
  readonly #waiting: Array<Connection> = []
  #open = 0
  #owner: Connection | undefined
  #busy = false
  #idleTimer: NodeJS.Timeout | undefined

  /** `idleMs` is how long an open transaction may wait for its own program; `onBroken` is called when the backend has failed. */
  constructor(backend: Backend, idleMs: number, onBroken: () => void) {
    this.#backend = backend
    this.#idleMs = idleMs
    this.#onBroken = onBroken
  }

  connect(peer: Peer): BridgeConnection {
    const reader = new CycleReader()
    const connection: Connection = { peer, cycles: [], closed: false }
    this.#open += 1
    if (this.#open > CONNECTIONS_MAX) this.#refuse(connection, "53300", "too many connections to the embedded database")
    return {
      receive: (chunk) => {
        if (connection.closed) return
        for (const request of reader.push(chunk)) {
          if (request._tag === "Goodbye") this.#close(connection)
          else if (request._tag === "TooLarge") this.#refuse(connection, "54000", "the request is too large")
          else this.#enqueue(connection, request.bytes)
        }
      },
      close: () => this.#close(connection)
    }
  }

  /** A client sends its next cycle after the answer to this one, so a connection has one cycle or a few small ones here. */
  #enqueue(connection: Connection, cycle: Uint8Array) {
    connection.cycles.push(cycle)
    if (connection.cycles.length === 1 && connection !== this.#owner) this.#waiting.push(connection)
    this.#work().catch(this.#onBroken)
  }

  #refuse(connection: Connection, code: string, text: string) {
    connection.peer.send(failure("FATAL", code, text))
    this.#close(connection)
  }

  #close(connection: Connection) {
    if (connection.closed) return
    connection.closed = true
    connection.cycles.length = 0
    this.#open -= 1
    connection.peer.hangUp()
    this.#work().catch(this.#onBroken)
  }

  /** The only loop. The owner of an open transaction goes first, the others in the order in which they asked. */
  async #work() {
    if (this.#busy) return
    this.#busy = true
    clearTimeout(this.#idleTimer)
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      if (next.closed) await this.#abandon()
      else await this.#serve(next)
    }
    this.#busy = false
    const owner = this.#owner
    if (owner === undefined) return
    const expire = () => this.#refuse(owner, "25P03", "the transaction waited too long for its own program")
    this.#idleTimer = setTimeout(expire, this.#idleMs)
  }

  #next(): Connection | undefined {
    if (this.#owner !== undefined) return this.#owner.closed || this.#owner.cycles.length > 0 ? this.#owner : undefined
    let next = this.#waiting.shift()
    while (next?.closed === true) next = this.#waiting.shift()
    return next
  }

  async #serve(connection: Connection) {
    const cycle = connection.cycles.shift()
    if (cycle === undefined) return
    const { bytes, idle } = await this.#answer(cycle)
    this.#owner = idle ? undefined : connection
    if (idle && connection.cycles.length > 0) this.#waiting.push(connection)
    connection.peer.send(bytes)
  }

  /** Ends the transaction that a closed connection left open. */
  async #abandon() {
    await this.#answer(ROLLBACK)
    this.#owner = undefined
  }

  /** The whole answer, in memory of its own; one that is too large becomes an error with the same end. */
  async #answer(cycle: Uint8Array): Promise<Answer> {
    let chunks: Array<Uint8Array> = []
    let length = 0
    let end: Uint8Array = new Uint8Array()
    await this.#backend(cycle, (data) => {
      const copy = data.slice()
      length += copy.length
      end = copy.length >= READY_BYTES ? copy.subarray(-READY_BYTES) : Buffer.concat([end, copy]).subarray(-READY_BYTES)
      if (length <= EMBEDDED_ANSWER_BYTES_MAX) chunks.push(copy)
      else chunks = [TOO_LARGE]
    })
    // A backend that does not get ready again has broken, and would never answer anything more.
    if (end[0] !== READY_FOR_QUERY) throw new Error("the engine gave half an answer")
    if (length > EMBEDDED_ANSWER_BYTES_MAX) chunks.push(end)
    return { bytes: joined(chunks), idle: end[HEADER_BYTES] === IDLE }
  }
}
