/** Ends what is left of a container of an earlier life of choird, whichever runtime config.json named then. */
import type { Effect } from "effect"
import type { DockerEngine } from "#src/choird/docker/DockerEngine.ts"
import { removeContainer } from "#src/choird/docker/removeContainer.ts"
import type { Cgroups } from "./Cgroups.ts"
import type { ContainerError, ContainerId } from "./ContainerRuntime.ts"
import { reapTree } from "./ProcessTree.ts"

export const reapWith =
  (cgroups: Cgroups["Service"], engine: DockerEngine["Service"]) =>
  (id: ContainerId): Effect.Effect<void, ContainerError> =>
    id.type === "docker" ? removeContainer(engine, id.container_id) : reapTree(cgroups, id)
