/** One change of config.json and secrets.json at a time: each reads the file, and writes it anew with what it adds. */
import { realpathSync } from "node:fs"
import { Effect, Schedule, Schema } from "effect"
import { holdName } from "./abstractName.ts"
import { sha256 } from "./hashChain.ts"
import { HOME_FILES_LOOK_MS, HOME_FILES_MS_MAX } from "./limits.ts"

/** Somebody else changes the files of this home and does not come to an end. */
export class HomeFilesBusy extends Schema.TaggedError<HomeFilesBusy>()("HomeFilesBusy", {
  home: Schema.String,
  problem: Schema.String
}) {
  override get message() {
    return `config.json and secrets.json of ${this.home} cannot be changed now: ${this.problem}. Try again when no other choirctl changes them`
  }
}

/** A home that is not there has nothing to keep apart: what is done says so itself. */
const nameOf = (home: string) =>
  Effect.option(
    Effect.map(
      Effect.try(() => realpathSync(home)),
      (real) => `\0choir-files/${sha256(real)}`
    )
  )

/**
 * Does work on the files of a home while nobody else of Choir's does, or what one of two wrote would be lost with the other's. Waits for
 * its turn, HOME_FILES_MS_MAX at most. Not to be nested.
 */
export const aloneWithFiles =
  (home: string) =>
  <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const name = yield* nameOf(home)
      if (name._tag === "None") return yield* work
      const waits = Schedule.spaced(HOME_FILES_LOOK_MS).pipe(Schedule.upTo({ duration: HOME_FILES_MS_MAX }))
      yield* holdName(name.value).pipe(
        Effect.retry({ while: ({ code }) => code === "EADDRINUSE", schedule: waits }),
        Effect.mapError(({ message }) => new HomeFilesBusy({ home, problem: message }))
      )
      return yield* work
    }).pipe(Effect.scoped)
