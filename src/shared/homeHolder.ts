/**
 * Who holds a home (wire.md, Host): an abstract Unix socket named by the hash of the home's real path.
 */
import { connect } from "node:net"
import { Effect } from "effect"
import { sha256 } from "./hashChain.ts"
import { HOME_LOCK_ANSWER_MS_MAX } from "./limits.ts"

/** @param home its real path. */
export const homeLockName = (home: string): string => `\0choird/${sha256(home)}`

/** Whether a choird holds the home, and the pid that it says of itself. */
export interface HomeHolder {
  readonly held: boolean
  readonly pid: number | null
}

/** Any user of the host can take a name, so that only digits are believed, and nothing is done to a pid for them alone. */
export const homeHolder = (home: string): Effect.Effect<HomeHolder> =>
  Effect.callback<HomeHolder>((resume) => {
    const socket = connect(homeLockName(home))
    const told = (holder: HomeHolder) => {
      socket.destroy()
      resume(Effect.succeed(holder))
    }
    socket.once("error", (error: NodeJS.ErrnoException) => told({ held: error.code !== "ECONNREFUSED", pid: null }))
    socket.once("end", () => told({ held: true, pid: null }))
    socket.once("data", (bytes) => {
      const digits = /^\d{1,10}$/u.exec(bytes.toString("latin1"))?.[0]
      told({ held: true, pid: digits === undefined ? null : Number(digits) })
    })
    return Effect.sync(() => socket.destroy())
  }).pipe(
    Effect.timeoutOrElse({
      duration: HOME_LOCK_ANSWER_MS_MAX,
      orElse: () => Effect.succeed({ held: true, pid: null })
    })
  )
