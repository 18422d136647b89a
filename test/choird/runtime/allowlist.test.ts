import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { execFileSync, spawn } from "node:child_process"
import { createServer } from "node:net"
import { NameLookUp } from "#src/choird/runtime/docker/AllowedHosts.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { testEngine } from "../../support/docker.ts"
import { docker } from "../../support/dockerImage.ts"
import { lanAddress } from "../../support/reachable.ts"
import { dockerSuite } from "./dockerRig.ts"

const { reason, socket } = testEngine("allowlist")
const { inside, runtimeWith, started } = dockerSuite(socket)

/** Addresses that count as public, in a network of this machine's own that leads to a namespace with servers. */
const [ROUTER, LISTED, MOVED, UNLISTED] = ["11.213.0.1", "11.213.0.2", "11.213.0.3", "11.213.0.4"]
const OPEN = 8443
/** Networks that the engine makes beside an agent that tries all the time. */
const NETWORKS = 5

const NS = `choir-list-${process.pid}`
const VETH = `chl${process.pid % 100_000}`
const ip = (words: string) => execFileSync("ip", words.split(" "), { stdio: "pipe" })

const SERVE = `for (const port of [${OPEN}, 9000]) require("node:net").createServer((c) => c.on("error", () => {}).end("served")).listen(port, "0.0.0.0", () => process.stdout.write("."))
const names = require("node:dgram").createSocket("udp4").on("message", (_, from) => names.send("answer", from.port, from.address))
names.bind(53)`

/** What the world looks like from a bridge of the engine: hosts that are up on every address and on two ports. */
const world = Effect.gen(function* () {
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      ip(`netns add ${NS}`)
      ip(`link add ${VETH} type veth peer name side netns ${NS}`)
      ip(`address add ${ROUTER}/24 dev ${VETH}`)
      ip(`link set ${VETH} up`)
      for (const address of [LISTED, MOVED, UNLISTED]) ip(`-n ${NS} address add ${address}/24 dev side`)
      ip(`-n ${NS} link set side up`)
    }),
    // A namespace is taken down some time after its name is gone, and its links with it; the next test has links by the same name.
    () =>
      Effect.sync(() => {
        ip(`link delete ${VETH}`)
        ip(`netns del ${NS}`)
      })
  )
  const server = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn("ip", ["netns", "exec", NS, process.execPath, "-e", SERVE], { stdio: ["ignore", "pipe", "inherit"] })
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  yield* Effect.callback<void>((resume) => {
    let up = 0
    server.stdout.on("data", (data: Buffer) => (up += data.length) === 2 && resume(Effect.void))
  })
})

/** A server of this host, and its port. */
const hostServer = Effect.gen(function* () {
  const server = createServer((connection) => connection.on("error", () => undefined).end("served"))
  yield* Effect.callback<void>((resume) => void server.listen(0, "0.0.0.0", () => resume(Effect.void)))
  yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
  return Number(Reflect.get(Object(server.address()), "port"))
})

/** What connections from inside bring, all of them at once. */
const visits = (places: ReadonlyArray<readonly [string, number]>) => `return Promise.all(${JSON.stringify(places)}.map(
  ([host, port]) => new Promise((done) => {
    const connection = require("net").connect(port, host)
    connection.setTimeout(1500, () => { connection.destroy(); done("silence") })
    connection.on("error", (error) => done(error.code)).on("data", (data) => done(String(data)))
  })))`

/** Asks for names while a server on the agent's own loopback notes what it is asked and answers nothing. */
const lookUps = (names: ReadonlyArray<string>) => `
  const server = require("dgram").createSocket("udp4")
  let queries = ""
  server.on("message", (query) => (queries += query.toString("latin1")))
  await new Promise((done) => server.bind(53, "127.0.0.1", done))
  const known = await Promise.all(${JSON.stringify(names)}.map((name) =>
    require("dns").promises.lookup(name).then(() => true, () => false)))
  server.close()
  return { known, queries }`

const datagram = (host: string) => `return new Promise((done) => {
  const socket = require("dgram").createSocket("udp4")
  socket.on("error", (error) => done(error.code)).on("message", (data) => done(String(data)))
  socket.send(Buffer.from("query"), 53, ${JSON.stringify(host)}, () => setTimeout(() => done("silence"), 500))
})`

/** Sends datagrams without a pause from here on; {@link floodAnswers} ends it and counts what came back. */
const flood = (host: string) => `
  const socket = require("dgram").createSocket("udp4")
  let answers = 0
  socket.on("error", () => {}).on("message", () => (answers += 1))
  let on = true
  const next = () => on && socket.send("query", 53, ${JSON.stringify(host)}, () => setImmediate(next))
  next()
  globalThis.endFlood = () => {
    on = false
    return answers
  }`
