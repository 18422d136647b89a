/**
 * The runtime that runs agents apart from choird. The layers `DockerRuntime`, `SandboxRuntime` and `ProcessRuntime` implement this one
 * service; main picks one, and nothing else asks which it is.
 */
import { Context, type Effect, type Redacted, Schema, type Scope, type Stream } from "effect"
import { AgentId, type SessionId } from "#schema/Ids.ts"
import { ImageVersion } from "#schema/Image.ts"
import type { RepoFile } from "#src/choird/repos/Tree.ts"
import { CgroupName } from "./Cgroups.ts"
import type { ContainerLimits } from "./cgroupFiles.ts"
import { ProcessIdentity } from "./ProcessIdentity.ts"
import { MIB } from "#src/shared/text/bytesText.ts"

/** Time that the host or the engine may take to report the condition of a silent agent's container. */
export const AGENT_INSPECT_MS_MAX = 1000

/** The limits of a container's /tmp, /run and /dev/shm, in bytes. */
export const CONTAINER_TMP_BYTES_MAX = 256 * MIB
export const CONTAINER_RUN_BYTES_MAX = 16 * MIB
export const CONTAINER_SHM_BYTES_MAX = 64 * MIB

/** In the folder of a session's socket, the one certificate that its agent trusts. */
export const CA_FILE = "ca.pem"

/** In the same folder, the names of the user as whom the agent runs, for a runtime that mounts them over files of /etc. */
export const NAME_FILES = { passwd: "passwd", group: "group" } as const

/** The endpoint that an agent uses instead of its socket. */
export interface AgentEndpoint {
  /** `https://host:port`, or `http://` on loopback. */
  readonly url: string
  /** Whether the agent is to trust the certificate in CA_FILE and no other. */
  readonly pinned: boolean
}

/** One start of one agent. All paths are absolute host paths. */
export interface ContainerSpec {
  readonly agent_id: AgentId
  /** No other agent of this home ever has it; a runtime that gives agents uids of their own makes them of it. */
  readonly agent_number: number
  readonly session_id: SessionId
  readonly epoch: number
  readonly image_version: ImageVersion
  /** Folder that holds `choir/` (tools, skills, identity, version.json), readable by everyone who can reach it. */
  readonly image: string
  /** The agent's bundle, one file of JavaScript, readable by everyone who can reach it. */
  readonly program: string
  readonly node: string
  /** The ripgrep program. */
  readonly rg: string
  /** Folder that holds this session's `choird.sock`, the certificate of an endpoint, NAME_FILES, and nothing else (D10). */
  readonly socket_dir: string
  /** The agent asks here instead of the socket. */
  readonly endpoint?: AgentEndpoint
  readonly workspace: string
  /** Single use; it reaches the agent by its environment and no other way (D12). */
  readonly bootstrap_token: Redacted.Redacted
  readonly limits: ContainerLimits
  /** Runs one trial (`schema/ContainedTrial.ts`) instead of the agent, beside the agent's own container if it has one. */
  readonly trial?: boolean
  /** Receives the reason when the start has to wait for something outside of choird. */
  readonly onWait?: (why: string) => Effect.Effect<void>
}

/** The sources of an image: the merged folder, and the files of both repositories that Dockerfiles may use. */
export interface ImageSource {
  readonly agent_id: AgentId
  readonly image_version: ImageVersion
  /** Folder that holds `choir/`. */
  readonly path: string
  /** Executables that the Dockerfiles make, relative to `choir/`; their manifests are in the folder. */
  readonly compiled: ReadonlyArray<string>
  /** Of the global repository: `Dockerfile.base` and what it may copy. */
  readonly base: ReadonlyArray<RepoFile>
  /** Of the agent's repository: `Dockerfile` and what it may copy. */
  readonly agent: ReadonlyArray<RepoFile>
  /** Rebuilds everything, even what exists already. */
  readonly force?: boolean
  /** Other versions of the agent that stay beside this one; what is neither is removed. */
  readonly keep?: ReadonlyArray<ImageVersion>
}

/** A container made of processes that choird itself started. */
export const HostContainerId = Schema.Struct({
  type: Schema.Literals(["sandbox", "process"]),
  /** Pids and start times mean nothing after a reboot. */
  boot_id: Schema.String.check(Schema.isMaxLength(64)),
  /** The started program, then (sandbox) the first process of its pid namespace, whose end is the end of all. */
  processes: Schema.Array(ProcessIdentity).check(Schema.isMaxLength(2)),
  cgroup: CgroupName,
  workspace: Schema.String.check(Schema.isMaxLength(4096))
})
export type HostContainerId = typeof HostContainerId.Type

/** A container of a Docker engine. */
export const DockerContainerId = Schema.Struct({
  type: Schema.Literal("docker"),
  container_id: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/u)),
  name: Schema.String.check(Schema.isPattern(/^[a-z0-9][a-z0-9.-]{0,127}$/u))
})
export type DockerContainerId = typeof DockerContainerId.Type

/** The identity by which a container of an earlier choird is found again. Plain JSON, for a row of the database. */
export const ContainerId = Schema.Union([HostContainerId, DockerContainerId])
export type ContainerId = typeof ContainerId.Type

