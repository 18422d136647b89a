/** Races for whoever walks a workspace (R39). */
import { Worker } from "node:worker_threads"

/** Swaps the folder `send` and the file in it for links to the outside and back, until it is ended. */
const SWAPPER = `
  const { renameSync, symlinkSync, unlinkSync, workerData } = { ...require("node:fs"), ...require("node:worker_threads") }
  const { root, outside, swaps } = workerData
  const count = new Int32Array(swaps)
  let made = 0
  // Whoever walks may make the folder anew while it is away: then that one goes, whoever owns it, or nothing would be swapped any more.
  const putBack = (path) => {
    for (;;) {
      try { return renameSync(path + "-kept", path) } catch {}
      try { renameSync(path, path + "-made-" + made++) } catch {}
    }
  }
  const swap = (path, target) => {
    renameSync(path, path + "-kept")
    try {
      symlinkSync(target, path)
      unlinkSync(path)
    } finally {
      putBack(path)
    }
  }
  for (;;) {
    try { swap(root + "/send", outside) } catch {}
    try { swap(root + "/send/file", outside + "/file") } catch {}
    Atomics.add(count, 0, 2)
  }
`

/** Starts to swap; `count` says how often it did. */
export const startSwapper = (root: string, outside: string) => {
  const swaps = new SharedArrayBuffer(4)
  const worker = new Worker(SWAPPER, { eval: true, workerData: { root, outside, swaps } })
  const count = new Int32Array(swaps)
  return { count: () => Atomics.load(count, 0), stop: () => worker.terminate() }
}
