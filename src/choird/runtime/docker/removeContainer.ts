/** Ends a container of the engine for good. */
import { Clock, Effect, Result } from "effect"
import { ContainerError } from "#src/choird/runtime/ContainerRuntime.ts"
import type { DockerEngine } from "./DockerEngine.ts"
import { engineIsAway } from "./DockerError.ts"
import { DOCKER_RECONNECT_MS } from "./ContainerWatch.ts"
import { CONTAINER_GONE_MS_MAX } from "#src/choird/runtime/Cgroups.ts"

/** Between two looks at whether the Docker engine has done, or can do again, what it was asked. */
const DOCKER_LOOK_MS = 50

const stuck = (ref: string, detail: string) =>
  new ContainerError({
    reason: "stuck",
    problem: `the container ${ref} could not be removed: ${detail}`,
    fix: `Run: docker rm --force ${ref}`
  })

/** Asks once; true when the engine knows of no such container any more. */
const attempt = Effect.fnUntraced(function* (engine: DockerEngine["Service"], ref: string) {
  const what = `the container ${ref} could not be removed`
  yield* (
    engine
      .use(what, (docker, abortSignal) => docker.getContainer(ref).remove({ force: true, v: true, abortSignal }))
      // It is gone already, or another removal is under way.
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
 * when there is none. Fails with `stuck` when an engine that answers still has it after CONTAINER_GONE_MS_MAX, or when the engine was
 * away for all of `away_ms_max`.
 */
export const removeContainer = Effect.fn("removeContainer")(function* (
  engine: DockerEngine["Service"],
  ref: string,
  away_ms_max: number = CONTAINER_GONE_MS_MAX
) {
  let last = "the engine does not answer"
  let answering_ms: number | undefined
  const remove = Effect.gen(function* () {
    for (;;) {
      const result = yield* Effect.result(attempt(engine, ref))
      if (Result.isSuccess(result) && result.success) return
      const now_ms = yield* Clock.currentTimeMillis
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
