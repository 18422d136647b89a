/** An agent of tests in a real sandbox, for attacks from its inside. */
import { mkdtempSync, rmSync } from "node:fs"
import { Effect, Layer, type Scope } from "effect"
import { afterAll } from "vitest"
import type { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import type { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { layer } from "#src/choird/runtime/sandbox/SandboxRuntime.ts"
import { HostParts, makeRig } from "../choird/runtime/rig.ts"

/** A suite's own home, and what starts agents in it. */
export const sandboxes = () => {
  const home = mkdtempSync("/tmp/choir-sandbox-home-")
  afterAll(() => rmSync(home, { recursive: true, force: true }))
  const runtime = layer({ home }).pipe(Layer.provideMerge(HostParts))
  return {
    home,
    inside: <A, E>(test: Effect.Effect<A, E, ContainerRuntime | Cgroups | DockerEngine | Scope.Scope>) =>
      test.pipe(Effect.scoped, Effect.provide(runtime))
  }
}

/** A running agent, its container, and its files on the host. */
export const startAgent = Effect.gen(function* () {
  const rig = yield* makeRig()
  const container = yield* (yield* ContainerRuntime).start(rig.spec)
  return { ...rig, container, agent: yield* rig.connected }
})
