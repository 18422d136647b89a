/** `npm run sim -- --known-seeds`: each planted bug by its known seed; one that its seed misses gets the first seed that finds it, in its file and in the docs. */
import { execFile } from "node:child_process"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import type { Mutant } from "./Mutant.ts"

const DOCS = join(import.meta.dirname, "../../docs/simulation.md")
/** Seeds within which each planted bug has to be found. */
const HUNTED_SEEDS_MAX = 500

const sources = () =>
  readdirSync(import.meta.dirname)
    .filter((name) => /mutants\.ts$/iu.test(name))
    .map((name) => join(import.meta.dirname, name))

/** Puts a text in the place of a pattern's only match in one of these files. */
const rewrite = (files: ReadonlyArray<string>, pattern: RegExp, replace: string): void => {
  const file = files.find((path) => pattern.test(readFileSync(path, "utf8")))
  if (file === undefined) throw new Error(`no file has ${String(pattern)}`)
  writeFileSync(file, readFileSync(file, "utf8").replace(pattern, replace))
}

/** Writes a bug's new seed where the old one stands. The name is plain: letters and dashes. */
const setSeed = (name: string, seed: number): void => {
  rewrite(sources(), new RegExp(`(name: "${name}",(?:(?!name: ")[^])*?knownSeed: )\\d+`, "u"), `$1${seed}`)
  const cell = String(seed).padEnd("first seed".length)
  rewrite([DOCS], new RegExp(`(\\| \`${name}\` +\\|[^|]*\\| )[^|]*( \\|)`, "u"), `$1${cell}$2`)
}

/** The first seed that finds a bug, its known one before all others. */
const firstSeed = (name: string): Promise<number | undefined> =>
  new Promise((resolve) => {
    const args = ["--mutant", name, "--fresh", "0", "--seeds", String(HUNTED_SEEDS_MAX)]
    execFile(process.execPath, [join(import.meta.dirname, "main.ts"), ...args], (_, stdout) => {
      const seed = /: found by seed (?<seed>\d+)/u.exec(stdout)?.groups?.["seed"]
      resolve(seed === undefined ? undefined : Number(seed))
    })
  })

/** Answers the exit code: 1 where no seed finds a bug. */
export const knownSeeds = async (mutants: ReadonlyArray<Mutant>): Promise<number> => {
  const waiting = [...mutants]
  let missed = 0
  const work = async (): Promise<void> => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const { knownSeed, name } = mutant
      const seed = await firstSeed(name)
      if (seed === undefined) missed++
      else if (seed !== knownSeed) setSeed(name, seed)
      if (seed === undefined) process.stdout.write(`${name}: survived ${HUNTED_SEEDS_MAX} seeds\n`)
      else if (seed !== knownSeed) process.stdout.write(`${name}: seed ${seed} in the place of ${knownSeed}\n`)
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
  process.stdout.write(`${mutants.length - missed} passed, ${missed} failed\n`)
  return missed === 0 ? 0 : 1
}
