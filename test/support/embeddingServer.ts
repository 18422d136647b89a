/** A provider's embeddings API on loopback, which refuses what the real one refuses, or answers as badly as a test tells it to. */
import { createHash } from "node:crypto"
import { createServer, type IncomingHttpHeaders } from "node:http"
import { Effect, Schema } from "effect"

/** Texts of one request to this server; the real one takes more, so that a batch of choird's size is well within. */
const INPUTS_MAX = 32
/** Bytes stand for tokens, which are never more. */
const INPUT_BYTES_MAX = 8191

export interface EmbeddingRequest {
  readonly headers: IncomingHttpHeaders
  readonly path: string
  readonly input: ReadonlyArray<string>
  readonly dimensions: number | undefined
}

/** An answer in the place of the right one; `undefined` for the right one. */
export interface EmbeddingReply {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
}

export interface EmbeddingServerOptions {
  readonly model: string
  /** The dimensions of its vectors where a request names none. */
  readonly dimensions: number
  readonly key?: string
  /** Whether it takes the parameter `dimensions`, which it otherwise refuses. */
  readonly shortens?: boolean
  /** What the router took, beside the tokens. */
  readonly cost?: number
  /** The words that it refuses to embed. */
  readonly refused?: string
}

const Request = Schema.Struct({
  model: Schema.String,
  input: Schema.Array(Schema.String),
  encoding_format: Schema.optionalKey(Schema.Literals(["float", "base64"])),
  dimensions: Schema.optionalKey(Schema.Int)
})
const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Request), { onExcessProperty: "error", errors: "all" })

const WORD = /[\p{L}\p{N}]+/gu
const BYTES = 32

/** Words as directions: texts with the same words lie near. The same on every machine. */
const vectorOf = (text: string, dimensions: number): ReadonlyArray<number> => {
  const vector = Array.from({ length: dimensions }, () => 0.001)
  for (const [word] of text.toLowerCase().matchAll(WORD)) {
    const hash = createHash("sha256").update(word).digest()
    for (let at = 0; at < BYTES; at += 2) {
      const place = hash.readUInt16BE(at) % dimensions
      vector[place] = (vector[place] ?? 0) + ((hash[at] ?? 0) % 2 === 0 ? 1 : -1)
    }
  }
  return vector
}

const refusal = (status: number, message: string, type = "invalid_request_error"): EmbeddingReply => ({
  status,
  body: JSON.stringify({ error: { message, type, param: null, code: null } })
})

const rightAnswer = (
  { cost, model }: EmbeddingServerOptions,
  vectors: ReadonlyArray<ReadonlyArray<number>>,
  tokens: number
) =>
  JSON.stringify({
    object: "list",
    data: vectors.map((embedding, index) => ({ object: "embedding", index, embedding })),
    model,
    usage: { prompt_tokens: tokens, total_tokens: tokens, ...(cost === undefined ? {} : { cost }) }
  })

/** The server's right answer to a request, in the provider's own words where it is a refusal. */
const answer = (options: EmbeddingServerOptions, headers: IncomingHttpHeaders, path: string, text: string) => {
  const { dimensions, key, model, refused, shortens = false } = options
  const reply = (body: EmbeddingReply, request?: EmbeddingRequest) => ({ reply: body, request })
  if (path !== "/v1/embeddings") return reply(refusal(404, `Invalid URL (POST ${path})`))
  if (key !== undefined && headers.authorization !== `Bearer ${key}`)
    return reply(refusal(401, `Incorrect API key provided: ${(headers.authorization ?? "").slice("Bearer ".length)}.`))
  if (headers["content-type"]?.startsWith("application/json") !== true)
    return reply(refusal(400, "you must provide a JSON body"))
  const decoded = decode(text)
  if (decoded._tag === "Failure") return reply(refusal(400, `Invalid body: ${decoded.failure.message}`))
  const { success: asked } = decoded
  const request: EmbeddingRequest = { headers, path, input: asked.input, dimensions: asked.dimensions }
  if (asked.model !== model) return reply(refusal(404, `The model \`${asked.model}\` does not exist`), request)
  if (asked.dimensions !== undefined && !shortens)
    return reply(refusal(400, "This model does not support specifying dimensions."), request)
  if (asked.dimensions !== undefined && (asked.dimensions < 1 || asked.dimensions > dimensions))
    return reply(refusal(400, "Invalid value for 'dimensions'"), request)
  if (asked.input.length === 0 || asked.input.length > INPUTS_MAX)
    return reply(refusal(400, `'$.input' is invalid: ${asked.input.length} inputs.`), request)
  if (asked.input.some((one) => one === ""))
    return reply(refusal(400, "'$.input' is invalid: an empty string."), request)
  if (asked.input.some((one) => Buffer.byteLength(one) > INPUT_BYTES_MAX))
    return reply(refusal(400, `This model's maximum context length is ${INPUT_BYTES_MAX} tokens.`), request)
  if (refused !== undefined && asked.input.some((one) => one.includes(refused)))
    return reply(refusal(400, "The input was rejected."), request)
  const vectors = asked.input.map((one) => vectorOf(one, asked.dimensions ?? dimensions))
  const tokens = asked.input.reduce((sum, one) => sum + Math.ceil(one.length / 4), 0)
  return reply({ body: rightAnswer(options, vectors, tokens) }, request)
}

export interface EmbeddingServer {
  readonly endpoint: string
  /** Requests that it understood, in order. */
  readonly requests: ReadonlyArray<EmbeddingRequest>
  /** Its refusals, taken away: a test that expects none looks for none. */
  readonly takeRefusals: () => ReadonlyArray<string>
}

/** Listens until the scope closes. `manner` answers in the place of the server, or lets a request hang. */
export const embeddingServer = (
  options: EmbeddingServerOptions,
  manner: (request: EmbeddingRequest, count: number) => EmbeddingReply | "silent" | undefined = () => undefined
) =>
  Effect.acquireRelease(
    Effect.callback<EmbeddingServer & { readonly close: () => void }>((resume) => {
      const requests: Array<EmbeddingRequest> = []
      const refusals: Array<string> = []
      const server = createServer((incoming, response) => {
        const parts: Array<Buffer> = []
        incoming.on("data", (part: Buffer) => parts.push(part))
        incoming.on("end", () => {
          const { reply, request } = answer(
            options,
            incoming.headers,
            incoming.url ?? "",
            Buffer.concat(parts).toString()
          )
          if (request !== undefined) requests.push(request)
          const other = request === undefined ? undefined : manner(request, requests.length)
          if (other === "silent") return
          const { body, headers = {}, status = 200 } = other ?? reply
          if (other === undefined && status !== 200) refusals.push(body)
          response.writeHead(status, { "content-type": "application/json", ...headers }).end(body)
        })
      })
      server.listen(0, "127.0.0.1", () => {
        const place = server.address()
        const port = typeof place === "object" && place !== null ? place.port : 0
        const close = () => {
          server.closeAllConnections()
          server.close()
        }
        const takeRefusals = () => refusals.splice(0)
        resume(Effect.succeed({ endpoint: `http://127.0.0.1:${port}/v1`, requests, takeRefusals, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )
