/** A server on loopback that answers each request as a function says, and remembers what it was asked. */
import { createServer, type IncomingHttpHeaders } from "node:http"
import { Effect } from "effect"

export interface Asked {
  readonly method: string
  readonly url: URL
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface Answered {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: unknown
}

/** The server of a scope. A text goes out as it is, anything else as JSON. */
export const jsonServer = (answer: (asked: Asked) => Answered) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const asked: Array<Asked> = []
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", () => {
          const url = new URL(request.url ?? "/", "http://127.0.0.1")
          const one = {
            method: request.method ?? "",
            url,
            headers: request.headers,
            body: Buffer.concat(chunks).toString()
          }
          asked.push(one)
          const { body, headers = {}, status } = answer(one)
          response.writeHead(status, { "content-type": "application/json", ...headers })
          response.end(typeof body === "string" ? body : JSON.stringify(body))
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
