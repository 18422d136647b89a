import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { type AddressInfo, createServer } from "node:net"
import { networkInterfaces } from "node:os"
import { testEngine } from "../../support/docker.ts"
import { docker } from "../../support/dockerImage.ts"
import { dockerSuite } from "./dockerRig.ts"
import { containerEscapes } from "./escapes.ts"

const { reason, socket } = testEngine("escape probes of containers")
const { home, inside, installation, runtimeWith, started } = dockerSuite(socket)
const METADATA = "169.254.169.254"

/** A listener of this host on every address, and how many came. */
const canary: Effect.Effect<{ readonly port: number; visits: number }, never, Scope.Scope> = Effect.gen(function* () {
  const found = { port: 0, visits: 0 }
  const server = createServer((connection) => {
    found.visits++
    connection.on("error", () => undefined).end("canary")
  })
  yield* Effect.callback<void>((resume) => void server.listen(0, "0.0.0.0", () => resume(Effect.void)))
  yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
  found.port = (server.address() as AddressInfo).port
  return found
})

/** The metadata service of a cloud, played by this host for as long as the scope lives. */
const metadataAddress = Effect.acquireRelease(
  Effect.sync(() => execFileSync("ip", ["address", "replace", `${METADATA}/32`, "dev", "lo"])),
  () => Effect.sync(() => execFileSync("ip", ["address", "del", `${METADATA}/32`, "dev", "lo"]))
)

const gateway = () =>
  docker(socket, "network", "inspect", "--format", "{{(index .IPAM.Config 0).Gateway}}", installation.network)

/** This host's own address in its network. */
const lanAddress = () =>
  Object.values(networkInterfaces())
    .flat()
    .find((address) => address?.family === "IPv4" && !address.internal && address.address !== METADATA)?.address ?? ""

/** What a connection from inside brings: what the listener says, or why there is none. */
const visit = (address: string, port: number) => `return new Promise((done) => {
  const connection = require('net').connect(${port}, '${address}')
  connection.setTimeout(1000, () => { connection.destroy(); done('silence') })
  connection.on('error', (error) => done(error.code)).on('data', (data) => done(String(data)))
})`
/** Packets that are dropped, or an address that nothing of this kind has. */
const CLOSED = /^(silence|EHOSTUNREACH|ENETUNREACH)$/u

describe.skipIf(reason !== undefined)("A container", { timeout: 300_000 }, () => {
  it.live(`denies ${containerEscapes(home, 1).length} ways out (R37)`, () =>
    Effect.gen(function* () {
      const { agent } = yield* started()
      for (const [name, command, expected] of containerEscapes(home, agent.pid)) {
        const answer = yield* agent.sh(command)
        assert.notInclude(answer, "ESCAPED", name)
        if (expected !== undefined) assert.match(answer, expected, name)
      }
      assert.strictEqual(yield* agent.sh("echo alive"), "alive")
    }).pipe(inside)
  )

  it.live("reaches neither this host, nor its network, nor a cloud's metadata, nor another agent (D22, R37)", () =>
    Effect.gen(function* () {
      const { agent } = yield* started()
      const other = yield* started("other")
      const seen = yield* canary
      yield* metadataAddress
      const open =
        "return new Promise((done) => { const server = require('net').createServer((c) => c.end('agent')).listen(7000, '0.0.0.0', () => done(Object.values(require('os').networkInterfaces()).flat().find((a) => !a.internal).address)) })"
      const neighbour = String(yield* other.agent.ask(open))
      assert.strictEqual(yield* other.agent.ask(visit("127.0.0.1", 7000)), "agent")
      for (const address of [gateway(), lanAddress(), METADATA, "172.17.0.1"])
        assert.match(String(yield* agent.ask(visit(address, seen.port))), CLOSED, address)
      assert.match(String(yield* agent.ask(visit(neighbour, 7000))), CLOSED)
      assert.strictEqual(seen.visits, 0)
    }).pipe(inside)
  )

  it.live("asks for names as this host does (D22)", () =>
    Effect.gen(function* () {
      const { agent } = yield* started()
      const name = "deb.debian.org"
      const known = yield* Effect.exit(Effect.try(() => execFileSync("getent", ["hosts", name])))
      const answer = yield* agent.sh(`getent hosts ${name} >/dev/null && echo known || echo unknown`)
      assert.strictEqual(answer, known._tag === "Success" ? "known" : "unknown")
      assert.notInclude(readFileSync("/etc/resolv.conf", "utf8"), "nameserver 127.0.0.11")
    }).pipe(inside)
  )

  it.live("reaches this host where the operator says open, which shows that the probes above can", () =>
    Effect.gen(function* () {
      const { agent } = yield* started()
      const seen = yield* canary
      assert.strictEqual(yield* agent.ask(visit(gateway(), seen.port)), "canary")
      assert.strictEqual(seen.visits, 1)
    }).pipe((test) => inside(test, runtimeWith({ network: "open" })))
  )
})
