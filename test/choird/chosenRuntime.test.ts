import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { createServer } from "node:http"
import { join } from "node:path"
import { RuntimeConfig } from "#schema/Config.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { chosenRuntime } from "#src/choird/chosenRuntime.ts"
import { temporaryFolder } from "../support/engines.ts"
import { sandboxReason } from "./runtime/runtimes.ts"

const PLAIN = { ServerVersion: "20.10", Driver: "overlay2", DockerRootDir: "/var/lib/docker" }
const REMAPPED = { ...PLAIN, SecurityOptions: ["name=userns"], DockerRootDir: "/var/lib/docker/100000.100000" }

/** An engine that says of itself what it is told, and has nothing. */
const engineThat = Effect.fnUntraced(function* (info: unknown) {
  const socket = join(yield* temporaryFolder, "engine.sock")
  const server = createServer((request, response) => {
    if (request.url?.endsWith("/info") === true) return response.end(JSON.stringify(info))
    return request.url?.includes("/containers/json") === true ? response.end("[]") : response.writeHead(404).end("{}")
  })
  yield* Effect.callback<void>((resume) => void server.listen(socket, () => resume(Effect.void)))
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      server.closeAllConnections()
      server.close()
    })
  )
  return socket
})

/** What choird would run agents with. */
const chosen = Effect.fnUntraced(function* (settings: (typeof RuntimeConfig)["Encoded"]) {
  const config = yield* Schema.decodeEffect(RuntimeConfig)(settings)
  const layer = Layer.provide(chosenRuntime(config, yield* temporaryFolder), NodeServices.layer)
  return yield* Effect.flatMap(ContainerRuntime, ({ status }) => status).pipe(Effect.scoped, Effect.provide(layer))
})

describe("chosenRuntime", { timeout: 300_000 }, () => {
  it.live("takes Docker where agents may run in it, by itself and on demand", () =>
    Effect.gen(function* () {
      const docker_socket = yield* engineThat(REMAPPED)
      for (const type of ["auto", "docker"] as const)
        assert.strictEqual((yield* chosen({ type, docker_socket })).type, "docker")
    })
  )

  it.live.skipIf(sandboxReason !== undefined)(
    "takes the sandbox where there is no engine, and says why where one may not be used",
    () =>
      Effect.gen(function* () {
        const none = yield* chosen({ type: "auto", docker_socket: "/nonexistent.sock" })
        assert.strictEqual(none.type, "sandbox")
        assert.notMatch(none.warnings.join(), /Docker is/u)
        const docker_socket = yield* engineThat(PLAIN)
        const plain = yield* chosen({ type: "auto", docker_socket })
        assert.strictEqual(plain.type, "sandbox")
        assert.match(plain.warnings.join(), /Docker is not used: .*user namespaces.*userns-remap/u)
        const allowed = yield* chosen({ type: "auto", docker_socket, allow_unmapped_root: true })
        assert.strictEqual(allowed.type, "docker")
        assert.match(allowed.warnings.join(), /user namespaces/u)
      })
  )

  it.live("takes a list of places where something keeps agents to it, and says where nothing does (D22)", () =>
    Effect.gen(function* () {
      const listed = { network: "allowlist", allow: ["example.org"] } as const
      const docker_socket = yield* engineThat(REMAPPED)
      const docker = yield* Effect.result(chosen({ type: "docker", docker_socket, ...listed }))
      if (process.getuid?.() === 0)
        assert.deepStrictEqual(docker._tag === "Success" && docker.success.warnings, [
          "The Docker engine has no system call filter.",
          ...["cpus", "memory_mb", "pids"].map((name) => `${name} is not enforced by this Docker engine.`)
        ])
      else assert.match(docker._tag === "Failure" ? docker.failure.message : "", /needs choird to be root/u)
      const { warnings } = yield* chosen({ type: "process", ...listed })
      assert.include(warnings.join(), "allowlist has no effect")
    })
  )

  it.live("refuses the engine that was asked for where agents may not run in it (R38)", () =>
    Effect.gen(function* () {
      const plain = yield* engineThat(PLAIN)
      const unmapped = yield* Effect.flip(chosen({ type: "docker", docker_socket: plain }))
      assert.match(unmapped.message, /user namespaces.*userns-remap/u)
    })
  )
})
