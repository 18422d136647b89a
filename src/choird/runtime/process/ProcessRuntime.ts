/**
 * Agents as plain processes of choird's own user. It isolates nothing; it is for hosts without bubblewrap, and only
 * when the configuration asks for it by name.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { agentCommand, agentEnvironment, specError, taskFlags } from "#src/choird/runtime/AgentCommand.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { ContainerRuntime, type ContainerSpec, type RuntimeStatus } from "#src/choird/runtime/ContainerRuntime.ts"
import { limitGroup, openHostContainer } from "#src/choird/runtime/HostContainer.ts"
import { dyingWith, HOST_PATH, joining } from "#src/choird/runtime/HostProcess.ts"
import { emptyWorkspace } from "#src/choird/runtime/emptyWorkspace.ts"
import { reapContainer } from "#src/choird/runtime/docker/removeContainer.ts"

/** The common part of the runtimes whose agents are processes of the host: they adopt and build nothing. */
export const makeHostRuntime = Effect.gen(function* () {
  const context = Context.pick(Cgroups, DockerEngine)(yield* Effect.context<Cgroups | DockerEngine>())
  return {
    adopt: () => Effect.succeed(false),
    sweep: () => Effect.void,
    reap: (id) => Effect.provideContext(reapContainer(id), context),
    // The folder of an image is all that an agent is given of it.
    buildImage: () => Effect.succeed(false),
    hasImage: () => Effect.succeed(true),
    emptyWorkspace
  } satisfies Partial<ContainerRuntime["Service"]>
})

/** Whether the kernel can kill an agent together with choird; elsewhere only the next start does it. */
const canDieWithParent = Effect.sync(() =>
  HOST_PATH.split(":").some((folder) => existsSync(join(folder, "setpriv")) && existsSync("/proc/self/stat"))
)

const statusOf = (diesWithChoird: boolean, limits: Cgroups["Service"]["enforced"]): RuntimeStatus => ({
  type: "process",
  isolation: "None: an agent and its tools can do whatever choird's own user can.",
  limits,
  warnings: [
    "The process runtime isolates nothing. Use the sandbox for an agent that reads text from other people.",
    "Dockerfiles are not built: agents have the programs of this host.",
    ...Object.entries(limits).flatMap(([name, works]) =>
      works ? [] : [`${name} is not enforced: choird may not write control groups.`]
    ),
    ...(diesWithChoird ? [] : ["An agent outlives a choird that is killed, until choird starts again."])
  ]
})

const make = Effect.gen(function* () {
  const cgroups = yield* Cgroups
  const shared = yield* makeHostRuntime
  const diesWithChoird = yield* canDieWithParent

  const start = Effect.fn("ProcessRuntime.start")(
    function* (spec: ContainerSpec) {
      const refused = specError(spec)
      if (refused !== undefined) return yield* refused
      const group = yield* limitGroup(spec)
      const socket = join(spec.socket_dir, "choird.sock")
      const command = agentCommand(
        { ...spec, socket, choir: join(spec.image, "choir") },
        spec.endpoint,
        taskFlags(spec)
      )
      const chain = diesWithChoird ? dyingWith(process.pid, command) : command
      const [program = "", ...args] = joining(group.joins, chain)
      return yield* openHostContainer({
        type: "process",
        spec,
        group,
        workspace: spec.workspace,
        launch: { program, args, cwd: spec.workspace, env: agentEnvironment(spec, HOST_PATH) }
      })
    },
    Effect.provideService(Cgroups, cgroups)
  )

  return ContainerRuntime.of({
    ...shared,
    type: "process",
    start,
    status: Effect.sync(() => statusOf(diesWithChoird, cgroups.enforced))
  })
})

export const layer: Layer.Layer<ContainerRuntime, never, Cgroups | DockerEngine> = Layer.effect(ContainerRuntime, make)
