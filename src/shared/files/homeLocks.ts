/** The locks of a home: of its holder, which is choird, a task on its database, or the restore that replaces it; and of a backup. */
import { join } from "node:path"
import { connect } from "node:net"
import { Effect } from "effect"
import { type LockHolder, lockHolder } from "./lockFile.ts"

/** The lock of the home's holder. */
export const homeLockPath = (home: string): string => join(home, "choird.lock")

/**
 * A choird of a version before lock files holds its home by a name that anybody can take, so that name proves nothing. The operator's
 * socket does: only the owner of the home can open it.
 */
export const earlierChoirdRuns = (home: string): Effect.Effect<boolean> =>
  socketAnswers(join(home, "socks", "choird.sock"))

export const homeHolder = Effect.fn("homeHolder")(function* (home: string) {
  const holder = yield* lockHolder(homeLockPath(home))
  if (holder.held || !(yield* earlierChoirdRuns(home))) return holder
  return { held: true, pid: null } satisfies LockHolder
})

/**
 * The lock of a backup that copies a home. While it is held, choird keeps the files of deleted archived sessions: the backup's copy of the
 * database may be older than the deletion, and then still names them.
 */
export const homeBackupLockPath = (home: string): string => join(home, "backup.lock")

export const homeBackupRuns = (home: string): Effect.Effect<boolean> =>
  Effect.map(lockHolder(homeBackupLockPath(home)), ({ held }) => held)

export const socketAnswers = (path: string): Effect.Effect<boolean> =>
  Effect.callback<boolean>((resume) => {
    const socket = connect(path)
    socket.once("connect", () => {
      socket.destroy()
      resume(Effect.succeed(true))
    })
    socket.once("error", () => resume(Effect.succeed(false)))
    return Effect.sync(() => socket.destroy())
  })
