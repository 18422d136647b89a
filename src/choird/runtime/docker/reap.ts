/**
 * Ends what is left of a container of an earlier life of choird, whichever runtime config.json named then. An engine that is away is
 * waited for: it may come up after choird, and nothing begins beside a container of which nobody knows.
 */
import type { Effect } from "effect"
import type { DockerEngine } from "./DockerEngine.ts"
import { removeContainer } from "./removeContainer.ts"
import type { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import type { ContainerError, ContainerId } from "#src/choird/runtime/ContainerRuntime.ts"
import { reapTree } from "#src/choird/runtime/ProcessTree.ts"

/** How long the start of an agent waits for an engine that is away, and the end of one for an engine that has its container. */
export const DOCKER_AWAY_MS_MAX = 600_000

export const reapWith =
  (cgroups: Cgroups["Service"], engine: DockerEngine["Service"]) =>
  (id: ContainerId): Effect.Effect<void, ContainerError> =>
    id.type === "docker" ? removeContainer(engine, id.container_id, DOCKER_AWAY_MS_MAX) : reapTree(cgroups, id)
