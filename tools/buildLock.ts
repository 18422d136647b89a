/**
 * One build at a time in a checkout. The lock is an abstract Unix socket: the kernel frees it when its process ends, however
 * that happens, so no file is left that somebody would have to judge and delete.
 */
import { hash } from "node:crypto"
import { once } from "node:events"
import { realpathSync } from "node:fs"
import { connect, createServer } from "node:net"
import { setTimeout } from "node:timers/promises"

/** How long a build waits for another one. */
const BUILD_WAIT_MS_MAX = 300_000
const RETRY_MS = 20

const listens = (name: string): Promise<boolean> =>
  new Promise((resolve, reject) => {
    // Everybody who connects learns who builds, and that the build is over when the connection ends.
    const server = createServer((waiting) => {
      waiting.on("error", () => undefined).unref()
      waiting.write(String(process.pid))
    })
    server.unref()
    server.once("listening", () => resolve(true))
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(false) : reject(error)
    )
    server.listen(`\0${name}`)
  })

/** Waits for the end of the build that holds the lock; `onHolder` hears its process id. */
const waitForHolder = async (name: string, ms: number, onHolder: (pid: string) => void) => {
  const signal = AbortSignal.timeout(Math.ceil(ms))
  const holder = connect(`\0${name}`)
  holder.once("data", (pid) => onHolder(String(pid)))
  try {
    await once(holder, "close", { signal })
  } catch {
    // The holder has just ended, or the time is up: the caller looks again.
  } finally {
    holder.destroy()
  }
}

/** Holds the lock until this process ends; `onWait` hears whom it waits for. */
export const lockBuild = async (root: string, onWait: (pid: string) => void): Promise<void> => {
  const name = `choir-build-${hash("sha256", realpathSync(root))}`
  const until = performance.now() + BUILD_WAIT_MS_MAX
  let holder: string | undefined
  while (!(await listens(name))) {
    const left = until - performance.now()
    if (left <= 0)
      throw new Error(
        `the build in process ${holder ?? "unknown"} has not ended for ${BUILD_WAIT_MS_MAX / 60_000} minutes`
      )
    await waitForHolder(name, left, (pid) => {
      if (pid !== holder) onWait(pid)
      holder = pid
    })
    await setTimeout(RETRY_MS)
  }
}
