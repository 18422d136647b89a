/** `npm run sim -- --known-seeds`: each planted bug by its known seed; one that its seed misses gets the first seed that finds it, in its file and in the docs. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { hunts } from "./hunts.ts"
import type { Mutant } from "./Mutant.ts"
import { print } from "./print.ts"

const DOCS = join(import.meta.dirname, "../../docs/evidence/simulation.md")
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

/** Answers the exit code: 1 where no seed finds a bug. */
export const knownSeeds = async (mutants: ReadonlyArray<Mutant>): Promise<number> => {
  const known = new Map(mutants.map(({ knownSeed, name }) => [name, knownSeed]))
  const hunted = await hunts([...known.keys()], ["--fresh", "0", "--seeds", String(HUNTED_SEEDS_MAX)])
  for (const { name, said, seed } of hunted) {
    if (seed === undefined) print(said)
    else if (seed !== known.get(name)) {
      setSeed(name, seed)
      print(`${name}: seed ${seed} in the place of ${known.get(name)}`)
    }
  }
  const missed = hunted.filter(({ seed }) => seed === undefined).length
  print(`${mutants.length - missed} passed, ${missed} failed`)
  return missed === 0 ? 0 : 1
}
