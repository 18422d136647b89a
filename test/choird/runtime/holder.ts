/**
 * A choird of its own process that only holds one container, for tests that kill it or run it as another user. Arguments: the
 * runtime's type, choird's home, a spec as JSON. Prints the container's id and the runtime's status as one line.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Console, Effect, Layer, Redacted } from "effect"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import * as ProcessRuntime from "#src/choird/runtime/process/ProcessRuntime.ts"
import * as SandboxRuntime from "#src/choird/runtime/sandbox/SandboxRuntime.ts"
import { HostParts } from "./rig.ts"

const [type, home = "", spec = "{}"] = process.argv.slice(2)
const token = Redacted.make(process.env["HOLDER_TOKEN"] ?? "")

const hold = Effect.gen(function* () {
  const runtime = yield* ContainerRuntime
  const { id } = yield* runtime.start({ ...JSON.parse(spec), bootstrap_token: token })
  yield* Console.log(JSON.stringify({ id, status: yield* runtime.status }))
  return yield* Effect.never
})

const Runtime = type === "sandbox" ? SandboxRuntime.layer({ home }) : ProcessRuntime.layer
NodeRuntime.runMain(hold.pipe(Effect.scoped, Effect.provide(Runtime.pipe(Layer.provide(HostParts)))))
