/** One choird per home. */
import { Effect, Runtime, Schema } from "effect"
import { earlierChoirdRuns, homeLockPath } from "#src/shared/files/homeLocks.ts"
import { type HeldLock, holdLockFile } from "#src/shared/files/lockFile.ts"

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
    return `${this.home} cannot be locked: ${this.problem}. A home must be on a disk that choird's user may write to, with free space`
  }
}

/** The lock of the home is gone, so another choird may start there at any moment. */
export class HomeLost extends Schema.TaggedError<HomeLost>()("HomeLost", { home: Schema.String }) {
  override readonly [Runtime.errorExitCode] = 75
  override get message() {
    return `choird no longer holds ${this.home}: its lock file was removed or replaced, or the home was moved. choird is shutting down, so that no other choird uses the same home`
  }
}

/** Holds the home until the scope closes. The holder must end when the lock is lost. @param home its real path. */
export const lockHome = Effect.fn("HomeLock.lock")(function* (home: string) {
  const { lost }: HeldLock = yield* holdLockFile(homeLockPath(home)).pipe(
    Effect.catchTags({
      LockTaken: ({ pid }) => new HomeTaken({ home, pid }),
      LockUnusable: ({ message }) => new HomeLockFailed({ home, problem: message })
    })
  )
  if (yield* earlierChoirdRuns(home)) return yield* new HomeTaken({ home, pid: null })
  return { lost: Effect.mapError(lost, () => new HomeLost({ home })) }
})
