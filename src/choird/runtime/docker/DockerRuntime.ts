/**
 * Agents as containers of a Docker engine: the strongest boundary that Choir has. A container has the closed profile and is inspected before
 * it starts; one that differs is removed (R36). The engine may restart or be away, which ends no agent.
 */
import { isIP } from "node:net"
import { Context, Effect, Layer, Option, Result, Schedule } from "effect"
import type { RuntimeConfig } from "#schema/Config.ts"
import { isLoopback } from "#schema/Transport.ts"
import { hostOf, portOf } from "#src/shared/wire/hostPort.ts"
import { openContainer } from "./AgentContainer.ts"
import { AgentNetwork } from "./AgentNetwork.ts"
import { type LookUp, makeAllowedHosts, NameLookUp } from "./AllowedHosts.ts"
import { BakedVersions } from "./BakedVersions.ts"
import { ContainerWatch, DOCKER_RECONNECT_MS } from "./ContainerWatch.ts"
import { emptyInContainer } from "./EmptyingContainer.ts"
import { asContainerError, DockerEngine, DockerError, engineIsAway, engineLate } from "./DockerEngine.ts"
import { DockerImages } from "./DockerImages.ts"
import { giveInContainer } from "./GivingContainer.ts"
import { needsNames, writeNames } from "./userNames.ts"
import { dockerProfile } from "./dockerProfile.ts"
import { installationOf } from "#src/shared/docker/dockerInstallation.ts"
import { DOCKER_AWAY_MS_MAX, reapContainer, removeOrphans, runningUser } from "./removeContainer.ts"
import { type EngineFacts, unmappedRoot } from "#src/shared/docker/dockerInfo.ts"
import { sharedUid } from "#src/shared/docker/agentUids.ts"
import { specError } from "#src/choird/runtime/AgentCommand.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import {
  type AgentEndpoint,
  ContainerError,
  type ContainerId,
  ContainerRuntime,
  type ContainerSpec,
  type RuntimeStatus
} from "#src/choird/runtime/ContainerRuntime.ts"
import { emptyWorkspace } from "#src/choird/runtime/emptyWorkspace.ts"
import { agentUser, giveSocketTo, type HandOver } from "#src/choird/runtime/agentUser.ts"
import { realPath, workspaceProblem } from "#src/choird/runtime/Ownership.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** Time that `status` and `auto` wait for the Docker engine. */
const DOCKER_STATUS_MS_MAX = 2000

export interface DockerOptions {
  /** choird's home, as its real path; no workspace may hold it. */
  readonly home: string
  readonly config: RuntimeConfig
}

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
    fix: "Give the agent its own folder in config.json"
  })
})

/** The port that a container has to reach on this host. choird's loopback is not the container's. */
const endpointPort = (endpoint: AgentEndpoint | undefined) =>
  Effect.suspend(() => {
    if (endpoint === undefined) return Effect.undefined
    const url = new URL(endpoint.url)
    if (isLoopback(hostOf(url)))
      return new ContainerError({
        reason: "refused",
        problem: `an agent in a container cannot reach ${endpoint.url}`,
        fix: "Let transport.http listen on an address of this host that is not loopback, with a certificate for it"
      })
    return Effect.succeed(portOf(url))
  })

/**
 * The lines of /etc/hosts for the name in an endpoint, for a container that may not ask for names. The name is choird's own, so any address
 * is allowed.
 */
const endpointHosts = (look_up: LookUp, endpoint: AgentEndpoint | undefined) => {
  const host = endpoint === undefined ? "" : hostOf(new URL(endpoint.url))
  return host === "" || isIP(host) !== 0
    ? Effect.succeed([])
    : Effect.map(look_up(host), (addresses) => addresses.map((address) => `${host}:${address}`))
}

