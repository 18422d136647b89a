/** What the command line asks for: seeds in this process or in several, a mutant's hunt, or the regressions. */
import { execFileSync, spawn } from "node:child_process"
import { availableParallelism } from "node:os"
import { createInterface } from "node:readline"
import { setImmediate } from "node:timers/promises"
import { FAULT_KINDS, type FaultKind } from "./Faults.ts"
import type { Mutant } from "./Mutant.ts"
import { REGRESSIONS } from "./regressions.ts"
import { shrink } from "./shrink.ts"
import { type Options, type Outcome, simulate } from "./simulate.ts"
import { hasContracts, hasTriggers } from "./skills.ts"

export interface Values {
  readonly seeds: string
  readonly from: string
  readonly step: string
  readonly mode?: string | undefined
  readonly without: string
  readonly trace: boolean
  readonly workers?: string | undefined
  readonly fresh?: string | undefined
  readonly regressions: boolean
}

/** Seeds between two lines of progress. */
const PROGRESS_SEEDS = 100
/** How long a fresh seed of a mutant goes on. */
const FRESH_S = 45
/** A child's line that says how one seed went. */
export const RESULT = "#seed"

const optionsOf = ({ mode, trace, without }: Values): Options => {
  const names = without === "" ? [] : without.split(",")
  const unknown = names.find((name) => !FAULT_KINDS.some((kind) => kind === name))
  if (unknown !== undefined) throw new Error(`there is no fault ${unknown}; there are ${FAULT_KINDS.join(", ")}`)
  if (mode !== undefined && mode !== "safety" && mode !== "liveness") throw new Error(`there is no mode ${mode}`)
  return { without: names as ReadonlyArray<FaultKind>, trace, ...(mode === undefined ? {} : { mode }) }
}

const commit = (): string => {
  const git = (...args: ReadonlyArray<string>) => execFileSync("git", args, { encoding: "utf8", stdio: "pipe" }).trim()
  try {
    return `${git("rev-parse", "HEAD")}${git("status", "--porcelain") === "" ? "" : " with local changes"}`
  } catch {
    return "unknown"
  }
}

export const print = (text: string) => process.stdout.write(`${text}\n`)

/** Everything that is needed to see a failure again and to understand it. */
const report = (failed: Outcome, options: Options, mutant: string | undefined): void => {
  const { options: fewest, outcome } = shrink(failed, options)
  const without = fewest.without ?? []
  const flags = [
    `--seeds 1 --from ${failed.seed} --mode ${failed.mode}`,
    ...(without.length === 0 ? [] : [`--without ${without.join(",")}`]),
    ...(mutant === undefined ? [] : [`--mutant ${mutant}`])
  ]
  print(`seed ${failed.seed} failed: ${failed.violation?.message}`)
  print(`commit ${commit()}; ${failed.mode} mode; digest ${failed.digest}`)
  print(`faults: ${failed.faults.join(", ")}`)
  print(`it still fails with: ${outcome.faults.join(", ") || "no fault at all"}: ${outcome.violation?.message}`)
  for (const line of outcome.history) print(`  ${line}`)
  print(`run it again: node test/simulation/main.ts ${flags.join(" ")}`)
}

/** Runs seeds one after the other; a turn of the host's loop between them lets it collect what they left. */
const here = async (values: Values, options: Options, mutant: string | undefined): Promise<number> => {
  const step = Number(values.step)
  let failed = 0
  for (let index = 0; index < Number(values.seeds); index += step) {
    const outcome = simulate(Number(values.from) + index, options)
    if (outcome.violation !== undefined) {
      failed++
      report(outcome, options, mutant)
    } else if (options.trace === true) for (const line of outcome.history) print(line)
    const result = outcome.violation === undefined ? "passed" : "failed"
    print(`${RESULT} ${outcome.seed} ${outcome.digest} ${JSON.stringify(outcome.kinds)} ${result}`)
    await setImmediate()
  }
  return failed
}

export interface Tally {
  passed: number
  failed: number
  /** Stored events of each kind. */
  readonly kinds: Map<string, number>
}

export const newTally = (): Tally => ({ passed: 0, failed: 0, kinds: new Map() })

/** Adds the events that a seed's line tells of; a line of another kind of run tells of none. */
const addKinds = ({ kinds }: Tally, line: string): void => {
  const text = /\{.*\}/u.exec(line)?.[0] ?? "{}"
  for (const [kind, count] of Object.entries(JSON.parse(text) as Record<string, number>))
    kinds.set(kind, (kinds.get(kind) ?? 0) + count)
}

