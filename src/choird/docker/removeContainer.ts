/** Ends a container of the engine for good. */
import { Effect, Schedule } from "effect"
import { ContainerError } from "#src/choird/runtime/ContainerRuntime.ts"
import { CONTAINER_GONE_MS_MAX, DOCKER_LOOK_MS } from "#src/shared/limits.ts"
import type { DockerEngine } from "./DockerEngine.ts"
import { DockerError } from "./DockerError.ts"

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
 * when there is none; fails with `stuck` when that takes longer than `ms_max`, in which the engine may be away for a while.
 */
export const removeContainer = Effect.fn("removeContainer")(function* (
  engine: DockerEngine["Service"],
  ref: string,
  ms_max: number = CONTAINER_GONE_MS_MAX
) {
  let last = "it is still there"
  yield* attempt(engine, ref).pipe(
    Effect.catch((error: DockerError) =>
      Effect.sync(() => {
        last = error.message
        return false
      })
    ),
    Effect.repeat({ until: (gone) => gone, schedule: Schedule.spaced(DOCKER_LOOK_MS) }),
    // A scope closes without interruption, in which a timeout would only wait.
    Effect.interruptible,
    Effect.timeoutOrElse({ duration: ms_max, orElse: () => Effect.fail(stuck(ref, last)) })
  )
})
