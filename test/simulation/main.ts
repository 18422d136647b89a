/** `npm run sim`: many simulated minutes, each decided by its seed. */
import { availableParallelism } from "node:os"
import { programOptions } from "../support/programOptions.ts"
import { MUTANTS } from "./mutants.ts"
import { patchSources } from "./patchSources.ts"

const USAGE = `npm run sim -- [options]
Runs the agent and choird's stores in simulated time, with faults that a seed decides, and checks what must hold.
  --seeds N          how many (100)
  --from N           the first one (1)
  --mode M           safety or liveness; both in turns unless said
  --without A,B      faults to leave out
  --trace            prints what happens
  --workers N        processes; one for each core unless said
  --log FILE         keeps what came of each seed; with a file of the same run, only the seeds that it lacks are run
  --regressions      what once failed
  --mutant A,B       with a planted bug (docs/evidence/simulation.md), each in turn: the first seed that finds it
  --fresh N          with --mutant: its known seed, then N seeds from --from on, counted
  --known-seeds      every planted bug by its known seed; rewrites the seeds that miss theirs
  --io-faults        one scenario with a fault at each of its inputs and outputs: --kind K, --mix, --from N, --only N, --every N
The last line counts; a failure says how to run it again.`

const { oneOf, values } = programOptions(USAGE, {
  seeds: { type: "string", default: "100" },
  from: { type: "string", default: "1" },
  step: { type: "string", default: "0/1" },
  mode: { type: "string" },
  without: { type: "string", default: "" },
  trace: { type: "boolean", default: false },
  workers: { type: "string" },
  log: { type: "string" },
  mutant: { type: "string" },
  fresh: { type: "string" },
  "known-seeds": { type: "boolean", default: false },
  regressions: { type: "boolean", default: false },
  "io-faults": { type: "boolean", default: false },
  kind: { type: "string" },
  mix: { type: "boolean", default: false },
  only: { type: "string" },
  every: { type: "string", default: "1" }
})

// The product's modules are loaded after their text was changed.
const names = MUTANTS.map(({ name }) => name)
const chosen = new Set(values.mutant?.split(",").map((name) => oneOf("mutant", name, names)))
const mutants = MUTANTS.filter(({ name }) => chosen.has(name))
const [mutant] = mutants
patchSources(mutant === undefined || mutants.length > 1 ? [] : [mutant, ...(mutant.also ?? [])])
const workers = Math.min(Number(values.workers ?? availableParallelism()), Number(values.seeds))
if (mutants.length > 1) {
  const { bugVariants } = await import("./bugVariants.ts")
  const withBug = await bugVariants(mutants)
  let found = 0
  for (const each of mutants) if (await (await withBug(each)).hunt(values, each)) found++
  console.log(`${found} passed, ${mutants.length - found} failed`)
  process.exitCode = found === mutants.length ? 0 : 1
} else if (values["known-seeds"]) {
  const { knownSeeds } = await import("./knownSeeds.ts")
  process.exitCode = await knownSeeds(MUTANTS)
} else if (values["io-faults"]) {
  const { runIoFaults } = await import("./runIoFaults.ts")
  process.exitCode = await runIoFaults(values)
} else if (mutant === undefined && !values.regressions && !values.trace && (workers > 1 || values.log !== undefined)) {
  const { seedsInWorkers } = await import("./seedWorkers.ts")
  const mode = values.mode === undefined ? undefined : oneOf("mode", values.mode, ["safety", "liveness"])
  process.exitCode = await seedsInWorkers({
    ...values,
    mode,
    total: Number(values.seeds),
    from: Number(values.from),
    workers
  })
} else {
  const { runSeeds } = await import("./runSeeds.ts")
  process.exitCode = await runSeeds(values, mutant)
}
