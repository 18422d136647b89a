/** The removal of containers from the engine: one for good, and those that an earlier choird left. */
import { Effect, Option, Result, Schema } from "effect"
import type { UserIds } from "#src/choird/runtime/agentUser.ts"
import { ContainerError, type ContainerId } from "#src/choird/runtime/ContainerRuntime.ts"
import { DockerEngine, engineIsAway } from "./DockerEngine.ts"
import { DOCKER_RECONNECT_MS } from "./ContainerWatch.ts"
import { type Cgroups, CONTAINER_GONE_MS_MAX } from "#src/choird/runtime/Cgroups.ts"
import { HOME_LABEL } from "./imageNames.ts"
import { reapTree } from "#src/choird/runtime/ProcessTree.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** Pause between two checks whether the Docker engine has removed a container. */
const DOCKER_LOOK_MS = 50

const stuck = (ref: string, detail: string) =>
  new ContainerError({
    reason: "stuck",
    problem: `the container ${ref} could not be removed: ${detail}`,
    fix: `Run: docker rm --force ${ref}`
  })

/** One attempt; true when the engine no longer knows the container. */
const attempt = Effect.fnUntraced(function* (ref: string) {
  const engine = yield* DockerEngine
  const what = `the container ${ref} could not be removed`
  yield* (
    engine
      .use(what, (docker, abortSignal) => docker.getContainer(ref).remove({ force: true, v: true, abortSignal }))
      // It is already gone, or another removal is under way.
      .pipe(
        Effect.catchIf(
          (error) => error.reason === "missing" || error.reason === "conflict",
          () => Effect.void
        )
      )
  )
  return yield* engine
    .use(what, (docker, abortSignal) => docker.getContainer(ref).inspect({ abortSignal }))
    .pipe(
      Effect.as(false),
      Effect.catchIf(
        (error) => error.reason === "missing",
        () => Effect.succeed(true)
      )
    )
})

/**
 * Kills a container, by its id or its name, and removes it with its volumes. Returns when the engine says that it is gone, at once
 * when it does not exist. Fails with `stuck` when an engine that answers still has it after CONTAINER_GONE_MS_MAX, or when the engine was
 * away for all of `away_ms_max`.
 */
export const removeContainer = Effect.fn("removeContainer")(function* (
  ref: string,
  away_ms_max: number = CONTAINER_GONE_MS_MAX
) {
  let last = "the engine does not answer"
  let answering_ms: number | undefined
  const remove = Effect.gen(function* () {
    for (;;) {
      const result = yield* Effect.result(attempt(ref))
      if (Result.isSuccess(result) && result.success) return
      const now_ms = yield* monotonicMs
      const away = Result.isFailure(result) && engineIsAway(result.failure)
      last = Result.isFailure(result) ? result.failure.detail : "it is still there"
      answering_ms = away ? undefined : (answering_ms ?? now_ms)
      if (answering_ms !== undefined && now_ms - answering_ms > CONTAINER_GONE_MS_MAX) return yield* stuck(ref, last)
      yield* Effect.sleep(away ? DOCKER_RECONNECT_MS : DOCKER_LOOK_MS)
    }
  })
  // A scope closes without interruption, in which a timeout would only wait.
  const limit_ms = away_ms_max + CONTAINER_GONE_MS_MAX
  yield* remove.pipe(
    Effect.interruptible,
    Effect.timeoutOrElse({ duration: limit_ms, orElse: () => Effect.fail(stuck(ref, last)) })
  )
})

/** Time that the start of an agent waits for an engine that is away, and the end of one for the engine that has its container. */
export const DOCKER_AWAY_MS_MAX = 600_000

/** Ends what is left of a container of an earlier choird, in the engine or among the processes of the host. */
export const reapContainer = (id: ContainerId): Effect.Effect<void, ContainerError, Cgroups | DockerEngine> =>
  id.type === "docker" ? removeContainer(id.container_id, DOCKER_AWAY_MS_MAX) : reapTree(id)

/** Containers of an earlier choird that are ended at once. */
export const REAPS_IN_FLIGHT_MAX = 4

/** Of `docker inspect`, what says whether a container runs, and as whom: choird always names a user by its ids. */
const Running = Schema.Struct({
  State: Schema.Struct({ Running: Schema.Literal(true) }),
  Config: Schema.Struct({ User: Schema.String.check(Schema.isPattern(/^[0-9]+:[0-9]+$/u)) })
})
const decodeRunning = Schema.decodeUnknownOption(Running)

const idsOf = ({ Config: { User } }: typeof Running.Type): UserIds => {
  const [uid = 0, gid = 0] = User.split(":").map(Number)
  return { uid, gid }
}

/** The user of a container, inside, if it is there and has not ended. */
export const runningUser = (container_id: string) =>
  Effect.flatMap(DockerEngine, ({ use }) =>
    use("a container of an earlier choird could not be inspected", (docker, abortSignal) =>
      docker.getContainer(container_id).inspect({ abortSignal })
    )
  ).pipe(
    Effect.map((answer) => Option.map(decodeRunning(answer), idsOf)),
    Effect.catchIf(
      (error) => error.reason === "missing",
      () => Effect.succeedNone
    )
  )

/** Removes the containers of this installation that no session's row remembers. */
export const removeOrphans = Effect.fnUntraced(function* (id: string, remembered: ReadonlyArray<ContainerId>) {
  const engine = yield* DockerEngine
  const found = yield* engine.use("the engine's containers could not be listed", (docker, abortSignal) =>
    docker.listContainers({ all: true, filters: JSON.stringify({ label: [`${HOME_LABEL}=${id}`] }), abortSignal })
  )
  const kept = new Set(remembered.map((known) => (known.type === "docker" ? known.container_id : undefined)))
  const orphans = found.filter(({ Id }) => !kept.has(Id))
  if (orphans.length > 0) yield* Effect.logInfo(`removing ${orphans.length} containers of an earlier choird`)
  yield* Effect.forEach(orphans, ({ Id }) => Effect.ignore(removeContainer(Id), { log: true }), {
    concurrency: REAPS_IN_FLIGHT_MAX,
    discard: true
  })
})
