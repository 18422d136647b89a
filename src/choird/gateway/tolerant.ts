/** A gateway's patience: no absent database and no defect ends it. */
import { Cause, Effect, Schedule } from "effect"
import { awayIn, type DatabaseAway, databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { defectWords, logDefect } from "#src/shared/defects.ts"
import { ChannelFailed } from "./ChannelFailed.ts"

/** The first and the longest pause after a failed call (R44). */
export const CHANNEL_RETRY_MS = 1000
export const CHANNEL_RETRY_MS_MAX = 60_000

export const CHANNEL_RETRY = Schedule.min([
  Schedule.exponential(CHANNEL_RETRY_MS),
  Schedule.spaced(CHANNEL_RETRY_MS_MAX)
])

const tryLater = (description: string) =>
  Effect.fail(new ChannelFailed({ description: `choird: ${description}`, is_final: false, retry_after_ms: null }))

/** Turns an absent database or a defect into one more reason to try again later. The log has a defect in full, under its reference. */
export const tolerant = <A, E, R>(work: Effect.Effect<A, E | DatabaseAway, R>) =>
  databaseDefect(work).pipe(
    Effect.catchDefect((defect) => {
      const away = awayIn(Cause.die(defect))
      return away === undefined
        ? Effect.flatMap(logDefect("a gateway could not continue", defect), (ref) =>
            tryLater(defectWords("choird failed", ref))
          )
        : Effect.andThen(Effect.logWarning(`a gateway could not continue: ${away.message}`), tryLater(away.message))
    })
  )
