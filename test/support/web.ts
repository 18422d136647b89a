/**
 * A public network on this machine: names and addresses of a table, served by real servers on loopback. A connection to any other address
 * is a real one, so that a wall that does not hold is seen by who listens behind it.
 */
import { createSocket } from "node:dgram"
import { createServer as createHttpServer, type RequestListener } from "node:http"
import { connect, createServer, type AddressInfo } from "node:net"
import { Effect, Layer, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Internet } from "#src/choird/workers/Internet.ts"
import { WebDialer } from "#src/choird/workers/WebDialer.ts"

/** An address of the public network that is nobody's here. */
export const PUBLIC_ADDRESS = "93.184.215.14"

export interface Web {
  /** Names and their answers, one after the other; the last one stays. */
  readonly names?: Readonly<Record<string, ReadonlyArray<ReadonlyArray<string>>>>
  /** The port on loopback that serves a public address, whatever port was asked for. */
  readonly served?: Readonly<Record<string, number>>
  /** How often each name was asked. */
  readonly asked?: Map<string, number>
  /** The public addresses of this machine. */
  readonly own?: ReadonlyArray<string>
  /** The addresses that were connected to. */
  readonly dialled?: Array<string>
}

export const layerInternet = ({ asked = new Map(), dialled = [], names = {}, own = [], served = {} }: Web) =>
  Layer.succeed(Internet, {
    resolve: (name) =>
      Effect.sync(() => {
        const time = asked.get(name) ?? 0
        asked.set(name, time + 1)
        const answers = Object.hasOwn(names, name) ? (names[name] ?? []) : []
        return answers[Math.min(time, answers.length - 1)] ?? []
      }),
    isOwn: (address) => own.includes(address),
    connect: (address, port) => {
      dialled.push(address)
      const local = Object.hasOwn(served, address) ? served[address] : undefined
      return local === undefined ? connect({ host: address, port }) : connect({ host: "127.0.0.1", port: local })
    }
  })

const MINIMAL = {
  global_repo: { url: "/srv/choir" },
  models: { m: { provider: "p", model: "m", endpoint: "http://127.0.0.1:1/v1" } }
}

/** A running configuration with this part of its own. */
export const layerConfigOf = (part: Readonly<Record<string, unknown>> = {}) =>
  Layer.mock(ConfigStore, {
    home: "/nowhere",
    current: Effect.map(Schema.decodeUnknownEffect(Config)({ ...MINIMAL, ...part }), (config) => ({
      version: 1,
      config
    })).pipe(Effect.orDie)
  })

export const layerDialer = (web: Web, part?: Readonly<Record<string, unknown>>) =>
  WebDialer.layer.pipe(Layer.provide(layerInternet(web)), Layer.provide(layerConfigOf(part)))

const listening = (server: ReturnType<typeof createServer>, host: string) =>
  Effect.acquireRelease(
    Effect.callback<number>((resume) => {
      server.listen({ host, port: 0 }, () => resume(Effect.succeed((server.address() as AddressInfo).port)))
    }),
    () => Effect.sync(() => server.close())
  )

/** A server that must never be reached, on all addresses of this machine, by TCP and by UDP; `hits` counts who came. */
export const canary = Effect.gen(function* () {
  const seen = { hits: 0 }
  const server = createServer((socket) => {
    seen.hits += 1
    socket.destroy()
  })
  const port = yield* listening(server, "::")
  const datagrams = createSocket("udp6", () => void (seen.hits += 1))
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void datagrams.bind(port, "::", () => resume(Effect.void))),
    () => Effect.sync(() => datagrams.close())
  )
  return { port, hits: () => seen.hits }
})

/** A server on loopback that answers every connection with these bytes; the port. */
export const rawServer = (answer: string) =>
  listening(
    createServer((socket) => void socket.on("error", () => undefined).once("data", () => socket.end(answer, "latin1"))),
    "127.0.0.1"
  )

/** An HTTP server on loopback until the scope closes; the port. */
export const httpServer = (listener: RequestListener) => {
  const server = createHttpServer(listener)
  return Effect.tap(listening(server, "127.0.0.1"), () =>
    Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
  )
}