const floodAnswers = "return globalThis.endFlood()"

const CLOSED = /^(silence|EHOSTUNREACH|ENETUNREACH)$/u

describe.skipIf(reason !== undefined)("runtime.network allowlist", { timeout: 300_000 }, () => {
  it.live("lets an agent reach the listed places and ports, and nothing else, not even for a name (D22)", () =>
    Effect.gen(function* () {
      yield* world
      const port = yield* hostServer
      const answers = new Map([
        ["listed.test", [LISTED]],
        ["rebound.test", [lanAddress(), "169.254.169.254"]],
        ["router.test", [ROUTER]],
        ["moving.test", [MOVED]]
      ])
      const names = Layer.succeed(NameLookUp, (name) => Effect.sync(() => answers.get(name) ?? []))
      const named = ["listed.test", "rebound.test", "router.test", "moving.test", "silent.test"]
      const allow = [...named.map((name) => `${name}:${OPEN}`), `${lanAddress()}:${port}`, `router.test:${port}`]
      const test = Effect.gen(function* () {
        const { agent, runtime } = yield* started()
        const asked = [
          ["listed.test", OPEN],
          [LISTED, OPEN],
          ["moving.test", OPEN],
          [lanAddress(), port],
          [LISTED, 9000],
          [UNLISTED, OPEN],
          ["router.test", port],
          [ROUTER, port],
          ["169.254.169.254", 80],
          ["172.17.0.1", port],
          ["1.1.1.1", 53]
        ] as const
        const got = (yield* agent.ask(visits(asked))) as ReadonlyArray<string>
        assert.deepStrictEqual(got.slice(0, 4), ["served", "served", "served", "served"])
        for (const [index, [host, to]] of asked.entries())
          if (index > 3) assert.match(got[index] ?? "", CLOSED, `${host}:${to}`)
        // Who answers for names is the agent's own loopback: the engine asks nobody else on its behalf.
        const unknown = (yield* agent.ask(lookUps(["rebound.test", "silent.test", "data-for-a-stranger.test"]))) as {
          readonly known: ReadonlyArray<boolean>
          readonly queries: string
        }
        assert.deepStrictEqual(unknown.known, [false, false, false])
        assert.include(unknown.queries, "data-for-a-stranger")
        assert.strictEqual(yield* agent.ask(datagram(LISTED)), "silence")
        const { warnings } = yield* runtime.status
        assert.match(warnings.join("\n"), /rebound\.test of runtime\.allow has the address .* not public/u)
        assert.match(warnings.join("\n"), /silent\.test of runtime\.allow could not be looked up/u)

        // A host that moves is found by whoever starts afterwards, and stays open for who was told of it before.
        answers.set("moving.test", [LISTED])
        const later = yield* started("other")
        assert.deepStrictEqual(yield* later.agent.ask(visits([["moving.test", OPEN]])), ["served"])
        assert.deepStrictEqual(yield* agent.ask(visits([["moving.test", OPEN]])), ["served"])
        assert.strictEqual(yield* later.agent.sh("getent hosts moving.test | head -c 10"), LISTED)
      })
      yield* inside(test, runtimeWith({ network: "allowlist", allow }).pipe(Layer.provide(names)))
    }).pipe(Effect.scoped)
  )

  it.live("holds while the engine makes networks, for which it takes its own rules out and puts them back", () =>
    Effect.gen(function* () {
      yield* world
      const test = Effect.gen(function* () {
        const { agent } = yield* started()
        yield* agent.ask(flood(LISTED))
        for (let round = 0; round < NETWORKS; round++) {
          const name = `choir-beside-${process.pid}`
          docker(socket, "network", "create", name)
          docker(socket, "network", "rm", name)
        }
        assert.strictEqual(yield* agent.ask(floodAnswers), 0)
      })
      yield* inside(test, runtimeWith({ network: "allowlist", allow: [`${LISTED}:${OPEN}`] }))
    }).pipe(Effect.scoped)
  )

  it.live("takes everything back when choird goes on with another policy", () =>
    Effect.gen(function* () {
      yield* inside(started(), runtimeWith({ network: "allowlist", allow: ["11.213.0.2:8443"] }))
      const port = yield* hostServer
      yield* world
      const { agent } = yield* started()
      assert.deepStrictEqual(yield* agent.ask(visits([[lanAddress(), port]])), ["served"])
      assert.strictEqual(yield* agent.ask(datagram(LISTED)), "answer")
      assert.deepStrictEqual((yield* (yield* ContainerRuntime).status).warnings, [])
    }).pipe((test) => inside(test, runtimeWith({ network: "open" })))
  )
})
