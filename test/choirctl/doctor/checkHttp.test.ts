import { readFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { AddressInfo } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ask } from "#src/choirctl/doctor/checkHttp.ts"
import { makeCertificate } from "../../support/certificate.ts"

const portOf = (server: Server) =>
  Effect.acquireRelease(
    Effect.callback<number>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed((server.address() as AddressInfo).port)))
    }),
    () => Effect.sync(() => server.close())
  )

describe("an address whose scheme is not the server's", () => {
  it.live("is named where the server speaks http, and its certificate is not blamed", () =>
    Effect.gen(function* () {
      const port = yield* portOf(createServer((_, response) => response.end("hello")))
      const { problem } = yield* Effect.flip(ask(`https://127.0.0.1:${port}/v1`, {}))
      assert.strictEqual(problem, `127.0.0.1:${port} speaks http there, and the address begins with https`)
    })
  )

  it.live("is named where the server speaks https", () =>
    Effect.gen(function* () {
      const { cert, key } = yield* makeCertificate
      const server = createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) })
      const port = yield* portOf(server)
      const { problem } = yield* Effect.flip(ask(`http://127.0.0.1:${port}/v1`, {}))
      assert.include(problem, "as a server does that speaks https there, and the address begins with http")
    })
  )
})
