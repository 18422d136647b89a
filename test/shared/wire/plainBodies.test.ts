/** The HTTP clients of Choir's programs before a server that compresses its answers although nobody asked for that. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { HttpClient } from "effect/http"
import { COMPRESSED, plainFetch } from "#src/shared/wire/plainFetch.ts"
import { layerUndiciClient } from "#src/shared/wire/undiciClient.ts"

const TEXT = JSON.stringify({ tea: "green" })
const COMPRESSIONS: Readonly<Record<string, (text: string) => Buffer>> = {
  br: brotliCompressSync,
  gzip: gzipSync,
  deflate: deflateSync,
  zstd: zstdCompressSync,
  "gzip, br": (text) => brotliCompressSync(gzipSync(text)),
  unknown: (text) => Buffer.from(text)
}

/** A server whose paths name the compression of the answer; with what each request offered, and its body. */
const server = Effect.acquireRelease(
  Effect.callback<{
    readonly url: string
    readonly asked: Array<string | undefined>
    readonly bodies: Array<string>
    readonly close: () => void
  }>((resume) => {
    const asked: Array<string | undefined> = []
    const bodies: Array<string> = []
    const http = createServer((request, response) => {
      asked.push(request.headersDistinct["accept-encoding"]?.join(", "))
      const name = decodeURIComponent(request.url ?? "/").slice(1)
      let body = ""
      request.setEncoding("utf8").on("data", (text: string) => (body += text))
      request.on("end", () => {
        bodies.push(body)
        const compress = COMPRESSIONS[name]
        if (compress !== undefined) response.writeHead(200, { "content-encoding": name }).end(compress(TEXT))
        else if (name === "moved") response.writeHead(302, { location: "/plain" }).end("elsewhere")
        else if (name === "large") response.writeHead(200).end("x".repeat(100_000))
        else response.writeHead(200, { "content-type": "application/json" }).end(TEXT)
      })
    })
    http.listen(0, "127.0.0.1", () => {
      const { port } = http.address() as AddressInfo
      const close = () => {
        http.closeAllConnections()
        http.close()
      }
      resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, asked, bodies, close }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

const failureOf = (run: () => Promise<unknown>) => Effect.tryPromise({ try: run, catch: String }).pipe(Effect.flip)

describe("an HTTP client of Choir", () => {
  it.live("offers no compression, and refuses an answer that has one, before anything of it is read", () =>
    Effect.gen(function* () {
      const { asked, url } = yield* server
      for (const name of Object.keys(COMPRESSIONS)) {
        const address = `${url}/${encodeURIComponent(name)}`
        assert.include(yield* failureOf(() => plainFetch(address)), COMPRESSED, `plainFetch, ${name}`)
        const failed = yield* HttpClient.get(address).pipe(
          Effect.flatMap(({ text }) => text),
          Effect.flip,
          Effect.provide(layerUndiciClient({}))
        )
        assert.include(failed.message, COMPRESSED, `the client of Effect, ${name}`)
      }
      assert.deepStrictEqual(new Set(asked), new Set(["identity"]))
    }).pipe(Effect.scoped)
  )

  it.live("reads a plain answer, and leaves a caller no way to offer more", () =>
    Effect.gen(function* () {
      const { asked, url } = yield* server
      const fetched = Effect.promise(async () =>
        (await plainFetch(`${url}/plain`, { headers: { "accept-encoding": "br" } })).text()
      )
      assert.strictEqual(yield* fetched, TEXT)
      const got = yield* HttpClient.get(`${url}/plain`, { headers: { "accept-encoding": "br" } }).pipe(
        Effect.flatMap(({ text }) => text),
        Effect.provide(layerUndiciClient({}))
      )
      assert.strictEqual(got, TEXT)
      assert.deepStrictEqual(new Set(asked), new Set(["identity"]))
    }).pipe(Effect.scoped)
  )

  it.live("follows no redirect, reads no more than it may, and sends forms and streams", () =>
    Effect.gen(function* () {
      const { bodies, url } = yield* server
      assert.include(yield* failureOf(() => plainFetch(`${url}/moved`)), "redirects")
      const moved = yield* Effect.promise(() => plainFetch(`${url}/moved`, { redirect: "manual" }))
      assert.strictEqual(moved.status, 302)
      yield* Effect.promise(() => moved.body?.cancel() ?? Promise.resolve())
      const large = () => plainFetch(`${url}/large`, { bytes_max: 1000 }).then((response) => response.text())
      assert.include(yield* failureOf(large), "more than 1000 bytes")
      const form = new FormData()
      form.set("model", "whisper")
      yield* Effect.promise(() =>
        plainFetch(`${url}/form`, { method: "POST", body: form }).then((response) => response.text())
      )
      assert.match(bodies.at(-1) ?? "", /name="model"\r\n\r\nwhisper\r\n/u)
      const pieces = async function* () {
        yield Buffer.from("one ")
        yield Buffer.from("two")
      }
      yield* Effect.promise(() =>
        plainFetch(`${url}/stream`, { method: "POST", body: pieces() }).then((response) => response.text())
      )
      assert.strictEqual(bodies.at(-1), "one two")
    }).pipe(Effect.scoped)
  )

  it.live("fails with the code of the connection as its cause, as fetch does", () =>
    Effect.gen(function* () {
      const failed = yield* Effect.tryPromise({
        try: () => plainFetch("http://127.0.0.1:1/"),
        catch: (error) => Object(error) as object
      }).pipe(Effect.flip)
      assert.strictEqual(Reflect.get(Object(Reflect.get(Object(failed), "cause")), "code"), "ECONNREFUSED")
    })
  )
})
