/**
 * `npm run sim -- --seeds N --from S`: many simulated minutes, each decided by its seed. Options: `--mode safety|liveness`,
 * `--without loss,cut`, `--trace`, `--workers N`, `--mutant NAME`, `--regressions`, and `--io-faults` for one scenario with a fault at
 * each of its inputs and outputs (`--kind K`, `--mix`, `--from N`, `--only N`). The last line counts; a failure says how to run it again.
 */
import { parseArgs } from "node:util"
import { MUTANTS } from "./mutants.ts"
import { patchSources } from "./patchSources.ts"

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "100" },
    from: { type: "string", default: "1" },
    step: { type: "string", default: "1" },
    mode: { type: "string" },
    without: { type: "string", default: "" },
    trace: { type: "boolean", default: false },
    workers: { type: "string" },
    mutant: { type: "string" },
    fresh: { type: "string", default: "0" },
    regressions: { type: "boolean", default: false },
    "io-faults": { type: "boolean", default: false },
    kind: { type: "string" },
    mix: { type: "boolean", default: false },
    only: { type: "string" }
  }
})

// The product's modules are loaded after their text was changed.
const mutant = MUTANTS.find(({ name }) => name === values.mutant)
if (values.mutant !== undefined && mutant === undefined) throw new Error(`there is no mutant ${values.mutant}`)
patchSources(mutant === undefined ? [] : [mutant, ...(mutant.also === undefined ? [] : [mutant.also])])
if (values["io-faults"]) {
  const { runIoFaults } = await import("./runIoFaults.ts")
  process.exitCode = await runIoFaults(values)
} else {
  const { runSeeds } = await import("./runSeeds.ts")
  process.exitCode = await runSeeds(values, mutant)
}
