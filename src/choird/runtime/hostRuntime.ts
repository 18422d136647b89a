/** What the runtimes have in common whose agents are processes of the host: none is adopted, and nothing is built. */
import { Effect } from "effect"
import { DockerEngine } from "#src/choird/docker/DockerEngine.ts"
import { Cgroups } from "./Cgroups.ts"
import type { ContainerRuntime } from "./ContainerRuntime.ts"
import { emptyWorkspace } from "./emptyWorkspace.ts"
import { reapWith } from "./reap.ts"

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
