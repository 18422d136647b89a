/** P6, choird's half: until it is ready on an existing home, and what it and one idle agent take of memory. */
import { readdirSync, readFileSync } from "node:fs"
import { Effect } from "effect"
import { makeInstallation, type InstallationOptions } from "../test/support/installation.ts"
import { onPostgres } from "./postgres.ts"
import { atMost, median, type Row } from "./Row.ts"

const STARTS = 5
const IDLE_MS = 3000

/** Pages that a process and its descendants take, shared ones by their share, in MiB. */
const pss = (root: number): number => {
  const parents = new Map<number, number>()
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/u.test(name)) continue
    const stat = read(`/proc/${name}/stat`)
    parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]))
  }
  const belongs = (pid: number): boolean => pid === root || (pid > 1 && belongs(parents.get(pid) ?? 0))
  const kib = [...parents.keys()]
    .filter(belongs)
    .map((pid) => Number(/^Pss:\s+(\d+) kB/mu.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0))
  return kib.reduce((total, each) => total + each, 0) / 1024
}

/** The text of a file of /proc; empty for a process that ended meanwhile. */
const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}

const measure = Effect.fnUntraced(function* (name: string, options: Partial<InstallationOptions>, ready_ms: number) {
  const choir = yield* makeInstallation({ endpoint: "http://127.0.0.1:9/v1", ...options })
  const timed = Effect.scoped(
    Effect.gen(function* () {
      const before = performance.now()
      yield* choir.start
      return performance.now() - before
    })
  )
  yield* timed
  const starts: Array<number> = []
  for (let start = 0; start < STARTS; start++) starts.push(yield* timed)
  const memory = yield* Effect.scoped(
    Effect.gen(function* () {
      const choird = yield* choir.start
      yield* choir.build
      yield* choir.api.agents.start({ params: choir.params, payload: {} })
      yield* Effect.sleep(IDLE_MS)
      return pss(choird.pid)
    })
  )
  return [
    atMost("P6", `choird ready, ${name}`, median(starts), "ms", ready_ms),
    atMost("P6", `choird and one idle agent, ${name}`, memory, "MiB PSS", 280)
  ]
}, Effect.scoped)

export const startup: Effect.Effect<ReadonlyArray<Row>, unknown> = Effect.gen(function* () {
  const server = yield* onPostgres("P6", (options) => measure("Postgres", options, 1000))
  return [...server, ...(yield* measure("embedded", {}, 1500))]
})
