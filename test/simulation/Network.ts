/**
 * The network between simulated programs: requests and answers are texts that take their time, get lost, come twice and overtake
 * each other; a connection can be cut, or go silent with nobody told.
 */
import { Cause, Effect, Queue } from "effect"
import { HttpClient, type HttpClientError, type HttpClientRequest, type HttpClientResponse } from "effect/http"
import type { Faults } from "./Faults.ts"
import { CUT_MS, type IoFault, type IoFaultKind } from "./IoFault.ts"
import type { Kernel, Process } from "./Kernel.ts"
import type { Seed } from "./Seed.ts"
import { type Body, broken, makeResponse } from "./SimResponse.ts"

export interface Request {
  readonly path: string
  readonly query: ReadonlyMap<string, string>
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string
  /** Who asks. */
  readonly from: Process
}

/** A body that is sent in pieces. */
export interface Pieces {
  write(text: string): void
  end(): void
  isOpen(): boolean
}

/** The server's end of a request. After the client has gone, what it says is lost. */
export interface Exchange {
  reply(status: number, body: string, headers?: Readonly<Record<string, string>>): void
  stream(): Pieces
  /** Whether the client has no byte of an answer yet. */
  isAwaited(): boolean
  /** Breaks the connection, which its client is told as a kernel would. */
  reset(): void
}

export interface Server {
  /** Who listens, or `undefined` when nobody does. */
  listener(): Process | undefined
  handle(request: Request, exchange: Exchange): void
  /** Hears of each request as its client sends it, also of those that never arrive. */
  sent?(request: Request): void
}

/** How the way between two programs behaves. */
export interface Wire {
  /** What one message takes at least, in ms. */
  readonly latency_ms: number
  /** Nothing passes until then. */
  cut_until: number
  /** Requests and answers that got lost or came late, the newest last. */
  readonly troubles: Array<Trouble>
}

/** What befell a message; `of` asked. */
export interface Trouble {
  readonly of: Process
  readonly at_ms: number
}

/** A message that takes longer is late, in ms. */
const LATE_MS = 1000

/** One request of a client, from its end. */
interface Call {
  readonly from: Process
  readonly wire: Wire
  readonly server: Server
  readonly request: HttpClientRequest.HttpClientRequest
  readonly url: URL
  readonly body: Body
  readonly resume: (
    answer: Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError>
  ) => void
}

/** A request under way. The bytes of one answer never overtake each other, whatever others do. */
class Connection {
  open = true
  listener: Process | undefined
  readonly #call: Call
  readonly #kernel: Kernel
  readonly #forget: () => void
  #answer: Exchange | undefined
  readonly #due: Array<() => void> = []
  #last_at = 0

  constructor(call: Call, kernel: Kernel, forget: (connection: Connection) => void) {
    this.#call = call
    this.#kernel = kernel
    this.#forget = () => forget(this)
  }

  isAwaited(): boolean {
    return this.open && this.#answer === undefined
  }

  close(): void {
    this.open = false
    this.#forget()
  }

