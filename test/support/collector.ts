/** An OTLP collector on loopback that keeps what it was sent, or behaves as badly as a test tells it to. */
import { createServer } from "node:http"
import { Effect } from "effect"

export interface Sent {
  readonly path: string
  readonly authorization: string | undefined
  readonly text: string
}

export interface Collector {
  readonly endpoint: string
  readonly sent: ReadonlyArray<Sent>
  /** How often it was asked, answered or not. */
  readonly asked: () => number
}

/** What it does with a request: an answer's status and headers, or nothing at all. */
export type Manner = { readonly status: number; readonly headers?: Record<string, string> } | "silent"

/** Listens until the scope closes. */
export const collector = (manner: () => Manner = () => ({ status: 200 })) =>
  Effect.acquireRelease(
    Effect.callback<Collector & { readonly close: () => void }>((resume) => {
      const sent: Array<Sent> = []
      let asked = 0
      const server = createServer((request, response) => {
        asked += 1
        const parts: Array<Buffer> = []
        request.on("data", (part: Buffer) => parts.push(part))
        request.on("end", () => {
          const how = manner()
          if (how === "silent") return
          const { authorization } = request.headers
          sent.push({ path: request.url ?? "", authorization, text: Buffer.concat(parts).toString() })
          response.writeHead(how.status, how.headers).end("{}")
        })
      })
      server.listen(0, "127.0.0.1", () => {
        const place = server.address()
        const port = typeof place === "object" && place !== null ? place.port : 0
        const close = () => {
          server.closeAllConnections()
          server.close()
        }
        resume(Effect.succeed({ endpoint: `http://127.0.0.1:${port}`, sent, asked: () => asked, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue?: string; readonly intValue?: unknown; readonly doubleValue?: number }
}

const record = (attributes: ReadonlyArray<Attribute>) =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue ?? value.doubleValue)])
  )

/** The spans of everything that was sent, with their attributes as a record. */
export const spansOf = ({ sent }: Collector) =>
  sent
    .filter(({ path }) => path === "/v1/traces")
    .flatMap(({ text }) => JSON.parse(text).resourceSpans)
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap(({ spans }) => spans)
    .map(({ attributes, endTimeUnixNano, name, startTimeUnixNano, status, traceId }) => ({
      name: String(name),
      trace: String(traceId),
      ms: Number((BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1_000_000n),
      ok: status.code === 1,
      attributes: record(attributes)
    }))

/** The log records of everything that was sent. */
export const logsOf = ({ sent }: Collector) =>
  sent
    .filter(({ path }) => path === "/v1/logs")
    .flatMap(({ text }) => JSON.parse(text).resourceLogs)
    .flatMap(({ scopeLogs }) => scopeLogs)
    .flatMap(({ logRecords }) => logRecords)
    .map(({ attributes, body }) => ({ message: String(body.stringValue), attributes: record(attributes) }))

/** The names of the metrics that were sent. */
export const metricsOf = ({ sent }: Collector): ReadonlyArray<string> =>
  sent
    .filter(({ path }) => path === "/v1/metrics")
    .flatMap(({ text }) => JSON.parse(text).resourceMetrics)
    .flatMap(({ scopeMetrics }) => scopeMetrics)
    .flatMap(({ metrics }) => metrics)
    .map(({ name }) => String(name))
