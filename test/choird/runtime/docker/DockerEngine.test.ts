import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { removeContainer } from "#src/choird/runtime/docker/removeContainer.ts"
import { testEngine } from "../../../support/docker.ts"

const { reason, socket } = testEngine("DockerEngine")
const Engine = DockerEngine.layer({ docker_socket: socket })
const IMAGE = "debian:bookworm-slim"

describe.skipIf(reason !== undefined)("DockerEngine", { timeout: 300_000 }, () => {
  it.live("tells its version, its limits, and to whom it maps root (R38)", () =>
    Effect.gen(function* () {
      const { info, place } = yield* DockerEngine
      const facts = yield* info
      assert.match(facts.version, /^\d+\./u)
      assert.strictEqual(facts.root.type, "remapped")
      assert.isAbove(facts.root.type === "remapped" ? facts.root.uid : 0, 0)
      assert.deepStrictEqual(facts.limits, { cpus: true, memory_mb: true, pids: true })
      assert.isTrue(facts.seccomp)
      assert.strictEqual(yield* place, socket)
    }).pipe(Effect.provide(Engine))
  )

  it.live("tells what is missing, what collides and what is so already as data", () =>
    Effect.gen(function* () {
      const engine = yield* DockerEngine
      const { use } = engine
      const missing = yield* Effect.flip(use("a look", (docker) => docker.getContainer("choir-test-none").inspect()))
      assert.deepStrictEqual([missing.reason, missing.status], ["missing", 404])
      assert.match(missing.message, /^a look: no such container/iu)
      const name = `choir-test-${process.pid}`
      const made = { Image: IMAGE, Cmd: ["sleep", "1000"], name, Labels: { "choir.test": "engine" } }
      const create = use("a container", (docker, abortSignal) => docker.createContainer({ ...made, abortSignal }))
      yield* Effect.addFinalizer(() =>
        Effect.ignore(Effect.provideService(removeContainer(name), DockerEngine, engine))
      )
      const container = yield* create
      assert.strictEqual((yield* Effect.flip(create)).reason, "conflict")
      yield* use("the start", () => container.start())
      assert.strictEqual((yield* Effect.flip(use("a second start", () => container.start()))).reason, "unchanged")
      yield* removeContainer(name)
      assert.strictEqual((yield* Effect.flip(use("a look", () => container.inspect()))).reason, "missing")
      yield* removeContainer(name)
    }).pipe(Effect.provide(Engine))
  )

  it.live("ends a request when its caller is interrupted", () =>
    Effect.gen(function* () {
      const { use } = yield* DockerEngine
      const asked = yield* Deferred.make<AbortSignal>()
      const events = use("events", (docker, abortSignal) => {
        Deferred.doneUnsafe(asked, Effect.succeed(abortSignal))
        return docker.getEvents({ abortSignal }).then(() => new Promise<never>(() => undefined))
      })
      const fiber = yield* Effect.forkChild(events)
      const signal = yield* Deferred.await(asked)
      assert.isFalse(signal.aborted)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(signal.aborted)
    }).pipe(Effect.provide(Engine))
  )
})

describe("DockerEngine without an engine", () => {
  const folder = mkdtempSync("/tmp/choir-no-engine-")

  it.live("says where it looked for one", () =>
    Effect.gen(function* () {
      const { info } = yield* DockerEngine
      const error = yield* Effect.flip(info)
      assert.strictEqual(error.reason, "unreachable")
      assert.include(error.message, join(folder, "none.sock"))
      assert.include(error.fix, "systemctl start docker")
    }).pipe(Effect.provide(DockerEngine.layer({ docker_socket: join(folder, "none.sock") })))
  )

  it.live("does not wait for ever for one that does not answer, and takes no answer of another server for one", () =>
    Effect.gen(function* () {
      const docker_socket = join(folder, "deaf.sock")
      const server = createServer()
      yield* Effect.callback<void>((resume) => void server.listen(docker_socket, () => resume(Effect.void)))
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          server.close()
          rmSync(folder, { recursive: true, force: true })
        })
      )
      const { info, use } = yield* Effect.provide(DockerEngine, DockerEngine.layer({ docker_socket }))
      const late = yield* Effect.flip(use("a look", (docker) => docker.ping(), { ms_max: 50 }))
      assert.deepStrictEqual([late.reason, late.detail], ["late", "the engine did not answer within 50 ms"])
      server.on("connection", (connection) =>
        connection
          .on("error", () => undefined)
          .once("data", () => connection.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"))
      )
      const other = yield* Effect.flip(info)
      assert.strictEqual(other.reason, "failed")
      assert.include(other.detail, "ServerVersion")
    })
  )
})