/** Retries while the engine is away: it may be restarting, and nothing about the agent is wrong. */
const patient = <A, E, R>(ask: Effect.Effect<A, E | DockerError, R>, { onWait = () => Effect.void }: ContainerSpec) =>
  ask.pipe(
    Effect.tapError((error) =>
      error instanceof DockerError && engineIsAway(error)
        ? onWait(`it waits for the Docker engine, which does not answer. ${error.fix}`)
        : Effect.void
    ),
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
      return "its root user is the user that runs the engine"
    case "remapped":
      return `its root user is uid ${root.uid} on this host`
    case "none":
      return "it has no user namespace and agents run as ordinary users"
  }
}

const SHARED_UID = "A path or a setuid file of one agent that another one reaches opens its files"

const statusOf = (facts: EngineFacts, more: ReadonlyArray<string>): RuntimeStatus => {
  const unmapped = unmappedRoot(facts)
  const shared = sharedUid(facts, process.getuid?.() ?? 0)
  return {
    type: "docker",
    isolation: `Each agent is in a container of Docker ${facts.version} without capabilities; ${rootSentence(facts)}, and ${shared === undefined ? "each agent has a uid of its own" : "agents share a uid"}.`,
    limits: facts.limits,
    warnings: [
      ...(unmapped === undefined ? [] : [`${unmapped.problem}. Better: ${unmapped.fix}`]),
      ...(shared === undefined ? [] : [`${SHARED_UID}: ${shared.problem}. Better: ${shared.fix}`]),
      ...(facts.seccomp ? [] : ["The Docker engine has no system call filter."]),
      ...Object.entries(facts.limits).flatMap(([name, works]) =>
        works ? [] : [`${name} is not enforced by this Docker engine.`]
      ),
      ...more
    ]
  }
}

/**
 * The engine's facts, asked for once for each connection to its events. A connection ends with the engine, and the next engine may map
 * users in another way (R38): without a connection the engine is asked each time.
 */
export const makeEngineFacts = Effect.map(Effect.all([DockerEngine, ContainerWatch]), ([engine, watch]) => {
  let known: { readonly connection: number; readonly facts: EngineFacts } | undefined
  return Effect.gen(function* () {
    const connection = yield* watch.connection
    if (known !== undefined && known.connection === connection) return known.facts
    const facts = yield* engine.info
    known = connection !== undefined && connection === (yield* watch.connection) ? { connection, facts } : undefined
    return facts
  })
})

/** The status of the engine, which may be away. */
const status = Effect.gen(function* () {
  const engine = yield* DockerEngine
  const network = yield* AgentNetwork
  const watch = yield* ContainerWatch
  const now_ms = yield* monotonicMs
  const asked = yield* Effect.result(
    Effect.timeoutOrElse(engine.info, {
      duration: DOCKER_STATUS_MS_MAX,
      orElse: () => Effect.fail(engineLate("the Docker engine's status", DOCKER_STATUS_MS_MAX))
    })
  )
  const since_ms = yield* watch.away_since_ms
  const warnings = yield* network.warnings
  const away = since_ms === undefined ? "" : ` since ${Math.round((now_ms - since_ms) / 1000)} s`
  if (Result.isSuccess(asked)) return statusOf(asked.success, warnings)
  return {
    type: "docker" as const,
    isolation: "Unknown while the Docker engine does not answer.",
    limits: { cpus: false, memory_mb: false, pids: false },
    warnings: [
      `The Docker engine does not answer${away}: running agents continue if they can, and none can be started. ${asked.failure.fix}.`
    ]
  }
})

/** Empties a workspace as root of the agent's namespace, if it has one. */
const emptyAnyhow = Effect.fn("DockerRuntime.emptyWorkspace")(function* (
  { config, home }: DockerOptions,
  path: string,
  kept: ReadonlyArray<string>
) {
  const engine = yield* DockerEngine
  const facts = yield* engine.info
  // Without a namespace an agent's uid is one of the host's, which choird is or is root over.
  if (facts.root.type === "none") return yield* emptyWorkspace(path, kept)
  const context = Context.pick(ContainerWatch, DockerEngine)(yield* Effect.context<ContainerWatch | DockerEngine>())
  const mapped = (folder: string) =>
    emptyInContainer(installationOf(home), folder, config.oci_runtime).pipe(
      Effect.mapError(asContainerError),
      Effect.provideContext(context)
    )
  yield* emptyWorkspace(path, kept, mapped)
}, Effect.mapError(asContainerError))

