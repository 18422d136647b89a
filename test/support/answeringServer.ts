/** A server on loopback that answers each request as a function says, and remembers what it was asked. */
import { createServer, type IncomingHttpHeaders } from "node:http"
import { Effect } from "effect"

export interface Asked {
  readonly method: string
  readonly url: URL
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
  /** The bytes as text. */
  readonly body: string
}

export interface Answered {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Bytes and texts go out as they are, anything else as JSON. */
  readonly body: unknown
}

/** No answer at all: the connection stays open. */
export const SILENCE = "silence"

/** The server of a scope. `first` answers the first requests in place of the function. */
export const answeringServer = (
  answer: (asked: Asked) => Answered,
  first: ReadonlyArray<Answered | typeof SILENCE> = []
) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const asked: Array<Asked> = []
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", () => {
          const bytes = Buffer.concat(chunks)
          const one = {
            method: request.method ?? "",
            url: new URL(request.url ?? "/", "http://127.0.0.1"),
            headers: request.headers,
            bytes,
            body: bytes.toString()
          }
          const answered = first[asked.length] ?? answer(one)
          asked.push(one)
          if (answered === SILENCE) return
          const { body, headers = {}, status } = answered
          response.writeHead(status, { "content-type": "application/json", ...headers })
          response.end(typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body))
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      return { server, asked, origin: `http://127.0.0.1:${port}` }
    }),
    ({ server }) =>
      Effect.sync(() => server.closeAllConnections()).pipe(Effect.andThen(Effect.sync(() => server.close())))
  )
