/** Who holds a home: one choird, one task on its database, or the restore that replaces it. */
import { join } from "node:path"
import { Effect } from "effect"
import { type LockHolder, lockHolder } from "./lockFile.ts"
import { socketAnswers } from "./socketAnswers.ts"

/** The lock of a home. */
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
