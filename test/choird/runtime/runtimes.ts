/**
 * The runtimes that agents run in, for suites of what each of them has to hold. What one cannot hold it says in `status`, in words that
 * stand here; a suite leaves it out there and nowhere else.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { describe } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import { afterAll } from "vitest"
import type { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { type ContainerId, ContainerRuntime, type RuntimeStatus } from "#src/choird/runtime/ContainerRuntime.ts"
import * as ProcessRuntime from "#src/choird/runtime/process/ProcessRuntime.ts"
import * as SandboxRuntime from "#src/choird/runtime/sandbox/SandboxRuntime.ts"
import { testEngine } from "../../support/docker.ts"
import { docker } from "../../support/dockerImage.ts"
import { ensureDebianPackages, leaveOut } from "../../support/packages.ts"
import { dockerSuite } from "./dockerRig.ts"
import { HostParts, isGone, makeRig } from "./rig.ts"

type Rig = Effect.Success<ReturnType<typeof makeRig>>
type Parts = ContainerRuntime | Cgroups | DockerEngine

/** Walls between an agent and this host with its other agents; a network of its own; programs that Dockerfiles made. */
export type Need = "walls" | "network" | "dockerfiles"

export interface RuntimePlace {
  readonly type: RuntimeStatus["type"]
  /** What it does not have, and how `status` says so. */
  readonly lacks: Readonly<Partial<Record<Need, RegExp>>>
  /** choird's home. */
  readonly home: string
  rig(agent?: string): Effect.Effect<Rig, never, Scope.Scope>
  /** Whether nothing of a container is left. */
  gone(id: ContainerId): Effect.Effect<boolean, never, Cgroups>
  /** A test in this runtime, whose containers are gone before it is. */
  inside<A, E>(test: Effect.Effect<A, E, Parts | Scope.Scope>): Effect.Effect<A, E>
}

const reasonOfSandbox = async (suite: string) => {
  const leftOut = ensureDebianPackages(["bubblewrap", "util-linux"], suite)
  if (leftOut !== undefined) return leftOut
  const works = await Effect.runPromise(Effect.result(SandboxRuntime.probe))
  return works._tag === "Failure" ? leaveOut(suite, works.failure.message) : undefined
}

/** Why sandboxes cannot be tried here, or `undefined`. */
export const sandboxReason = await reasonOfSandbox("SandboxRuntime")

/** One of the host's own runtimes, with a home that goes with the suite. */
const onHost = (
  type: "sandbox" | "process",
  lacks: RuntimePlace["lacks"],
  layerOf: (home: string) => typeof ProcessRuntime.layer
): RuntimePlace => {
  const home = mkdtempSync(`/tmp/choir-${type}-home-`)
  afterAll(() => rmSync(home, { recursive: true, force: true }))
  const layer = layerOf(home).pipe(Layer.provideMerge(HostParts))
  return {
    type,
    lacks,
    home,
    rig: makeRig,
    gone: Effect.fnUntraced(function* (id) {
      if (id.type === "docker") return false
      const ended = yield* Effect.forEach(id.processes, ({ pid }) => isGone(pid))
      return ended.every((one) => one) && (yield* (yield* Cgroups).members(id.cgroup)).length === 0
    }, Effect.orDie),
    inside: (test) => test.pipe(Effect.scoped, Effect.provide(layer))
  }
}

const inDocker = (socket: string): RuntimePlace => {
  const { home, inside, installation, rig } = dockerSuite(socket)
  return {
    type: "docker",
    lacks: {},
    home,
    // It says whose it is, as an image of choird's builder does.
    rig: (agent) => rig(agent, [`LABEL choir.home=${installation.id}`]),
    gone: (id) =>
      Effect.sync(
        () =>
          id.type === "docker" && docker(socket, "ps", "--all", "--quiet", "--filter", `id=${id.container_id}`) === ""
      ),
    inside
  }
}

/** One suite, on every runtime that this machine has. */
export const describeRuntimes = (name: string, suite: (place: RuntimePlace) => void) => {
  const on = (type: string, reason: string | undefined, place: () => RuntimePlace) => {
    const left = reason === undefined ? "" : ` (left out: ${reason})`
    const unless = reason === undefined ? describe : describe.skip
    unless(`${name} (${type})${left}`, () => suite(place()))
  }
  const { reason, socket } = testEngine(`${name}, docker`)
  on("docker", reason, () => inDocker(socket))
  on("sandbox", sandboxReason, () =>
    onHost("sandbox", { network: /shares the host's network/u, dockerfiles: /Dockerfiles are not built/u }, (home) =>
      SandboxRuntime.layer({ home })
    )
  )
  const nothing = /isolates nothing/u
  on("process", undefined, () =>
    onHost(
      "process",
      { walls: nothing, network: nothing, dockerfiles: /Dockerfiles are not built/u },
      () => ProcessRuntime.layer
    )
  )
}
