/**
 * `fetch` for Choir's programs, over the one HTTP client that they have. Node's own unpacks whatever a server sends, asked for or not, in the process that
 * has Choir's secrets; this one asks for plain bodies and refuses all others.
 */
import type { Dispatcher } from "@effect/platform-node/Undici"
import { makeOutsideConnections, type OutsideConnections } from "./wayOut.ts"

/** Statuses of answers without a body. */
const WITHOUT_BODY = new Set([101, 204, 205, 304])

type PlainBody = string | Uint8Array<ArrayBuffer> | FormData | URLSearchParams | AsyncIterable<Uint8Array>

export interface PlainInit {
  readonly method?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Bytes that are there, or that come. */
  readonly body?: PlainBody | null | undefined
  readonly signal?: AbortSignal | null | undefined
  /** Whether a redirect is an answer or, by default, an error. None is followed. */
  readonly redirect?: "manual" | "error" | undefined
  /** The longest body; the answer fails at the first byte more. */
  readonly bytes_max?: number | undefined
}

/** Whether a body with this header is as its sender wrote it. */
export const isPlainBody = (encoding: string | undefined): boolean =>
  encoding === undefined || ["", "identity"].includes(encoding.trim().toLowerCase())

/** The words of a refusal. */
export const COMPRESSED = "the server sent a compressed answer, which was not asked for"

let connections: OutsideConnections | undefined

interface Packed {
  readonly body: string | Uint8Array | AsyncIterable<Uint8Array> | null
  readonly headers: Readonly<Record<string, string>>
}

/** A form becomes the bytes that it is sent as. */
const packed = async (body: PlainInit["body"]): Promise<Packed> => {
  if (body === undefined || body === null || typeof body === "string" || body instanceof Uint8Array)
    return { body: body ?? null, headers: {} }
  if (Symbol.asyncIterator in body) return { body, headers: {} }
  const form = new Response(body)
  const type = form.headers.get("content-type")
  return { body: await form.bytes(), headers: type === null ? {} : { "content-type": type } }
}

const textOf = (value: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof value === "object" ? value.join(", ") : value

const limited = (body: Dispatcher.ResponseData["body"], bytes_max: number): ReadableStream<Uint8Array> => {
  // Without a reader that has begun, a body that is given up has nobody else to tell.
  body.on("error", () => undefined)
  const chunks = body[Symbol.asyncIterator]()
  let bytes = 0
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done = false, value } = (await chunks.next()) as IteratorResult<Uint8Array, undefined>
        if (done || value === undefined) return controller.close()
        bytes += value.length
        if (bytes <= bytes_max) return controller.enqueue(value)
        body.destroy()
        controller.error(new TypeError(`the answer has more than ${bytes_max} bytes`))
      },
      cancel: () => void body.destroy()
    },
    { highWaterMark: 0 }
  )
}

const answer = ({ body, headers, statusCode }: Dispatcher.ResponseData, init: PlainInit): Response => {
  const refuse = (problem: string): never => {
    body.on("error", () => undefined).destroy()
    throw new TypeError(problem)
  }
  if (statusCode >= 300 && statusCode <= 399 && statusCode !== 304 && init.redirect !== "manual")
    refuse("the server redirects to another address")
  if (!isPlainBody(textOf(headers["content-encoding"]))) refuse(COMPRESSED)
  const named = Object.entries(headers).flatMap(([name, value]) => {
    const text = textOf(value)
    return text === undefined ? [] : [[name, text] as [string, string]]
  })
  const isEmpty = WITHOUT_BODY.has(statusCode) || init.method === "HEAD"
  if (isEmpty) body.resume()
  return new Response(isEmpty ? null : limited(body, init.bytes_max ?? Number.POSITIVE_INFINITY), {
    status: statusCode,
    headers: named
  })
}

/** Sends one request. Fails as `fetch` does, with the failure of the connection as the cause. */
export const plainFetch = async (url: string | URL, init: PlainInit = {}): Promise<Response> => {
  // The names of a CommonJS module are not there for a bundle in parts, its default is.
  const { default: undici } = await import("@effect/platform-node/Undici")
  connections ??= makeOutsideConnections(undici, {})
  const { body, headers } = await packed(init.body)
  let got: Dispatcher.ResponseData
  try {
    got = await undici.request(url, {
      dispatcher: connections.dispatcher,
      method: init.method ?? "GET",
      headers: { accept: "*/*", ...headers, ...init.headers, "accept-encoding": "identity" },
      body: body as NonNullable<Parameters<typeof undici.request>[1]>["body"] & {},
      signal: init.signal ?? null
    })
  } catch (cause) {
    throw new TypeError("the request failed", { cause })
  }
  return answer(got, init)
}
