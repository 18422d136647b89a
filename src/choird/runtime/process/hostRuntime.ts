/** What the runtimes have in common whose agents are processes of the host: none is adopted, and nothing is built. */
import { Effect } from "effect"
import { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import type { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { emptyWorkspace } from "#src/choird/runtime/emptyWorkspace.ts"
import { reapWith } from "#src/choird/runtime/docker/reap.ts"

export const makeHostRuntime = Effect.map(
  Effect.all([Cgroups, DockerEngine]),
  ([cgroups, engine]): Omit<ContainerRuntime["Service"], "type" | "start" | "status"> => ({
    adopt: () => Effect.succeed(false),
    sweep: () => Effect.void,
    reap: reapWith(cgroups, engine),
    // The folder of an image is all that an agent is given of it.
    buildImage: () => Effect.succeed(false),
    hasImage: () => Effect.succeed(true),
    emptyWorkspace
  })
)
