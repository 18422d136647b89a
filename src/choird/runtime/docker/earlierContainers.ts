/** Containers that an earlier life of choird left in the engine. */
import { Effect, Option, Schema } from "effect"
import type { ContainerError, ContainerId } from "#src/choird/runtime/ContainerRuntime.ts"
import type { DockerEngine } from "./DockerEngine.ts"
import { HOME_LABEL } from "./imageNames.ts"
import { removeContainer } from "./removeContainer.ts"
import type { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { reapTree } from "#src/choird/runtime/ProcessTree.ts"

/** How long the start of an agent waits for an engine that is away, and the end of one for an engine that has its container. */
export const DOCKER_AWAY_MS_MAX = 600_000

export const reapWith =
  (cgroups: Cgroups["Service"], engine: DockerEngine["Service"]) =>
  (id: ContainerId): Effect.Effect<void, ContainerError> =>
    id.type === "docker" ? removeContainer(engine, id.container_id, DOCKER_AWAY_MS_MAX) : reapTree(cgroups, id)

/** Containers of an earlier choird that are ended at once. */
export const REAPS_IN_FLIGHT_MAX = 4

const decodeRunning = Schema.decodeUnknownOption(Schema.Struct({ State: Schema.Struct({ Running: Schema.Boolean }) }))

/** Whether a container is there and has not ended. */
export const isRunning = (engine: DockerEngine["Service"], container_id: string) =>
  engine
    .use("a container of an earlier choird could not be looked at", (docker, abortSignal) =>
      docker.getContainer(container_id).inspect({ abortSignal })
    )
    .pipe(
      Effect.map((answer) => Option.exists(decodeRunning(answer), ({ State }) => State.Running)),
      Effect.catchIf(
        (error) => error.reason === "missing",
        () => Effect.succeed(false)
      )
    )

/** Ends what no session's row remembers: containers of this installation alone. */
export const removeOrphans = Effect.fnUntraced(function* (
  engine: DockerEngine["Service"],
  id: string,
  remembered: ReadonlyArray<ContainerId>
) {
  const found = yield* engine.use("the engine's containers could not be listed", (docker, abortSignal) =>
    docker.listContainers({ all: true, filters: JSON.stringify({ label: [`${HOME_LABEL}=${id}`] }), abortSignal })
  )
  const kept = new Set(remembered.map((known) => (known.type === "docker" ? known.container_id : undefined)))
  const orphans = found.filter(({ Id }) => !kept.has(Id))
  if (orphans.length > 0) yield* Effect.logInfo(`${orphans.length} containers of an earlier choird are removed`)
  yield* Effect.forEach(orphans, ({ Id }) => Effect.ignore(removeContainer(engine, Id), { log: true }), {
    concurrency: REAPS_IN_FLIGHT_MAX,
    discard: true
  })
})
