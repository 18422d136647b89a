/** One container of the engine, from its making to its removal. */
import { Deferred, Effect, Schedule, Schema } from "effect"
import { makeOutput, outputQueue } from "#src/choird/runtime/ContainerOutput.ts"
import {
  AGENT_INSPECT_MS_MAX,
  type Condition,
  type Container,
  ContainerError,
  type ContainerExit
} from "#src/choird/runtime/ContainerRuntime.ts"
import { classifyExit, CONTAINER_STATUS_MS_MAX } from "#src/choird/runtime/HostContainer.ts"
import { conditionOf as processCondition } from "#src/choird/runtime/ProcessIdentity.ts"
import type { BakedVersions } from "./BakedVersions.ts"
import { followLog } from "./containerLog.ts"
import type { ContainerEnd, ContainerWatch, Watched } from "./ContainerWatch.ts"
import type { DockerEngine } from "./DockerEngine.ts"
import { dockerError } from "./DockerError.ts"
import type { Profile } from "./dockerProfile.ts"
import { InspectedContainer, profileDifferences } from "./profileDifferences.ts"
import { removeContainer } from "./removeContainer.ts"
import { DOCKER_RECONNECT_MS } from "./ContainerWatch.ts"
import { DOCKER_AWAY_MS_MAX } from "./earlierContainers.ts"

const decodeInspected = Schema.decodeUnknownEffect(InspectedContainer)

/** Makes it under its name, which whatever an earlier life of choird left there gives up first. */
export const createContainer = Effect.fnUntraced(function* (engine: DockerEngine["Service"], profile: Profile) {
  const make = engine.use(`the container ${profile.name} could not be created`, (docker, abortSignal) =>
    docker.createContainer({ ...profile, abortSignal })
  )
  return yield* make.pipe(
    Effect.catchIf(
      (error) => error.reason === "conflict",
      () => Effect.andThen(removeContainer(engine, profile.name), make)
    )
  )
})

/** Compares what was made with what was asked (R36), and answers the id of the image that it was made of. */
export const requireProfile = Effect.fnUntraced(function* (
  engine: DockerEngine["Service"],
  id: string,
  profile: Profile
) {
  const what = `the container ${profile.name} could not be looked at`
  const inspected = yield* engine
    .use(what, (docker, abortSignal) => docker.getContainer(id).inspect({ abortSignal }))
    .pipe(Effect.flatMap((text) => Effect.mapError(decodeInspected(text), (error) => dockerError(what, error))))
  const differences = profileDifferences(profile, inspected)
  if (differences.length === 0) return inspected.Image
  return yield* new ContainerError({
    reason: "refused",
    problem: `the Docker engine made another container than was asked for: ${differences.join("; ")}`,
    fix: "Take these settings out of the engine's configuration, or of the Dockerfile"
  })
})

const exitOf = ({ code, out_of_memory }: ContainerEnd, killed: boolean): ContainerExit =>
  classifyExit(
    { code, signal: code === null ? "SIGKILL" : null },
    { killed, oomKills: out_of_memory ? 1 : 0, ranAgent: undefined }
  )

/** While the engine is away only the process itself tells that it is gone. */
const untilDead = ({ away_since_ms }: ContainerWatch, watched: Watched) =>
  Effect.gen(function* () {
    return (
      (yield* away_since_ms) !== undefined &&
      watched.init !== undefined &&
      (yield* processCondition(watched.init)) === "gone"
    )
  }).pipe(Effect.repeat({ until: (dead) => dead, schedule: Schedule.spaced(DOCKER_RECONNECT_MS) }))

/** The engine's word; where it does not answer in time, that of the first process, if choird can see it. */
const conditionOf = (watch: ContainerWatch, id: string, watched: Watched): Effect.Effect<Condition> =>
  watch.look(id).pipe(
    Effect.timeout(AGENT_INSPECT_MS_MAX),
    Effect.catch(() => {
      const { init } = watched
      return init === undefined ? Effect.succeed("unknown" as const) : processCondition(init)
    })
  )

export interface ContainerParts {
  readonly engine: DockerEngine["Service"]
  readonly watch: ContainerWatch
  readonly versions: BakedVersions
}

/** Starts it; the scope kills it and removes it. `ready` is what must be there before it starts, and is made meanwhile. */
export const openContainer = Effect.fn("AgentContainer.open")(function* <E>(
  { engine, versions, watch }: ContainerParts,
  profile: Profile,
  image: string,
  ready: Effect.Effect<void, E>
) {
  const drained = Deferred.makeUnsafe<void>()
  let watched: Watched = { ended: Deferred.makeUnsafe(), init: undefined }
  let started = false
  let killed = false

  const end = Effect.fnUntraced(function* (id: string) {
    const { ended } = watched
    if (started && !(yield* Deferred.isDone(ended))) yield* Effect.ignore(watch.look(id))
    if (started && !(yield* Deferred.isDone(ended))) {
      killed = true
      const kill = engine.use("the container could not be killed", (docker, abortSignal) =>
        docker.getContainer(id).kill({ abortSignal } as object)
      )
      yield* Effect.ignore(kill)
    }
    // The log goes with the container; what stands in it is read first.
    if (started) yield* Effect.timeoutOption(Deferred.await(drained), CONTAINER_STATUS_MS_MAX)
    // Each side by itself: what stands in an interruptible region of a fiber that is being interrupted would not run at all.
    const dead = Effect.asVoid(Effect.interruptible(untilDead(watch, watched)))
    yield* Effect.raceFirst(removeContainer(engine, id, DOCKER_AWAY_MS_MAX), dead)
    yield* Deferred.succeed(ended, { code: null, out_of_memory: false })
  })

  const made = Effect.gen(function* () {
    const container = yield* Effect.acquireRelease(createContainer(engine, profile), ({ id }) =>
      Effect.catch(end(id), (error) => Effect.logError(error))
    )
    watched = yield* watch.watch(container.id)
    const image_id = yield* requireProfile(engine, container.id, profile)
    yield* versions.require(container, image_id, image)
    return container
  })
  const [container] = yield* Effect.all([made, ready], { concurrency: 2 })
  const { id } = container
  yield* engine.use(`the container ${profile.name} could not be started`, (_, abortSignal) =>
    container.start({ abortSignal })
  )
  started = true
  yield* watch.look(id)

  const output = makeOutput(yield* outputQueue)
  const follow = followLog(engine, id, output, Deferred.await(watched.ended))
  yield* Effect.forkScoped(Effect.ensuring(follow, Deferred.succeed(drained, undefined)))
  return {
    id: { type: "docker", container_id: id, name: profile.name },
    exit: Effect.map(Deferred.await(watched.ended), (ended) => exitOf(ended, killed)),
    condition: conditionOf(watch, id, watched),
    kill: end(id),
    output: output.lines
  } satisfies Container
})
