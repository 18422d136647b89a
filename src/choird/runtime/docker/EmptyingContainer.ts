/**
 * A container that only deletes the contents of a workspace (D43). It has the engine's user namespace, so it may act on files of the
 * agents' uids, and sees nothing of the host but that one folder.
 */
import { createHash } from "node:crypto"
import { Deferred, Effect, Option } from "effect"
import { ContainerError } from "#src/choird/runtime/ContainerRuntime.ts"
import type { Installation } from "#src/shared/docker/dockerInstallation.ts"
import { WORKSPACE_RESET_MS_MAX } from "#src/choird/runtime/emptyWorkspace.ts"
import { createContainer, requireProfile } from "./AgentContainer.ts"
import { ContainerWatch } from "./ContainerWatch.ts"
import { DockerEngine } from "./DockerEngine.ts"
import { CLOSED, type Profile } from "./dockerProfile.ts"
import { AGENT_LABEL, HOME_LABEL, MANAGED_LABEL } from "./imageNames.ts"
import { removeContainer } from "./removeContainer.ts"
import { MIB } from "#src/shared/text/bytesText.ts"

/** Memory of the container that empties a workspace: enough to sort a folder of a million names. */
const RESET_MEMORY_MIB = 512
/** Processes of that container. */
const RESET_PIDS_MAX = 16

const TARGET = "/workspace"

/** The closed profile of an agent's container, without a network and with the two rights over files of its own namespace. */
export const emptyingProfile = (
  installation: Installation,
  image: string,
  workspace: string,
  oci_runtime?: string
): Profile => {
  const which = createHash("sha256").update(workspace).digest("hex").slice(0, 8)
  return {
    ...CLOSED.container,
    name: `choir-reset-${which}.${installation.id.slice(0, 8)}`,
    Image: image,
    User: "0:0",
    Entrypoint: ["/usr/bin/find", "-P", TARGET, "-xdev", "-mindepth", "1", "-delete"],
    Env: [],
    WorkingDir: "/",
    Labels: { [MANAGED_LABEL]: "true", [HOME_LABEL]: installation.id },
    HostConfig: {
      ...CLOSED.host,
      // Folders of mode 000, and sticky ones. Neither reaches files of uids that the namespace does not map.
      CapAdd: ["DAC_OVERRIDE", "FOWNER"],
      Mounts: [
        {
          Type: "bind",
          Source: workspace,
          Target: TARGET,
          ReadOnly: false,
          BindOptions: { Propagation: "rprivate", NonRecursive: true }
        } as Profile["HostConfig"]["Mounts"][number]
      ],
      Memory: RESET_MEMORY_MIB * MIB,
      MemorySwap: RESET_MEMORY_MIB * MIB,
      PidsLimit: RESET_PIDS_MAX,
      NetworkMode: "none",
      ShmSize: MIB,
      LogConfig: { Type: "none", Config: {} },
      ...(oci_runtime === undefined ? {} : { Runtime: oci_runtime })
    }
  }
}

/** An image of this installation: a base, which no agent had a hand in, before one of an agent. */
const anyImage = Effect.fnUntraced(function* ({ id }: Installation) {
  const engine = yield* DockerEngine
  const images = yield* engine.use("the engine's images could not be listed", (docker, abortSignal) =>
    docker.listImages({ filters: JSON.stringify({ label: [`${HOME_LABEL}=${id}`] }), abortSignal })
  )
  const named = images.filter(({ RepoTags }) => (RepoTags ?? []).some((tag) => !tag.includes("<none>")))
  const isBase = ({ Labels }: (typeof named)[number]) => Object(Labels)[AGENT_LABEL] === undefined
  return Option.fromNullishOr((named.find(isBase) ?? named[0])?.Id)
})

/**
 * Deletes what it can and returns when its container is gone; the caller checks what is left. Does nothing where the engine has no image
 * of this installation, since then none of its agents can have run there.
 */
export const emptyInContainer = Effect.fn("emptyInContainer")(function* (
  installation: Installation,
  workspace: string,
  oci_runtime?: string
) {
  const engine = yield* DockerEngine
  const watch = yield* ContainerWatch
  const image = yield* anyImage(installation)
  if (Option.isNone(image)) return
  const profile = emptyingProfile(installation, image.value, workspace, oci_runtime)
  const { id, start } = yield* Effect.acquireRelease(
    Effect.map(createContainer(profile), (container) => ({
      id: container.id,
      start: engine.use(`the container ${profile.name} could not be started`, (_, abortSignal) =>
        container.start({ abortSignal })
      )
    })),
    ({ id }) => Effect.catch(removeContainer(id), (error) => Effect.logError(error))
  )
  yield* requireProfile(id, profile)
  const { ended } = yield* watch.watch(id)
  yield* start
  yield* watch.look(id)
  yield* Effect.timeoutOrElse(Deferred.await(ended), {
    duration: WORKSPACE_RESET_MS_MAX,
    orElse: () =>
      Effect.fail(
        new ContainerError({
          reason: "stuck",
          problem: `the container ${profile.name} did not end in time`,
          fix: `Run: docker rm --force ${profile.name}, then try again`
        })
      )
  })
}, Effect.scoped)
