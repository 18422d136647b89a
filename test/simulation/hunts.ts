/** Searches for planted bugs in processes of their own, several bugs in each: limits and bugs are put in while modules load. */
import { execFile } from "node:child_process"
import { availableParallelism } from "node:os"
import { join } from "node:path"

/** Bugs of one process: each leaves 8 MB behind, its instances of the modules. */
const BUGS_MAX = 56
/** What a process prints at most, in bytes. */
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024
/** A larger nursery than Node's: what a step makes is dead before the next collection. */
export const NODE_FLAGS = ["--max-semi-space-size=32", "--disable-warning=ExperimentalWarning"]

export interface Hunted {
  readonly name: string
  /** The seed that found it; `undefined` when none did. */
  readonly seed: number | undefined
  /** What its process said of it. */
  readonly said: string
}

const huntThese = (
  names: ReadonlyArray<string>,
  args: ReadonlyArray<string>,
  signal: AbortSignal | undefined
): Promise<ReadonlyArray<Hunted>> =>
  new Promise((resolve) => {
    const main = [...NODE_FLAGS, join(import.meta.dirname, "main.ts"), "--mutant", names.join(","), ...args]
    // The compiled instances of the modules would fill the cache, and no other process has a use for them.
    const env = { ...process.env, ...(names.length > 1 ? { NODE_DISABLE_COMPILE_CACHE: "1" } : {}) }
    execFile(process.execPath, main, { env, signal, maxBuffer: OUTPUT_BYTES_MAX }, (error, stdout, stderr) => {
      const lines = stdout.split("\n")
      const ended = error === null ? "" : `${stderr}${error.signal ?? error.code}`
      resolve(
        names.map((name) => {
          const mine = lines.filter((line) => line.startsWith(`${name}: `)).join("\n")
          const seed = /: found by seed (?<seed>\d+)/u.exec(mine)?.groups?.["seed"]
          return { name, seed: seed === undefined ? undefined : Number(seed), said: mine === "" ? ended : mine }
        })
      )
    })
  })

/** Hunts for each of the bugs, in as many processes at once as there are cores. `args` are those of `--mutant`. */
export const hunts = async (
  names: ReadonlyArray<string>,
  args: ReadonlyArray<string>,
  signal?: AbortSignal
): Promise<ReadonlyArray<Hunted>> => {
  const each = Math.min(BUGS_MAX, Math.max(1, Math.ceil(names.length / availableParallelism())))
  const waiting = Array.from({ length: Math.ceil(names.length / each) }, (_, at) =>
    names.slice(at * each, (at + 1) * each)
  )
  const all: Array<Hunted> = []
  const work = async (): Promise<void> => {
    for (let some = waiting.shift(); some !== undefined; some = waiting.shift())
      all.push(...(await huntThese(some, args, signal)))
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
  return all
}