/** The end of a container. */
export interface ContainerExit {
  /** Exit code, or `null` when a signal ended it. */
  readonly code: number | null
  readonly signal: string | null
  /** `killed` by the runtime; `setup_failed` before the agent's first instruction, `output` says why. */
  readonly reason: "exited" | "signalled" | "out_of_memory" | "killed" | "setup_failed"
}

/** The state of a container at one moment; `unknown` where neither the host nor the engine answers. */
export type Condition = "running" | "paused" | "gone" | "unknown"

export interface Container {
  readonly id: ContainerId
  /** Resolves within a second of the death (R7). */
  readonly exit: Effect.Effect<ContainerExit>
  /** Its condition as the host or the engine sees it, within AGENT_INSPECT_MS_MAX, independent of `exit` (E8). */
  readonly condition: Effect.Effect<Condition>
  /** Kills and waits until every process is gone. Idempotent; the scope of `start` does the same. */
  readonly kill: Effect.Effect<void, ContainerError>
  /**
   * Lines of stdout and stderr, for one reader; ends with the container. A slow reader never blocks the agent: lines are
   * dropped, and a line with their count takes their place. The text is the agent's and may hold anything.
   */
  readonly output: Stream.Stream<string>
}

/** A container that could not be started or ended. */
export class ContainerError extends Schema.TaggedError<ContainerError>()("ContainerError", {
  /** `unavailable`: the host lacks something. `refused`: the spec is unsafe. `failed`: a step failed. `stuck`: it does not die. */
  reason: Schema.Literals(["unavailable", "refused", "failed", "stuck"]),
  problem: Schema.String,
  /** The advice for an operator. */
  fix: Schema.String
}) {
  override get message() {
    return `${this.problem}. ${this.fix}`
  }
}

/** An image that could not be built; the agent keeps its earlier image. */
export class ImageBuildFailed extends Schema.TaggedError<ImageBuildFailed>()("ImageBuildFailed", {
  agent_id: AgentId,
  image_version: ImageVersion,
  problem: Schema.String,
  fix: Schema.String,
  /** The instruction that ran last, and the end of what it printed. */
  step: Schema.optionalKey(Schema.String),
  output: Schema.optionalKey(Schema.Array(Schema.String))
}) {
  override get message() {
    const step = this.step === undefined ? "" : ` at ${this.step}`
    const output = (this.output ?? []).map((line) => `\n  ${line}`).join("")
    return `the image of ${this.agent_id} could not be built${step}: ${this.problem}${output}`
  }
}

export interface RuntimeStatus {
  readonly type: "docker" | "sandbox" | "process"
  /** One sentence on what keeps an agent away from the host. */
  readonly isolation: string
  /** The limits that are enforced on this host. */
  readonly limits: { readonly cpus: boolean; readonly memory_mb: boolean; readonly pids: boolean }
  /** Sentences for an operator about weaknesses here that can be avoided. */
  readonly warnings: ReadonlyArray<string>
}

export class ContainerRuntime extends Context.Service<
  ContainerRuntime,
  {
    readonly type: RuntimeStatus["type"]
    /** Starts an agent. Closing the scope kills its container and waits until it is gone (R8). */
    start(spec: ContainerSpec): Effect.Effect<Container, ContainerError, Scope.Scope>
    /**
     * Lets a container that outlived an earlier choird reach its socket again, so that it can flush (D15). False for one that did not
     * outlive it, which no container of the host's own runtimes does.
     *
     * @param socket_dir where its session's socket is open again: the folder that the container has mounted.
     */
    adopt(id: ContainerId, socket_dir: string): Effect.Effect<boolean, ContainerError>
    /** Ends the containers of this installation that no row remembers. */
    sweep(remembered: ReadonlyArray<ContainerId>): Effect.Effect<void>
    /**
     * Ends what is left of a container that an earlier choird started with any runtime, and waits until it is gone. Never touches a
     * process that only has the same pid.
     */
    reap(id: ContainerId): Effect.Effect<void, ContainerError>
    /**
     * Makes what `start` needs from a built image folder, with a line of progress for each step. Quick, and false, when it is there
     * already; the host's own runtimes take the folder as it is.
     */
    buildImage(
      source: ImageSource,
      progress: (line: string) => Effect.Effect<void>
    ): Effect.Effect<boolean, ImageBuildFailed>
    /** Whether `start` would find this image. */
    hasImage(agent_id: AgentId, image_version: ImageVersion): Effect.Effect<boolean, ContainerError>
    /**
     * Deletes the contents of a workspace, whichever agent user owns the files, and keeps the folder. No link is followed and no other file
     * system entered (R41). The caller ensures that nobody works there. Fails, with the rest deleted, where a file cannot be deleted.
     * Refuses a workspace with one of `kept`, real paths, or a mount in it.
     */
    emptyWorkspace(path: string, kept: ReadonlyArray<string>): Effect.Effect<void, ContainerError>
    /** The isolation and the limits of this runtime on this host. */
    readonly status: Effect.Effect<RuntimeStatus>
  }
>()("choir/choird/ContainerRuntime") {}
