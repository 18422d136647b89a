/** The search for a planted bug, within this process. */
import { setImmediate } from "node:timers/promises"
import type { Mutant } from "./Mutant.ts"
import { print } from "./print.ts"
import { simulate } from "./simulate.ts"
import { hasContracts, hasTriggers } from "./skills.ts"

interface Values {
  readonly seeds: string
  readonly from: string
  readonly fresh?: string | undefined
}

/** How long a fresh seed of a mutant goes on. */
const FRESH_S = 45

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
 * of the product moved it, and how many of the fresh ones find something. Says it in lines, and answers whether the bug was found.
 */
export const hunt = async (values: Values, mutant: Mutant): Promise<boolean> => {
  const { knownSeed, name } = mutant
  const { fresh } = values
  const count = Number(values.seeds)
  const known = fresh === undefined ? undefined : await finder(mutant, [knownSeed])
  const found =
    known ?? (await finder(mutant, seedsLike(knownSeed, fresh === undefined ? Number(values.from) : 1, count)))
  if (found === undefined) {
    print(`${name}: survived ${count} seeds`)
    return false
  }
  const moved = fresh !== undefined && found.seed !== knownSeed ? ` (no longer by seed ${knownSeed})` : ""
  print(`${name}: found by seed ${found.seed}${moved}: ${found.message}`)
  if (Number(fresh ?? 0) > 0)
    print(`${name}: found by ${await countFresh(Number(values.from), Number(fresh))} of ${fresh} fresh seeds`)
  return true
}
