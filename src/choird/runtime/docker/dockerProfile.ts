/** The closed profile that every agent's container has, as pure data. */
import { dirname } from "node:path"
import type Docker from "dockerode"
import { agentCommand, agentEnvironment, taskFlags } from "#src/choird/runtime/AgentCommand.ts"
import {
  type ContainerSpec,
  CONTAINER_RUN_BYTES_MAX,
  CONTAINER_SHM_BYTES_MAX,
  CONTAINER_TMP_BYTES_MAX,
  NAME_FILES
} from "#src/choird/runtime/ContainerRuntime.ts"
import type { UserIds } from "#src/choird/runtime/agentUser.ts"
import { needsNames } from "./userNames.ts"
import { AGENT_LABEL, agentTag, HOME_LABEL, IMAGE_PROGRAMS, MANAGED_LABEL } from "./imageNames.ts"
import { containerName, type Installation, trialName } from "#src/shared/docker/dockerInstallation.ts"
import { MIB } from "#src/shared/text/bytesText.ts"

/** Files of a container's output that the engine keeps on disk, and their size. */
const CONTAINER_LOG_FILES_MAX = 2
const CONTAINER_LOG_MIB_MAX = 5

/** The session that a container runs. */
const SESSION_LABEL = "choir.session"

/** The paths of an agent's things in a container. */
export const INSIDE = {
  ...IMAGE_PROGRAMS,
  socket: "/run/choir/choird.sock",
  workspace: "/workspace",
  choir: "/choir"
} as const

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
/** The parts of a container beyond its spec. */
export interface ProfilePlan {
  readonly spec: ContainerSpec
  readonly installation: Installation
  /** Real paths. */
  readonly workspace: string
  readonly socket_dir: string
  /** As whom the agent runs inside. */
  readonly user: UserIds
  readonly oci_runtime: string | undefined
  /** Names and addresses, `name:address`, for a container that is not to ask for any. */
  readonly hosts?: ReadonlyArray<string> | undefined
}

/** The profile with the fields that it always has. The engine takes it as it is, and its answer is compared with it. */
export type Profile = Docker.ContainerCreateOptions & {
  readonly name: string
  readonly Env: Array<string>
  readonly Labels: Readonly<Record<string, string>>
  readonly HostConfig: Docker.HostConfig & {
    readonly Mounts: Array<Docker.MountSettings>
    readonly NetworkMode: string
  }
}

const bind = (Source: string, Target: string, ReadOnly: boolean): Docker.MountSettings => ({
  Type: "bind",
  Source,
  Target,
  ReadOnly,
  BindOptions: { Propagation: "rprivate" }
})

const names = (socket_dir: string) =>
  Object.entries(NAME_FILES).map(([name, file]) => bind(`${socket_dir}/${file}`, `/etc/${name}`, true))

/** Settings that send name queries to the container's own loopback, where nobody answers; otherwise the engine would ask on its behalf. */
const NO_NAMES = { Dns: ["127.0.0.1"], DnsSearch: ["."], DnsOptions: ["timeout:1", "attempts:1"] }

/** The agent's own: older engines put the mode of the image's folder in place of this one. */
const tmpfs = (bytes: number, { gid, uid }: UserIds, options: string) =>
  `rw,nosuid,nodev,${options},size=${bytes},mode=1777,uid=${uid},gid=${gid}`

/** The restrictions of every container of Choir. */
export const CLOSED = {
  container: { Hostname: "choir", Cmd: [], Tty: false, OpenStdin: false, Healthcheck: { Test: ["NONE"] } },
  host: {
    CapDrop: ["ALL"],
    SecurityOpt: ["no-new-privileges:true"],
    Privileged: false,
    ReadonlyRootfs: true,
    Ulimits: [{ Name: "core", Soft: 0, Hard: 0 }],
    IpcMode: "private",
    CgroupnsMode: "private",
    RestartPolicy: { Name: "no" },
    AutoRemove: false,
    Init: false
  }
} satisfies {
  readonly container: Docker.ContainerCreateOptions
  readonly host: Docker.HostConfig & { readonly CgroupnsMode: string }
}

/** The whole of it, with the token in the environment and nowhere else (D12). */
export const dockerProfile = (plan: ProfilePlan): Profile => {
  const { hosts, installation, oci_runtime, socket_dir, spec, user, workspace } = plan
  const { agent_id, image_version, limits, session_id } = spec
  const memory = limits.memory_mb * MIB
  return {
    ...CLOSED.container,
    name: spec.trial === true ? trialName(installation, session_id) : containerName(installation, agent_id),
    Image: agentTag(agent_id, image_version),
    // Whatever USER its image names.
    User: `${user.uid}:${user.gid}`,
    // tini collects what tools leave behind; as the first process node would not (D13).
    Entrypoint: [
      INSIDE.tini,
      "--",
      ...agentCommand(INSIDE, spec.endpoint, ["--own-pid-namespace", ...taskFlags(spec)])
    ],
    Env: Object.entries(agentEnvironment(spec, PATH)).map(([name, value]) => `${name}=${value}`),
    WorkingDir: INSIDE.workspace,
    Labels: {
      [MANAGED_LABEL]: "true",
      [HOME_LABEL]: installation.id,
      [AGENT_LABEL]: agent_id,
      [SESSION_LABEL]: session_id
    },
    HostConfig: {
      ...CLOSED.host,
      Tmpfs: {
        "/tmp": tmpfs(CONTAINER_TMP_BYTES_MAX, user, "exec"),
        "/run": tmpfs(CONTAINER_RUN_BYTES_MAX, user, "noexec")
      },
      ShmSize: CONTAINER_SHM_BYTES_MAX,
      // The folder and not the socket: choird recreates its socket, and a bound file would stay the old one.
      Mounts: [
        bind(workspace, INSIDE.workspace, false),
        bind(socket_dir, dirname(INSIDE.socket), true),
        ...(needsNames(user) ? names(socket_dir) : [])
      ],
      NanoCpus: Math.round(limits.cpus * 1e9),
      Memory: memory,
      MemorySwap: memory,
      PidsLimit: limits.pids,
      NetworkMode: installation.network,
      ...(hosts === undefined ? {} : { ...NO_NAMES, ExtraHosts: [...hosts] }),
      LogConfig: {
        Type: "json-file",
        Config: { "max-size": `${CONTAINER_LOG_MIB_MAX}m`, "max-file": String(CONTAINER_LOG_FILES_MAX) }
      },
      ...(oci_runtime === undefined ? {} : { Runtime: oci_runtime })
    }
  }
}
