/**
 * Agents as containers of a Docker engine: the strong boundary of spec 15. A container has the closed profile and is looked at before
 * it starts; what differs is removed (R36). The engine may restart or be away, which is not the death of anybody.
 */
import { isIP } from "node:net"
import { Clock, Effect, Layer, Result, Schedule } from "effect"
import type { RuntimeConfig } from "#schema/Config.ts"
import { type ContainerParts, openContainer } from "#src/choird/docker/AgentContainer.ts"
import { type AgentNetwork, openNetwork } from "#src/choird/docker/AgentNetwork.ts"
import { type LookUp, makeAllowedHosts, NameLookUp } from "#src/choird/docker/AllowedHosts.ts"
import { containerUser } from "#src/choird/docker/containerUser.ts"
import { makeBakedVersions } from "#src/choird/docker/BakedVersions.ts"
import { watchContainers } from "#src/choird/docker/ContainerWatch.ts"
import { emptyInContainer } from "#src/choird/docker/EmptyingContainer.ts"
import { DockerEngine } from "#src/choird/docker/DockerEngine.ts"
import { DockerError, engineIsAway } from "#src/choird/docker/DockerError.ts"
import { DockerImages } from "#src/choird/docker/DockerImages.ts"
import { dockerProfile } from "#src/choird/docker/dockerProfile.ts"
import { HOME_LABEL } from "#src/choird/docker/imageNames.ts"
import { makeKnownFacts } from "#src/choird/docker/knownFacts.ts"
import { installationOf } from "#src/shared/dockerInstallation.ts"
import { removeContainer } from "#src/choird/docker/removeContainer.ts"
import { type EngineFacts, unmappedRoot } from "#src/shared/dockerInfo.ts"
import {
  DOCKER_AWAY_MS_MAX,
  DOCKER_RECONNECT_MS,
  DOCKER_STATUS_MS_MAX,
  REAPS_IN_FLIGHT_MAX
} from "#src/shared/limits.ts"
import { specError } from "./AgentCommand.ts"
import { makeUids } from "./AgentUids.ts"
import { Cgroups } from "./Cgroups.ts"
import { ContainerError, ContainerRuntime } from "./ContainerRuntime.ts"
import type { AgentEndpoint, ContainerSpec, RuntimeStatus } from "./ContainerRuntime.ts"
import { emptyWorkspace } from "./emptyWorkspace.ts"
import { giveSocket, giveWorkspace, letIn, realPath, workspaceProblem } from "./Ownership.ts"
import { reapWith } from "./reap.ts"

export interface DockerOptions {
  /** choird's home, as its real path; no workspace may hold it. */
  readonly home: string
  readonly config: RuntimeConfig
}

const choirdUser = () => ({ uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 })

const asContainerError = (error: DockerError | ContainerError): ContainerError =>
  error._tag === "ContainerError"
    ? error
    : new ContainerError({
        reason: engineIsAway(error) ? "unavailable" : "failed",
        problem: `${error.what}: ${error.detail}`,
        fix: error.fix
      })

/** Real paths of the two folders that a container mounts, or why they are refused. */
const resolveFolders = Effect.fnUntraced(function* (spec: ContainerSpec, home: string) {
  const refused = specError(spec)
  if (refused !== undefined) return yield* refused
  const workspace = yield* realPath(spec.workspace)
  const socket_dir = yield* realPath(spec.socket_dir)
  const problem = workspaceProblem(workspace, [home, socket_dir, yield* realPath(spec.image)])
  if (problem === undefined) return { workspace, socket_dir }
  return yield* new ContainerError({
    reason: "refused",
    problem: `the workspace ${workspace} ${problem}`,
    fix: "Give the agent a folder of its own in config.json"
  })
})

const LOOPBACK = /^(?:127\.|localhost$|\[::1\]$)/u

