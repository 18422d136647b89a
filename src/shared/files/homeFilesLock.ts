/** One change of config.json and secrets.json at a time: each reads the file, and writes it whole with its additions. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { holdLockFile } from "./lockFile.ts"

/** How long a change of config.json or secrets.json waits for an earlier one. */
const HOME_FILES_MS_MAX = 60_000

/** Another process is changing the files of this home and does not finish. */
export class HomeFilesBusy extends Schema.TaggedError<HomeFilesBusy>()("HomeFilesBusy", {
  home: Schema.String,
  problem: Schema.String
}) {
  override get message() {
    return `config.json and secrets.json of ${this.home} cannot be changed now: ${this.problem}. Try again when no other choirctl changes them`
  }
}

/**
 * Does work on the files of a home while no other process of Choir's does, or one of two changes would be lost. Waits for its turn,
 * HOME_FILES_MS_MAX at most, and ends when it loses the lock. Not to be nested. A home that is not there has nothing to keep apart: the
 * work fails by itself.
 */
export const withHomeFilesLock =
  (home: string) =>
  <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      if (!existsSync(home)) return yield* work
      const busy = Effect.mapError(({ message }: Error) => new HomeFilesBusy({ home, problem: message }))
      const { lost } = yield* busy(holdLockFile(join(home, "files.lock"), HOME_FILES_MS_MAX))
      return yield* Effect.raceFirst(work, busy(lost))
    }).pipe(Effect.scoped)
