/** One container of the engine, from its creation to its removal. */
import { Context, Deferred, Effect, Schedule, Schema } from "effect"
import { logDeath } from "#src/shared/background.ts"
import { makeOutput } from "#src/choird/runtime/ContainerOutput.ts"
import {
  AGENT_INSPECT_MS_MAX,
  type Condition,
  type Container,
  ContainerError,
  type ContainerExit
} from "#src/choird/runtime/ContainerRuntime.ts"
import { classifyExit, CONTAINER_STATUS_MS_MAX } from "#src/choird/runtime/HostContainer.ts"
import { conditionOf as processCondition } from "#src/choird/runtime/ProcessIdentity.ts"
import { BakedVersions } from "./BakedVersions.ts"
import { followLog } from "./containerLog.ts"
import { type ContainerEnd, ContainerWatch, DOCKER_RECONNECT_MS, type Watched } from "./ContainerWatch.ts"
import { DockerEngine, dockerError } from "./DockerEngine.ts"
import type { Profile } from "./dockerProfile.ts"
import { InspectedContainer, profileDifferences } from "./profileDifferences.ts"
import { DOCKER_AWAY_MS_MAX, removeContainer } from "./removeContainer.ts"

const decodeInspected = Schema.decodeUnknownEffect(InspectedContainer)

/** Creates the container under its name; one that an earlier choird left under that name is removed first. */
export const createContainer = Effect.fnUntraced(function* (profile: Profile) {
  const engine = yield* DockerEngine
  const make = engine.use(`the container ${profile.name} could not be created`, (docker, abortSignal) =>
    docker.createContainer({ ...profile, abortSignal })
  )
  return yield* make.pipe(
    Effect.catchIf(
      (error) => error.reason === "conflict",
      () => Effect.andThen(removeContainer(profile.name), make)
    )
  )
})

/** Compares the container with its profile (R36), and returns the id of its image. */
export const requireProfile = Effect.fnUntraced(function* (id: string, profile: Profile) {
  const engine = yield* DockerEngine
  const what = `the container ${profile.name} could not be inspected`
  const inspected = yield* engine
    .use(what, (docker, abortSignal) => docker.getContainer(id).inspect({ abortSignal }))
    .pipe(Effect.flatMap((text) => Effect.mapError(decodeInspected(text), (error) => dockerError(what, error))))
  const differences = profileDifferences(profile, inspected)
  if (differences.length === 0) return inspected.Image
  return yield* new ContainerError({
    reason: "refused",
    problem: `the Docker engine made a container that differs from the request: ${differences.join("; ")}`,
    fix: "Take these settings out of the engine's configuration, or of the Dockerfile"
  })
})

const exitOf = ({ code, out_of_memory }: ContainerEnd, killed: boolean): ContainerExit =>
  classifyExit(
    { code, signal: code === null ? "SIGKILL" : null },
    { killed, oomKills: out_of_memory ? 1 : 0, ranAgent: undefined }
  )

/** Waits for the end of the first process, the only evidence while the engine is away. */
const untilDead = (watched: Watched) =>
  Effect.gen(function* () {
    const { away_since_ms } = yield* ContainerWatch
    return (
      (yield* away_since_ms) !== undefined &&
      watched.init !== undefined &&
      (yield* processCondition(watched.init)) === "gone"
    )
  }).pipe(Effect.repeat({ until: (dead) => dead, schedule: Schedule.spaced(DOCKER_RECONNECT_MS) }))

/** The condition as the engine reports it; where it does not answer in time, that of the first process, if choird can see it. */
const conditionOf = (id: string, watched: Watched): Effect.Effect<Condition, never, ContainerWatch> =>
  Effect.flatMap(ContainerWatch, ({ look }) => look(id)).pipe(
    Effect.timeout(AGENT_INSPECT_MS_MAX),
    Effect.catch(() => {
      const { init } = watched
      return init === undefined ? Effect.succeed("unknown" as const) : processCondition(init)
    })
  )

/** Starts a container; the scope kills and removes it. `ready` runs beside its creation and ends before its start. */
export const openContainer = Effect.fn("AgentContainer.open")(function* <E>(
  profile: Profile,
  image: string,
  ready: Effect.Effect<void, E>
) {
  const engine = yield* DockerEngine
  const watch = yield* ContainerWatch
  const versions = yield* BakedVersions
  const parts = Context.make(DockerEngine, engine).pipe(Context.add(ContainerWatch, watch))
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
    // The log is removed with the container, so it is read first.
    if (started) yield* Effect.timeoutOption(Deferred.await(drained), CONTAINER_STATUS_MS_MAX)
    // Each side by itself: an interruptible region of a fiber that is being interrupted would not run at all.
    const dead = Effect.asVoid(Effect.interruptible(untilDead(watched)))
    yield* Effect.raceFirst(removeContainer(id, DOCKER_AWAY_MS_MAX), dead)
    yield* Deferred.succeed(ended, { code: null, out_of_memory: false })
  }, Effect.provideContext(parts))

  const made = Effect.gen(function* () {
    const container = yield* Effect.acquireRelease(createContainer(profile), ({ id }) =>
      Effect.catch(end(id), (error) => Effect.logError(error))
    )
    watched = yield* watch.watch(container.id)
    const image_id = yield* requireProfile(container.id, profile)
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

  const output = yield* makeOutput
  const follow = followLog(id, output, Deferred.await(watched.ended))
  yield* follow.pipe(
    logDeath("the reader of a container's log"),
    Effect.ensuring(Deferred.succeed(drained, undefined)),
    Effect.forkScoped
  )
  return {
    id: { type: "docker", container_id: id, name: profile.name },
    exit: Effect.map(Deferred.await(watched.ended), (ended) => exitOf(ended, killed)),
    condition: Effect.provideService(conditionOf(id, watched), ContainerWatch, watch),
    kill: end(id),
    output: output.lines
  } satisfies Container
})
