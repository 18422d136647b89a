/** One GET of a page over {@link WebDialer}: each redirect is checked again, and nothing that a site does makes it long or large. */
import { type IncomingMessage, request as httpRequest } from "node:http"
import type { Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import { Effect, Option, Schema } from "effect"
import { portOf } from "#src/shared/wire/hostPort.ts"
import { PAGE_BYTES_MAX, PAGE_ENCODINGS, type PageOrder } from "./pageProtocol.ts"
import { pageAddress } from "./webAddress.ts"
import { DialRefused, WebDialer } from "./WebDialer.ts"

/** The head of an answer. */
const FETCH_HEAD_BYTES_MAX = 64 * 1024
/** Redirects that are followed. */
const REDIRECTS_MAX = 5
/** A site that says nothing. */
const SILENCE_MS_MAX = 15_000

/** The words of a browser, with the name of this program, so that a site can tell. */
const USER_AGENT = "Mozilla/5.0 (compatible; Choir)"

/** A page that was not fetched. The words are for a model, and none of them are the site's. */
export class FetchRefused extends Schema.TaggedError<FetchRefused>()("FetchRefused", { problem: Schema.String }) {
  override get message() {
    return this.problem
  }
}

export interface Fetched {
  /** Where it was found after redirects. */
  readonly url: URL
  readonly status: number
  /** Without its parameters, in lowercase. */
  readonly content_type: string
  readonly charset: string | undefined
  readonly encoding: PageOrder["encoding"]
  /** As it was sent: choird unpacks nothing of a site ({@link PageReader} does). */
  readonly body: Buffer
}

const refused = (problem: string) => new FetchRefused({ problem })

const encrypted = (socket: Socket, { hostname }: URL) =>
  Effect.callback<Socket, FetchRefused>((resume) => {
    const host = hostname.replace(/^\[|\]$/gu, "")
    const secure = connectTls({
      socket,
      host,
      servername: /^[\d.]+$|:/u.test(host) ? "" : host,
      ALPNProtocols: ["http/1.1"]
    })
    secure.on("error", (cause: NodeJS.ErrnoException) => {
      socket.destroy()
      resume(Effect.fail(refused(`the certificate of ${host} cannot be trusted (${cause.code ?? "no TLS"})`)))
    })
    secure.once("secureConnect", () => resume(Effect.succeed(secure)))
    return Effect.sync(() => socket.destroy())
  })

const connected = Effect.fnUntraced(function* (url: URL) {
  const { dial } = yield* WebDialer
  const socket = yield* dial(url.hostname, portOf(url))
  return url.protocol === "https:" ? yield* encrypted(socket, url) : socket
})

/** How the body of an answer is compressed; none where it cannot be read. */
const encodingOf = ({ headers }: IncomingMessage): Option.Option<PageOrder["encoding"]> => {
  const named = (headers["content-encoding"] ?? "").trim().toLowerCase().replace(/^x-/u, "")
  if (named === "identity" || named === "") return Option.some(undefined)
  return Option.fromUndefinedOr(PAGE_ENCODINGS.find((encoding) => encoding === named))
}

const TOO_LARGE = `the page is larger than ${PAGE_BYTES_MAX / 1024 / 1024} MiB`

/** The answer of a connected server, with its body. The connection ends with it. */
const answered = (socket: Socket, url: URL, accept: string) =>
  Effect.callback<{ readonly answer: IncomingMessage; readonly body: Buffer }, FetchRefused>((resume) => {
    const fail = (problem: string) => {
      resume(Effect.fail(refused(problem)))
      socket.destroy()
    }
    const { host } = url
    socket.setTimeout(SILENCE_MS_MAX, () => fail(`${host} stopped responding`))
    const sent = httpRequest(
      {
        createConnection: () => socket,
        path: `${url.pathname}${url.search}`,
        maxHeaderSize: FETCH_HEAD_BYTES_MAX,
        setHost: false,
        headers: {
          host,
          "user-agent": USER_AGENT,
          accept,
          "accept-language": "en, *;q=0.5",
          "accept-encoding": PAGE_ENCODINGS.join(", "),
          connection: "close"
        }
      },
      (answer) => {
        const chunks: Array<Buffer> = []
        let bytes = 0
        answer.on("data", (chunk: Buffer) => {
          bytes += chunk.length
          if (bytes > PAGE_BYTES_MAX) fail(TOO_LARGE)
          else chunks.push(chunk)
        })
        for (const event of ["error", "aborted"])
          answer.once(event, () => fail(`${host} closed the connection before the answer was complete`))
        answer.once("end", () => resume(Effect.succeed({ answer, body: Buffer.concat(chunks) })))
      }
    )
    sent.on("error", () => fail(`${host} sent an answer that cannot be read`))
    sent.end()
    return Effect.sync(() => socket.destroy())
  }).pipe(Effect.ensuring(Effect.sync(() => socket.destroy())))

const headOf = ({ headers, statusCode = 0 }: IncomingMessage) => {
  const [type = "", ...parameters] = (headers["content-type"] ?? "").toLowerCase().split(";")
  const charset = parameters
    .map((each) => /^\s*charset="?([^"\s]{1,40})/u.exec(each)?.[1])
    .find((each) => each !== undefined)
  return { status: statusCode, content_type: type.trim(), charset }
}

/** The words about a page that another one led to, without its name, which could be any words of the other's. */
const withoutName = (problem: string, { hostname, host }: URL, first: URL): string =>
  problem.replaceAll(host, hostname).replaceAll(hostname.replace(/^\[|\]$/gu, ""), `a page that ${first.host} leads to`)

const isRedirect = (status: number) => [301, 302, 303, 307, 308].includes(status)

/**
 * Fetches a page.
 *
 * @param accept the media types that are wanted, as the header has them.
 * @param at where the page `first` has led to by itself.
 */
export const fetchPage = Effect.fn("webRequest.fetchPage")(function* (
  first: URL,
  accept: string,
  at: URL = first
): Effect.fn.Return<Fetched, FetchRefused | DialRefused, WebDialer> {
  let url = at
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    const { answer, body } = yield* connected(url).pipe(
      Effect.flatMap((socket) => answered(socket, url, accept)),
      Effect.mapError((error) => (url === first ? error : refused(withoutName(error.message, url, first))))
    )
    const { location } = answer.headers
    const head = headOf(answer)
    if (!isRedirect(head.status) || location === undefined) {
      const encoding = encodingOf(answer)
      if (Option.isNone(encoding)) return yield* refused(`${url.host} answers in an encoding that cannot be read`)
      return { url, ...head, encoding: encoding.value, body }
    }
    const next = pageAddress(location, url.href)
    if (typeof next === "string")
      return yield* refused(`${first.host} redirects to an address that is not a web page's`)
    url = next
  }
  return yield* refused(`${first.host} redirects more than ${REDIRECTS_MAX} times`)
})
