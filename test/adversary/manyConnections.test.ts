/** An agent that opens connections as fast as they come: each costs choird's one thread the setup of an HTTP connection. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { REFUSED_REST_MS } from "#src/choird/listeners/AgentSockets.ts"
import { AGENT_NEW_CONNECTIONS_BURST } from "#src/choird/listeners/OpenSession.ts"
import { openSession } from "../support/agentSocket.ts"
import { dial, untilClosed } from "../support/unixHttp.ts"

describe("an agent that opens connections without end", () => {
  it.effect("has them cut after a burst, and is served again after a rest", () =>
    Effect.gen(function* () {
      const { path } = yield* openSession
      const request = "GET /nothing HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
      const ask = Effect.flatMap(dial(path), (connection) => {
        connection.write(request)
        return untilClosed(connection)
      })
      for (let n = 0; n < AGENT_NEW_CONNECTIONS_BURST; n++) assert.match(yield* ask, /^HTTP\/1\.1 \d{3}/u)
      for (let n = 0; n < 5; n++) assert.strictEqual(yield* ask, "")
      yield* TestClock.adjust(REFUSED_REST_MS)
      assert.match(yield* ask, /^HTTP\/1\.1 \d{3}/u)
    })
  )
})
