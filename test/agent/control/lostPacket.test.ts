import { connect, createServer, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { layerEndpointClient } from "#src/shared/wire/endpoints.ts"
import { openSessionWith } from "../../support/agentSocket.ts"
import { SESSION } from "../../support/control.ts"
import { replicating } from "../../support/heartbeats.ts"
import { agentConfig, settingsOf } from "../../support/testing/TestAgent.ts"

/** The heartbeat is sent again after a third of it. */
const THRESHOLD_MS = 15_000

/** A wire between agent and choird. Once it is told to, it loses all that choird answers on the connections of that moment. */
const makeWire = (port: number) =>
  Effect.acquireRelease(
    Effect.callback<{ port: number; connections: () => number; lose: () => void; close: () => void }>((resume) => {
      const wires = new Set<{ lost: boolean }>()
      const sockets: Array<Socket> = []
      const server = createServer((agent) => {
        const wire = { lost: false }
        wires.add(wire)
        const choird = connect({ host: "127.0.0.1", port })
        sockets.push(agent, choird)
        for (const socket of [agent, choird]) socket.on("error", () => undefined)
        agent.on("data", (bytes) => choird.write(bytes)).on("close", () => choird.destroy())
        choird.on("data", (bytes) => void (wire.lost || agent.write(bytes)))
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        resume(
          Effect.succeed({
            port: typeof address === "object" ? (address?.port ?? 0) : 0,
            connections: () => wires.size,
            lose: () => wires.forEach((wire) => (wire.lost = true)),
            close: () => {
              server.close()
              for (const socket of sockets) socket.destroy()
            }
          })
        )
      })
    }),
    ({ close }) => Effect.sync(close)
  )

describe("a heartbeat whose answer is lost on the way", () => {
  it.live("is sent again on a new connection before choird takes the agent for crashed", () =>
    Effect.gen(function* () {
      const { certificate, path } = yield* openSessionWith([], "https")
      const wire = yield* makeWire(typeof path === "string" ? 0 : path.port)
      const url = `https://127.0.0.1:${wire.port}`
      const plane = ControlPlane.layer(SESSION, Redacted.make("lease")).pipe(
        Layer.provide(layerEndpointClient({ url, ca: certificate?.cert })),
        Layer.orDie
      )
      const settings = settingsOf(1, { ...agentConfig(), crash_detection_threshold_ms: THRESHOLD_MS })
      yield* Effect.gen(function* () {
        const replication = yield* Replication
        const { heartbeat } = yield* ControlPlane
        const answered = heartbeat({
          epoch: 1,
          base_rev: 0,
          new_rev: 0,
          hash_prev: "0".repeat(64),
          hash_new: "0".repeat(64),
          patches: [],
          config_version: 1,
          timestamp: "2025-01-01T00:00:00.000Z"
        })
        yield* answered
        const before = wire.connections()
        wire.lose()
        yield* Effect.forkScoped(replication.run)
        const again = Effect.repeat(Effect.sleep("20 millis"), { until: () => wire.connections() > before }).pipe(
          Effect.andThen(answered),
          Effect.as("answered")
        )
        // Both clocks are this process's own: a busy machine delays the one as it does the other.
        assert.strictEqual(yield* Effect.raceFirst(again, Effect.as(Effect.sleep(THRESHOLD_MS), "crashed")), "answered")
      }).pipe(Effect.provide(replicating({ layer: plane }, settings)))
    }).pipe(Effect.scoped)
  )
})
