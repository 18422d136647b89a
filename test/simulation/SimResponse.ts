/** An HTTP response whose body arrives by simulated time, without a promise of the host. */
import { Effect, Inspectable, Option, Queue, Stream } from "effect"
import type { Cause } from "effect"
import { Cookies, Headers, HttpClientError, HttpClientResponse, HttpIncomingMessage } from "effect/http"
import type { HttpClientRequest } from "effect/http"

/** Pieces of a body in order, then its end or its breaking off. */
export type Body = Queue.Queue<Uint8Array, HttpClientError.HttpClientError | Cause.Done>

/** A transport error of a request, with the code by which a kernel names it. */
export const broken = (request: HttpClientRequest.HttpClientRequest, description: string, code?: string) =>
  new HttpClientError.HttpClientError({
    reason: new HttpClientError.TransportError({
      request,
      description,
      ...(code === undefined ? {} : { cause: { code } })
    })
  })

class SimResponse
  extends Inspectable.Class
  implements HttpIncomingMessage.HttpIncomingMessage<HttpClientError.HttpClientError>
{
  readonly [HttpIncomingMessage.TypeId] = HttpIncomingMessage.TypeId
  readonly [HttpClientResponse.TypeId] = HttpClientResponse.TypeId
  readonly remoteAddress = Option.none()
  readonly cookies = Cookies.empty
  readonly url = ""
  readonly request: HttpClientRequest.HttpClientRequest
  readonly status: number
  readonly headers: Headers.Headers
  readonly stream: Stream.Stream<Uint8Array, HttpClientError.HttpClientError>

  constructor(
    request: HttpClientRequest.HttpClientRequest,
    status: number,
    headers: Readonly<Record<string, string>>,
    body: Body
  ) {
    super()
    this.request = request
    this.status = status
    this.headers = Headers.fromInput(headers)
    this.stream = Stream.fromQueue(body)
  }

  toJSON() {
    return { status: this.status }
  }
  get text() {
    return this.stream.pipe(
      Stream.runFold(
        () => [] as Array<Uint8Array>,
        (chunks, chunk) => [...chunks, chunk]
      ),
      Effect.map((chunks) => Buffer.concat(chunks).toString("utf8"))
    )
  }
  get arrayBuffer() {
    return Effect.map(this.text, (text) => new TextEncoder().encode(text).buffer)
  }
  get json() {
    return Effect.flatMap(this.text, (text) =>
      Effect.try({ try: () => JSON.parse(text), catch: () => broken(this.request, "the body is not JSON") })
    )
  }
  get urlParamsBody() {
    return Effect.fail(broken(this.request, "no form"))
  }
  get formData() {
    return Effect.fail(broken(this.request, "no form"))
  }
  get upgrade() {
    return Effect.fail(broken(this.request, "no upgrade"))
  }
  pipe() {
    return this as never
  }
}

export const makeResponse = (
  request: HttpClientRequest.HttpClientRequest,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: Body
) => new SimResponse(request, status, headers, body) as unknown as HttpClientResponse.HttpClientResponse
