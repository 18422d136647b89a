/** Containers that an earlier life of choird left in the engine. */
import { Effect, Option, Schema } from "effect"
import type { ContainerId } from "#src/choird/runtime/ContainerRuntime.ts"
import type { DockerEngine } from "./DockerEngine.ts"
import { HOME_LABEL } from "./imageNames.ts"
import { removeContainer } from "./removeContainer.ts"

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
