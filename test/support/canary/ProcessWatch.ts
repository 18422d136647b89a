/** Reads what every process of the machine shows of itself, arguments and environment, also of those that live for milliseconds. */
import { Worker } from "node:worker_threads"
import { Effect } from "effect"

/** Where a text of a process was seen. */
export type Side = "host" | "container"

export interface Shown {
  readonly side: Side
  /** `/proc/<pid>/environ` or `/proc/<pid>/cmdline`, as it was. */
  readonly text: string
}

/**
 * A process is looked at in each of its first rounds, since its arguments and environment are those of its parent until it starts a
 * program. Environments stand in memory that a process may overwrite, so long-lived ones are read again now and then.
 */
const WATCHER = `
  const { readdirSync, readFileSync, readlinkSync } = require("node:fs")
  const { parentPort, workerData } = require("node:worker_threads")
  const { own, rounds, wait_ms, again } = workerData
  const control = new Int32Array(workerData.control)
  const host = readlinkSync("/proc/self/ns/pid")
  const seen = new Set()
  const ages = new Map()
  const read = (pid) => {
    let side
    for (const name of ["cmdline", "environ"]) {
      try {
        const text = readFileSync("/proc/" + pid + "/" + name, "latin1")
        if (text === "") continue
        side ??= readlinkSync("/proc/" + pid + "/ns/pid") === host ? "host" : "container"
        if (!seen.has(side + text)) { seen.add(side + text); parentPort.postMessage({ side, text: Buffer.from(text, "latin1").toString() }) }
      } catch {}
    }
  }
  const look = (all) => {
    const pids = new Set(readdirSync("/proc").filter((name) => name >= "1" && name < ":"))
    for (const pid of ages.keys()) if (!pids.has(pid)) ages.delete(pid)
    for (const pid of pids) {
      const age = ages.get(pid) ?? 0
      ages.set(pid, age + 1)
      if (pid !== own && (all || age < rounds || age % again === 0)) read(pid)
    }
  }
  while (Atomics.load(control, 0) === 0) { look(false); Atomics.wait(control, 0, 0, wait_ms) }
  look(true)
  parentPort.postMessage("over")
  parentPort.close()
`

/** Watches until the scope closes, or until it is asked what was seen. The test's own process is left out: it holds everything. */
export const watchProcesses = Effect.gen(function* () {
  const control = new Int32Array(new SharedArrayBuffer(4))
  const shown: Array<Shown> = []
  const worker = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const data = { own: String(process.pid), rounds: 20, wait_ms: 4, again: 500, control: control.buffer }
      return new Worker(WATCHER, { eval: true, workerData: data })
    }),
    (worker) => Effect.promise(() => worker.terminate())
  )
  worker.on("message", (message: Shown | "over") => {
    if (message !== "over") shown.push(message)
  })
  /** Reads all of them once more, and answers everything that was shown since the beginning. */
  const end = Effect.callback<ReadonlyArray<Shown>>((resume) => {
    worker.once("exit", () => resume(Effect.succeed(shown)))
    Atomics.store(control, 0, 1)
    Atomics.notify(control, 0)
  })
  return { end }
})
