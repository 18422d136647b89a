import { readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { HttpServerResponse } from "effect/http"
import { listenOnChosen } from "#src/choird/listeners/AgentTcp.ts"
import { listenTcp } from "#src/choird/listeners/tcp.ts"
import { temporaryFolder } from "../../support/engines.ts"

const listen = (port: number) =>
  listenTcp(Effect.succeed(HttpServerResponse.text("here")), { host: "127.0.0.1", port, connectionsMax: 1 })

/** Listens as a life of choird does, and ends. */
const life = (home: string) => Effect.scoped(Effect.provide(listenOnChosen(home, listen), NodeFileSystem.layer))

describe("a port that choird chose itself", () => {
  it.effect("is the same at its next start, so that agents that outlived it can be heard (D15)", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const first = yield* life(home)
      assert.isAbove(first, 0)
      assert.deepStrictEqual([yield* life(home), yield* life(home)], [first, first])
      assert.strictEqual(statSync(join(home, "socks/agents.port")).mode & 0o777, 0o600)
    })
  )

  it.effect("is another, which is kept from then on, when somebody else has it; the log says so", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
      const home = yield* temporaryFolder
      const first = yield* Effect.scoped(
        Effect.gen(function* () {
          const taken = yield* life(home)
          yield* listen(taken)
          const other = yield* Effect.provide(life(home), Layer.fresh(logger))
          assert.notStrictEqual(other, taken)
          assert.match(lines.join("\n"), new RegExp(`^port ${taken} is not available again \\(EADDRINUSE\\)`, "u"))
          return other
        })
      )
      assert.strictEqual(yield* life(home), first)
    })
  )

  it.effect("is chosen again when what was kept is not a port", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const place = join(home, "socks/agents.port")
      yield* life(home)
      for (const text of ["", "0\n", "70000\n", "999999\n", "http\n", "-1\n"]) {
        writeFileSync(place, text)
        const port = yield* life(home)
        assert.strictEqual(readFileSync(place, "utf8"), `${port}\n`)
      }
    })
  )
})
