/**
 * Work beside the rest of a program. Nobody waits for its end, so its death is logged with its name: a part that has stopped without a
 * word looks like one that has nothing to do.
 */
import { Cause, Effect, Schedule } from "effect"

/** The pauses before work that died begins again: doubled from the first to the last. */
const RESTART_MS_MIN = 1000
const RESTART_MS_MAX = 60_000

/** A fiber that is interrupted ends with its scope; everything else is a death. */
const isDeath = (cause: Cause.Cause<unknown>) => !Cause.hasInterruptsOnly(cause)

/** Logs the death of work that ends once; what it would still have done is left undone, and its caller continues. */
export const logDeath =
  (name: string) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.tapCauseIf(work, isDeath, (cause) => Effect.logError(`${name} died`, cause))

/** Runs a loop for as long as its scope is open: when it dies, that is logged and it begins again after a pause. */
export const restarted =
  (name: string) =>
  <A, E, R>(loop: Effect.Effect<A, E, R>): Effect.Effect<A, never, R> =>
    loop.pipe(
      logDeath(name),
      Effect.sandbox,
      Effect.retry({
        while: isDeath,
        schedule: Schedule.min([Schedule.exponential(RESTART_MS_MIN), Schedule.spaced(RESTART_MS_MAX)])
      }),
      Effect.catch((cause) => Effect.failCause(cause)),
      Effect.orDie
    )