/** One worker, this program with other arguments; what it prints beside results goes on to the terminal. */
export const worker = (args: ReadonlyArray<string>, tally: Tally, total: number): Promise<void> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [import.meta.dirname + "/main.ts", ...args], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (!line.startsWith(RESULT)) {
        print(line)
        return
      }
      if (line.endsWith("passed")) tally.passed++
      else tally.failed++
      addKinds(tally, line)
      const done = tally.passed + tally.failed
      if (done % PROGRESS_SEEDS === 0) process.stderr.write(`${done} of ${total}, ${tally.failed} failed\n`)
    })
    child.on("exit", () => resolve())
  })

const inWorkers = async (values: Values, workers: number): Promise<Tally> => {
  const total = Number(values.seeds)
  const tally = newTally()
  const flags = values.mode === undefined ? [] : ["--mode", values.mode]
  await Promise.all(
    Array.from({ length: workers }, (_, index) =>
      worker(
        [
          "--workers",
          "1",
          "--step",
          String(workers),
          "--without",
          values.without,
          "--from",
          String(Number(values.from) + index),
          "--seeds",
          String(total - index),
          ...flags
        ],
        tally,
        total
      )
    )
  )
  // A worker that died has not told of its seeds.
  return { ...tally, failed: tally.failed + Math.max(0, total - tally.passed - tally.failed) }
}

const again = (): number => {
  const broken = REGRESSIONS.filter(({ options, seed }) => simulate(seed, options).violation !== undefined)
  for (const { issue, seed } of broken) print(`seed ${seed} fails again: ${issue}`)
  print(`${REGRESSIONS.length - broken.length} passed, ${broken.length} failed`)
  return broken.length
}

/** The first of these seeds that breaks what a mutant is to break, with what it says. */
const finder = async ({ breaks }: Mutant, seeds: Iterable<number>) => {
  for (const seed of seeds) {
    const { violation } = simulate(seed)
    if (violation !== undefined && breaks.includes(violation.invariant)) return { seed, message: violation.message }
    await setImmediate()
  }
  return undefined
}

function* range(from: number, count: number) {
  for (let index = 0; index < count; index++) yield from + index
}

/** So many seeds in whose world is the rare part of the known seed's, or as for that seed none: others cannot find its bug. */
function* seedsLike(known: number, from: number, count: number) {
  const isLike = (seed: number) =>
    hasContracts(seed) === hasContracts(known) && hasTriggers(seed) === hasTriggers(known)
  let found = 0
  for (let seed = from; found < count; seed++)
    if (isLike(seed)) {
      found++
      yield seed
    }
}

/** How many of so many fresh seeds break any invariant. */
const countFresh = async (from: number, count: number): Promise<number> => {
  let broken = 0
  for (const seed of range(from, count)) {
    if (simulate(seed, { mode: "safety", seconds: FRESH_S }).violation !== undefined) broken++
    await setImmediate()
  }
  return broken
}

/**
 * Without a number of fresh seeds: the first seed that finds a mutant. With one: its known seed, or the first of `--seeds` after a change
 * of the product moved it, and how many of the fresh ones find something.
 */
const hunt = async (values: Values, mutant: Mutant): Promise<number> => {
  const { knownSeed, name } = mutant
  const { fresh } = values
  const count = Number(values.seeds)
  const known = fresh === undefined ? undefined : await finder(mutant, [knownSeed])
  const found =
    known ?? (await finder(mutant, seedsLike(knownSeed, fresh === undefined ? Number(values.from) : 1, count)))
  if (found === undefined) {
    print(`${name}: survived ${count} seeds`)
    print("0 passed, 1 failed")
    return 1
  }
  const moved = fresh !== undefined && found.seed !== knownSeed ? ` (no longer by seed ${knownSeed})` : ""
  print(`${name}: found by seed ${found.seed}${moved}: ${found.message}`)
  if (Number(fresh ?? 0) > 0)
    print(`${name}: found by ${await countFresh(Number(values.from), Number(fresh))} of ${fresh} fresh seeds`)
  print("1 passed, 0 failed")
  return 0
}

/** Answers the exit code. */
export const runSeeds = async (values: Values, mutant: Mutant | undefined): Promise<number> => {
  const options = optionsOf(values)
  if (values.regressions) return again() === 0 ? 0 : 1
  if (mutant !== undefined && !values.trace) return hunt(values, mutant)
  const total = Number(values.seeds)
  const wanted = values.workers === undefined ? availableParallelism() : Number(values.workers)
  const workers = Math.max(1, Math.min(wanted, total))
  if (workers > 1 && !values.trace) {
    const { failed, kinds, passed } = await inWorkers(values, workers)
    print(
      `stored: ${[...kinds]
        .map(([kind, count]) => `${kind} ${count}`)
        .sort()
        .join(", ")}`
    )
    print(`${passed} passed, ${failed} failed`)
    return failed === 0 ? 0 : 1
  }
  const failed = await here(values, options, mutant?.name)
  const ran = Math.ceil(total / Number(values.step))
  if (values.workers !== "1" || wanted > 1) print(`${ran - failed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}
