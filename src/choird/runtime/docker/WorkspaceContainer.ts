/**
 * A container of choird's own over one workspace (D43): it runs one program as root of the engine's user namespace, so that it may act on files of
 * the agents' uids, and sees nothing of the host but that one folder.
 */
import { createHash } from "node:crypto"
import { Deferred, Effect, Option } from "effect"
import { ContainerError } from "#src/choird/runtime/ContainerRuntime.ts"
import type { Installation } from "#src/shared/docker/dockerInstallation.ts"
import { createContainer, requireProfile } from "./AgentContainer.ts"
import { ContainerWatch } from "./ContainerWatch.ts"
import { DockerEngine } from "./DockerEngine.ts"
import { CLOSED, type Profile } from "./dockerProfile.ts"
import { AGENT_LABEL, HOME_LABEL, MANAGED_LABEL } from "./imageNames.ts"
import { removeContainer } from "./removeContainer.ts"
import { MIB } from "#src/shared/text/bytesText.ts"

/** Memory of such a container: enough to sort a folder of a million names. */
const WORK_MEMORY_MIB = 512
/** Processes of such a container. */
const WORK_PIDS_MAX = 16

/** Where it has the workspace. */
export const TARGET = "/workspace"

export interface WorkspaceWork {
  /** Part of the container's name. */
  readonly kind: "reset" | "give"
  readonly command: ReadonlyArray<string>
  /** Rights over files of its own namespace. None reaches files of uids that the namespace does not map. */
  readonly capabilities: ReadonlyArray<"CHOWN" | "DAC_OVERRIDE" | "FOWNER">
  readonly ms_max: number
}

/** The closed profile of an agent's container, without a network and with the rights that its work needs. */
export const workProfile = (
  installation: Installation,
  image: string,
  workspace: string,
  { capabilities, command, kind }: WorkspaceWork,
  oci_runtime?: string
): Profile => {
  const which = createHash("sha256").update(workspace).digest("hex").slice(0, 8)
  return {
    ...CLOSED.container,
    name: `choir-${kind}-${which}.${installation.id.slice(0, 8)}`,
    Image: image,
    User: "0:0",
    Entrypoint: [...command],
    Env: [],
    WorkingDir: "/",
    Labels: { [MANAGED_LABEL]: "true", [HOME_LABEL]: installation.id },
    HostConfig: {
      ...CLOSED.host,
      CapAdd: [...capabilities],
      Mounts: [
        {
          Type: "bind",
          Source: workspace,
          Target: TARGET,
          ReadOnly: false,
          BindOptions: { Propagation: "rprivate", NonRecursive: true }
        } as Profile["HostConfig"]["Mounts"][number]
      ],
      Memory: WORK_MEMORY_MIB * MIB,
      MemorySwap: WORK_MEMORY_MIB * MIB,
      PidsLimit: WORK_PIDS_MAX,
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
 * Runs it, and answers its exit code when it is gone. `undefined`, without a container, where the engine has no image of this installation, since
 * then none of its agents can have run there.
 */
export const workInContainer = Effect.fn("workInContainer")(function* (
  installation: Installation,
  workspace: string,
  work: WorkspaceWork,
  oci_runtime?: string
) {
  const engine = yield* DockerEngine
  const watch = yield* ContainerWatch
  const image = yield* anyImage(installation)
  if (Option.isNone(image)) return undefined
  const profile = workProfile(installation, image.value, workspace, work, oci_runtime)
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
  const { code } = yield* Effect.timeoutOrElse(Deferred.await(ended), {
    duration: work.ms_max,
    orElse: () =>
      Effect.fail(
        new ContainerError({
          reason: "stuck",
          problem: `the container ${profile.name} did not end in time`,
          fix: `Run: docker rm --force ${profile.name}, then try again`
        })
      )
  })
  return code ?? undefined
}, Effect.scoped)