/** The port that a container has to reach on this host. choird's loopback is not the container's. */
const endpointPort = (endpoint: AgentEndpoint | undefined) =>
  Effect.suspend(() => {
    if (endpoint === undefined) return Effect.undefined
    const { hostname, port, protocol } = new URL(endpoint.url)
    if (LOOPBACK.test(hostname))
      return new ContainerError({
        reason: "refused",
        problem: `an agent in a container cannot reach ${endpoint.url}`,
        fix: "Let transport.http listen on an address of this host that is not loopback, with a certificate for it"
      })
    return Effect.succeed(port === "" ? (protocol === "https:" ? 443 : 80) : Number(port))
  })

/** How the name in an endpoint is told to a container that may not ask; it is choird's own, wherever it leads. */
const endpointHosts = (look_up: LookUp, endpoint: AgentEndpoint | undefined) => {
  const hostname = endpoint === undefined ? "" : new URL(endpoint.url).hostname
  return hostname === "" || isIP(hostname.replaceAll(/[[\]]/gu, "")) !== 0
    ? Effect.succeed([])
    : Effect.map(look_up(hostname), (addresses) => addresses.map((address) => `${hostname}:${address}`))
}

/** Waits for an engine that is away: it may be restarting, and nothing about the agent is wrong. */
const patient = <A, E>(ask: Effect.Effect<A, E | DockerError>) =>
  ask.pipe(
    Effect.retry({
      while: (error) => error instanceof DockerError && engineIsAway(error),
      schedule: Schedule.spaced(DOCKER_RECONNECT_MS)
    }),
    Effect.timeoutOrElse({
      duration: DOCKER_AWAY_MS_MAX,
      orElse: () =>
        new ContainerError({
          reason: "unavailable",
          problem: `the Docker engine did not answer for ${DOCKER_AWAY_MS_MAX / 60_000} minutes`,
          fix: "Start the engine: systemctl start docker"
        })
    })
  )

const rootSentence = ({ root }: EngineFacts) => {
  switch (root.type) {
    case "rootless":
      return "its root is the user of the engine"
    case "remapped":
      return `its root is uid ${root.uid} of this host`
    case "none":
      return "it has no user namespace and runs under an ordinary uid"
  }
}

const statusOf = (facts: EngineFacts, more: ReadonlyArray<string>): RuntimeStatus => {
  const unmapped = unmappedRoot(facts)
  return {
    type: "docker",
    isolation: `Each agent is in a container of Docker ${facts.version} without capabilities; ${rootSentence(facts)}.`,
    limits: facts.limits,
    warnings: [
      ...(unmapped === undefined ? [] : [`${unmapped.problem}. Better: ${unmapped.fix}`]),
      ...(facts.seccomp ? [] : ["The Docker engine has no system call filter."]),
      ...Object.entries(facts.limits).flatMap(([name, works]) =>
        works ? [] : [`${name} is not enforced by this Docker engine.`]
      ),
      ...more
    ]
  }
}

/** Ends what no session's row remembers: containers of this installation alone. */
const removeOrphans = Effect.fnUntraced(function* (engine: DockerEngine["Service"], id: string) {
  const found = yield* engine.use("the engine's containers could not be listed", (docker, abortSignal) =>
    docker.listContainers({ all: true, filters: JSON.stringify({ label: [`${HOME_LABEL}=${id}`] }), abortSignal })
  )
  if (found.length > 0) yield* Effect.logInfo(`${found.length} containers of an earlier choird are removed`)
  yield* Effect.forEach(found, ({ Id }) => Effect.ignore(removeContainer(engine, Id), { log: true }), {
    concurrency: REAPS_IN_FLIGHT_MAX,
    discard: true
  })
})

interface Parts extends ContainerParts {
  readonly network: AgentNetwork
}

