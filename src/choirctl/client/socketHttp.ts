/**
 * HTTP on a Unix socket with nothing of Node but `node:http`. The clients that come with the platform load TLS as well, which takes
 * as long as a whole call of choirctl may (P7).
 */
import type { ClientRequest, IncomingMessage } from "node:http"
import { NodeHttpIncomingMessage } from "@effect/platform-node/NodeHttpIncomingMessage"
import { Effect, Pipeable } from "effect"
import {
  Cookies,
  HttpClient,
  HttpClientError,
  type HttpClientRequest,
  HttpClientResponse,
  HttpIncomingMessage
} from "effect/http"

// An import of node:http evaluates exports that load what is not used here.
const http = process.getBuiltinModule("node:http")

const transportError = (request: HttpClientRequest.HttpClientRequest) => (cause: unknown) =>
  new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request, cause }) })

/** An answer as its body arrives. What only browsers and proxies need is refused. */
class SocketResponse
  extends NodeHttpIncomingMessage<HttpClientError.HttpClientError>
  implements HttpClientResponse.HttpClientResponse
{
  readonly [HttpClientResponse.TypeId]: typeof HttpClientResponse.TypeId = HttpClientResponse.TypeId
  readonly request: HttpClientRequest.HttpClientRequest
  readonly url: string
  readonly cookies = Cookies.empty

  constructor(request: HttpClientRequest.HttpClientRequest, source: IncomingMessage, url: string) {
    super(source, transportError(request))
    this.request = request
    this.url = url
  }
  get status() {
    return this.source.statusCode ?? 0
  }
  get formData() {
    return Effect.fail(this.onError("choird does not answer with forms"))
  }
  get upgrade() {
    return Effect.fail(this.onError("choird does not upgrade connections"))
  }
  toJSON(): unknown {
    return HttpIncomingMessage.inspect(this, { _id: "choir/choirctl/client/SocketResponse", status: this.status })
  }
  pipe() {
    return Pipeable.pipeArguments(this, arguments)
  }
}

const answerTo = (sent: ClientRequest, request: HttpClientRequest.HttpClientRequest) =>
  Effect.callback<IncomingMessage, HttpClientError.HttpClientError>((resume) => {
    sent.once("error", (cause) => resume(Effect.fail(transportError(request)(cause))))
    sent.once("response", (response) => resume(Effect.succeed(response)))
  })

/** A client whose every request goes to this socket, whatever host it names, on connections that close with the scope. */
export const socketHttp = Effect.fnUntraced(function* (socketPath: string) {
  const agent = yield* Effect.acquireRelease(
    Effect.sync(() => new http.Agent({ keepAlive: true })),
    (agent) => Effect.sync(() => agent.destroy())
  )
  return HttpClient.make((request, url, signal) =>
    Effect.gen(function* () {
      const { method, headers, body } = request
      const path = `${url.pathname}${url.search}`
      const sent = http.request({ socketPath, agent, method, path, headers: { ...headers, host: url.host }, signal })
      sent.end(body._tag === "Uint8Array" ? body.body : undefined)
      const response = yield* answerTo(sent, request)
      return new SocketResponse(request, response, url.href)
    })
  )
})
