/** One choird per home (wire.md, Host). */
import { Effect, Runtime, Schema } from "effect"
import { holdName } from "#src/shared/abstractName.ts"
import { homeHolder, homeLockName } from "#src/shared/homeHolder.ts"

/** Another choird uses this home. */
export class HomeTaken extends Schema.TaggedError<HomeTaken>()("HomeTaken", {
  home: Schema.String,
  pid: Schema.NullOr(Schema.Natural)
}) {
  override readonly [Runtime.errorExitCode] = 75
  override get message() {
    const who = this.pid === null ? "" : ` (pid ${this.pid})`
    return `another choird runs in ${this.home}${who}: end it first (choirctl daemon stop), or choose another home with --home`
  }
}

export class HomeLockFailed extends Schema.TaggedError<HomeLockFailed>()("HomeLockFailed", {
  home: Schema.String,
  problem: Schema.String
}) {
  override get message() {
    return `${this.home} cannot be locked: ${this.problem}. choird needs Linux, for its abstract Unix sockets`
  }
}

/** Holds the home until the scope closes. @param home its real path. */
export const lockHome = Effect.fn("HomeLock.lock")(function* (home: string) {
  yield* holdName(homeLockName(home)).pipe(
    Effect.catch(
      Effect.fnUntraced(function* ({ code, message }) {
        if (code === "EADDRINUSE") return yield* new HomeTaken({ home, pid: (yield* homeHolder(home)).pid })
        return yield* new HomeLockFailed({ home, problem: message })
      })
    )
  )
})