/** Gives the container's user the folders, and says as whom the agent runs inside. */
const makeHandOver = (config: RuntimeConfig) => {
  const uids = makeUids()
  return Effect.fnUntraced(function* (
    facts: EngineFacts,
    spec: ContainerSpec,
    { socket_dir, workspace }: { readonly socket_dir: string; readonly workspace: string }
  ) {
    const user = containerUser(facts.root, choirdUser(), config.allow_unmapped_root)
    switch (user.type) {
      case "refused":
        return yield* new ContainerError({ reason: "refused", problem: "", fix: "", ...unmappedRoot(facts) })
      case "own":
        return undefined
      case "given":
        yield* giveWorkspace(user.uid, workspace)
        yield* giveSocket(user.uid, socket_dir)
        return undefined
      case "listed":
        yield* letIn(user.uid, socket_dir, workspace)
        return undefined
      case "unmapped": {
        if (user.user !== undefined) return `${user.user.uid}:${user.user.gid}`
        const uid = yield* uids(spec.agent_id)
        yield* giveWorkspace(uid, workspace)
        yield* giveSocket(uid, socket_dir)
        return `${uid}:${uid}`
      }
    }
  })
}

const make = Effect.fnUntraced(function* ({ config, home }: DockerOptions) {
  const cgroups = yield* Cgroups
  const engine = yield* DockerEngine
  const images = yield* DockerImages
  const installation = installationOf(home)
  const look_up = yield* NameLookUp
  yield* Effect.ignore(removeOrphans(engine, installation.id), { log: true })
  const parts: Parts = {
    engine,
    network: yield* openNetwork(engine, installation, {
      policy: config.network,
      allowed: makeAllowedHosts(look_up, config.allow)
    }),
    versions: makeBakedVersions(engine),
    watch: yield* watchContainers(engine, installation)
  }
  const facts = makeKnownFacts(engine, parts.watch)
  const handOver = makeHandOver(config)

  const start = Effect.fn("DockerRuntime.start")(function* (spec: ContainerSpec) {
    const folders = yield* resolveFolders(spec, home)
    const port = yield* endpointPort(spec.endpoint)
    const user = yield* handOver(yield* patient(facts), spec, folders)
    const { oci_runtime } = config
    const listed = yield* parts.network.hosts
    const hosts = listed === undefined ? undefined : [...listed, ...(yield* endpointHosts(look_up, spec.endpoint))]
    const profile = dockerProfile({ spec, installation, ...folders, user, oci_runtime, hosts })
    return yield* openContainer(parts, profile, spec.image, parts.network.ensure(port))
  }, Effect.mapError(asContainerError))

  const status = Effect.gen(function* () {
    const now_ms = yield* Clock.currentTimeMillis
    const asked = yield* Effect.result(Effect.timeout(engine.info, DOCKER_STATUS_MS_MAX))
    const since_ms = yield* parts.watch.away_since_ms
    const warnings = yield* parts.network.warnings
    const away = since_ms === undefined ? "" : ` since ${Math.round((now_ms - since_ms) / 1000)} s`
    if (Result.isSuccess(asked)) return statusOf(asked.success, warnings)
    return {
      type: "docker" as const,
      isolation: "Not known while the Docker engine is away.",
      limits: { cpus: false, memory_mb: false, pids: false },
      warnings: [`The Docker engine does not answer${away}: agents go on if they can, and none can be started.`]
    }
  })

  return ContainerRuntime.of({
    type: "docker",
    start,
    reap: reapWith(cgroups, engine),
    buildImage: images.build,
    hasImage: images.has,
    emptyWorkspace: Effect.fn("DockerRuntime.emptyWorkspace")(function* (path, kept) {
      const facts = yield* engine.info
      // Without a namespace an agent's uid is one of the host's, which choird is or is root over.
      if (facts.root.type === "none") return yield* emptyWorkspace(path, kept)
      const mapped = (folder: string) =>
        Effect.mapError(
          emptyInContainer(engine, parts.watch, installation, folder, config.oci_runtime),
          asContainerError
        )
      yield* emptyWorkspace(path, kept, mapped)
    }, Effect.mapError(asContainerError)),
    status
  })
})

export const layer = (
  options: DockerOptions
): Layer.Layer<ContainerRuntime, never, Cgroups | DockerEngine | DockerImages> =>
  Layer.effect(ContainerRuntime, make(options))
