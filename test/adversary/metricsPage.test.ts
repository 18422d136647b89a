import { connect, createServer } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { layerPrometheus } from "#src/choird/telemetry/Prometheus.ts"
import { ask } from "../support/unixHttp.ts"

const SLOW_HEADS = 400

const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(Effect.succeed(typeof address === "object" ? (address?.port ?? 0) : 0)))
  })
})

/** A request whose head never ends. */
const slowHead = (port: number) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof connect>>((resume) => {
      const socket = connect({ host: "127.0.0.1", port }, () => {
        socket.write("GET /metrics HTTP/1.1\r\nhost: localhost\r\nx-slow: ")
        resume(Effect.succeed(socket))
      })
      socket.on("error", () => undefined)
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )

describe("the page of metrics", () => {
  it.live("answers the operator's scraper while hundreds of slow requests are open", () =>
    Effect.gen(function* () {
      const port = yield* freePort
      yield* Layer.build(layerPrometheus(`127.0.0.1:${port}`))
      yield* Effect.forEach(Array.from({ length: SLOW_HEADS }), () => slowHead(port), { concurrency: 20 })
      const page = yield* ask({ port }, { method: "GET", path: "/metrics", headers: { host: "localhost" } })
      assert.strictEqual(page.status, 200)
    }).pipe(Effect.scoped)
  )
})