const make = Effect.fnUntraced(function* (options: DockerOptions) {
  const { config, home } = options
  const context = Context.pick(
    AgentNetwork,
    Cgroups,
    DockerEngine,
    ContainerWatch,
    BakedVersions
  )(yield* Effect.context<AgentNetwork | Cgroups | DockerEngine | ContainerWatch | BakedVersions>())
  const engine = yield* DockerEngine
  const images = yield* DockerImages
  const network = yield* AgentNetwork
  const look_up = yield* NameLookUp
  const installation = installationOf(home)
  const facts = yield* makeEngineFacts
  const handOver: HandOver = (workspace, user) =>
    giveInContainer(installation, workspace, user, config.oci_runtime).pipe(
      Effect.mapError(asContainerError),
      Effect.provideContext(context)
    )

  const start = Effect.fn("DockerRuntime.start")(
    function* (spec: ContainerSpec) {
      const folders = yield* resolveFolders(spec, home)
      const port = yield* endpointPort(spec.endpoint)
      const agent = yield* agentUser(config, yield* patient(facts, spec), spec.agent_number, handOver)
      const { giveSocket, giveWorkspace, user } = agent
      const { oci_runtime } = config
      const listed = yield* network.hosts
      const hosts = listed === undefined ? undefined : [...listed, ...(yield* endpointHosts(look_up, spec.endpoint))]
      if (needsNames(user)) yield* writeNames(user, folders.socket_dir)
      const profile = dockerProfile({ spec, installation, ...folders, user, oci_runtime, hosts })
      const given = Effect.andThen(giveWorkspace(folders.workspace), giveSocket(folders.socket_dir))
      const ready = Effect.all([given, network.ensure(port)], { concurrency: 2, discard: true })
      // The next attempt removes a container that an attempt left in an engine that went away.
      return yield* patient(openContainer(profile, spec.image, ready), spec)
    },
    Effect.mapError(asContainerError),
    Effect.provideContext(context)
  )

  const adopt = Effect.fn("DockerRuntime.adopt")(
    function* (id: ContainerId, socket_dir: string) {
      if (id.type !== "docker") return false
      const user = yield* runningUser(id.container_id)
      if (Option.isNone(user)) return false
      // Not the workspace, which is the agent's since its start: choird must not walk there beside it.
      yield* giveSocketTo(yield* engine.info, user.value, yield* realPath(socket_dir))
      return true
    },
    Effect.mapError(asContainerError),
    Effect.provideContext(context)
  )

  return ContainerRuntime.of({
    type: "docker",
    start,
    adopt,
    sweep: (remembered) =>
      Effect.ignore(Effect.provideContext(removeOrphans(installation.id, remembered), context), { log: true }),
    reap: (id) => Effect.provideContext(reapContainer(id), context),
    buildImage: images.build,
    hasImage: images.has,
    emptyWorkspace: (path, kept) => Effect.provideContext(emptyAnyhow(options, path, kept), context),
    status: Effect.provideContext(status, context)
  })
})

export const layer = (
  options: DockerOptions
): Layer.Layer<ContainerRuntime, never, Cgroups | DockerEngine | DockerImages> => {
  const { config, home } = options
  const installation = installationOf(home)
  const network = Effect.map(NameLookUp, (look_up) =>
    AgentNetwork.layer(installation, { policy: config.network, allowed: makeAllowedHosts(look_up, config.allow) })
  )
  return Layer.effect(ContainerRuntime, make(options)).pipe(
    Layer.provide([ContainerWatch.layer(installation), BakedVersions.layer, Layer.unwrap(network)])
  )
}