  fail(reason: string, code?: string): void {
    if (!this.open) return
    this.close()
    const { body, from, request, resume } = this.#call
    const error = broken(request, reason, code)
    this.#kernel.post(from, () => {
      if (this.#answer !== undefined) Queue.failCauseUnsafe(body, Cause.fail(error))
      else resume(Effect.fail(error))
    })
  }

  /** Runs at the client after a passage, unless the client has gone. */
  arrive(passage_ms: number, deliver: () => void): void {
    this.#last_at = Math.max(this.#last_at, this.#kernel.now + passage_ms)
    // What became due while the client stood still is handed over in its order, whichever of the tasks runs first.
    this.#due.push(deliver)
    this.#kernel.after(this.#call.from, this.#last_at - this.#kernel.now, () => {
      const next = this.#due.shift()
      if (this.open) next?.()
    })
  }

  /** Begins the answer. A request that came twice is answered twice, and the client hears the first answer alone. */
  head(answer: Exchange, status: number, headers: Readonly<Record<string, string>>): void {
    if (this.#answer !== undefined) return
    this.#answer = answer
    const { body, request, resume } = this.#call
    resume(Effect.succeed(makeResponse(request, status, headers, body)))
  }

  piece(answer: Exchange, text: string): void {
    if (answer === this.#answer) Queue.offerUnsafe(this.#call.body, Buffer.from(text))
  }

  end(answer: Exchange): void {
    if (answer !== this.#answer) return
    this.close()
    Queue.endUnsafe(this.#call.body)
  }
}

export class Network {
  readonly #kernel: Kernel
  readonly #seed: Seed
  readonly #faults: Faults
  readonly #io: IoFault
  readonly #connections = new Set<Connection>()

  constructor(kernel: Kernel, seed: Seed, faults: Faults, io: IoFault) {
    this.#kernel = kernel
    this.#seed = seed
    this.#faults = faults
    this.#io = io
  }

  /** A dead program's connections break, as the kernel of its host would see to it. */
  reset(process: Process): void {
    for (const connection of this.#connections)
      if (connection.listener === process) this.#soon(20, () => connection.fail("connection reset"))
  }

  /** A client that speaks from one program to a server over a wire. */
  client(from: Process, wire: Wire, server: Server): HttpClient.HttpClient {
    return HttpClient.make((request, url) =>
      // The queue belongs to the program that reads it: it wakes its readers by the scheduler that made it.
      Effect.flatMap(Queue.unbounded<Uint8Array, HttpClientError.HttpClientError | Cause.Done>(), (body) =>
        Effect.callback<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError>((resume) => {
          const connection = this.#connect({ from, wire, server, request, url, body, resume })
          return Effect.sync(() => connection.close())
        })
      )
    )
  }

  #soon(typical_ms: number, run: () => void): void {
    this.#kernel.after(this.#kernel.world, this.#seed.wait(typical_ms), run)
  }

  /** What a message takes now, in ms, or `undefined` when it is lost. */
  #passage(wire: Wire, met: IoFaultKind | undefined): number | undefined {
    const { rates } = this.#faults
    if (met === "cut" && !this.#faults.calm) wire.cut_until = this.#kernel.now + CUT_MS
    if (met === "cut" || met === "request-lost" || met === "answer-lost") return undefined
    if (wire.cut_until > this.#kernel.now && !this.#faults.calm) return undefined
    if (this.#faults.active("loss") && this.#seed.chance(rates.loss)) return undefined
    const slow = this.#faults.active("delay") && this.#seed.chance(rates.delay) ? this.#seed.wait(rates.delay_ms) : 0
    return wire.latency_ms + this.#seed.below(3) + slow
  }

  /** What is lost is told soon, or only when all faults end: then the client has nothing but its own patience. */
  #lose(connection: Connection): void {
    const tell = () => connection.fail("the connection broke")
    if (this.#faults.active("silence") && this.#seed.chance(0.5)) this.#faults.onCalm(tell)
    else this.#soon(200, tell)
  }

  #connect(call: Call): Connection {
    const connection = new Connection(call, this.#kernel, (it) => this.#connections.delete(it))
    this.#connections.add(connection)
    const { request, url } = call
    const asked: Request = {
      path: url.pathname,
      query: new Map(url.searchParams),
      headers: request.headers,
      from: call.from,
      body: request.body._tag === "Uint8Array" ? Buffer.from(request.body.body).toString("utf8") : ""
    }
    call.server.sent?.(asked)
    this.#send(call, asked, connection)
    if (this.#faults.active("twice") && this.#seed.chance(this.#faults.rates.twice)) this.#send(call, asked, connection)
    return connection
  }

  #send(call: Call, asked: Request, connection: Connection): void {
    const met = this.#io.meets("request")
    if (met === "request-twice") this.#send(call, asked, connection)
    const passage = this.#passage(call.wire, met)
    this.#watched(call, passage)
    if (passage === undefined) return this.#lose(connection)
    this.#kernel.after(this.#kernel.world, passage, () => {
      const listener = call.server.listener()
      if (listener === undefined) return this.#soon(5, () => connection.fail("connection refused"))
      connection.listener = listener
      this.#kernel.post(listener, () => call.server.handle(asked, this.#exchange(call, connection)))
    })
  }

  #watched({ from, wire }: Call, passage: number | undefined): void {
    if (passage === undefined || passage > LATE_MS) wire.troubles.push({ of: from, at_ms: this.#kernel.now })
  }

  #exchange(call: Call, connection: Connection): Exchange {
    const { wire } = call
    const toClient = (deliver: () => void) => {
      if (!connection.open) return
      const passage = this.#passage(wire, this.#io.meets("answer"))
      this.#watched(call, passage)
      if (passage === undefined) this.#lose(connection)
      else connection.arrive(passage, deliver)
    }
    const answer: Exchange = {
      reply: (status, text, headers = {}) =>
        toClient(() => {
          connection.head(answer, status, { "content-type": "application/json", ...headers })
          connection.piece(answer, text)
          connection.end(answer)
        }),
      stream: () => {
        let broke = false
        // A stream that lost a piece brings no later one: whatever comes after the gap would be a lie.
        const next = (deliver: () => void) => {
          if (broke || !connection.open) return
          const passage = this.#passage(wire, this.#io.meets("answer"))
          if (passage !== undefined) return connection.arrive(passage, deliver)
          broke = true
          this.#lose(connection)
        }
        next(() => connection.head(answer, 200, { "content-type": "text/event-stream" }))
        return {
          write: (text) => next(() => connection.piece(answer, text)),
          end: () => next(() => connection.end(answer)),
          isOpen: () => connection.open
        }
      },
      isAwaited: () => connection.isAwaited(),
      reset: () => connection.fail("connection reset", "ECONNRESET")
    }
    return answer
  }
}
