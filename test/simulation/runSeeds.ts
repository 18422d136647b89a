/** What the command line asks of this process: seeds, a mutant's hunt, or the regressions. */
import { setImmediate } from "node:timers/promises"
import { commit } from "./commit.ts"
import { FAULT_KINDS, type FaultKind } from "./Faults.ts"
import { hunt } from "./hunt.ts"
import type { Mutant } from "./Mutant.ts"
import { print } from "./print.ts"
import { REGRESSIONS } from "./regressions.ts"
import { shrink } from "./shrink.ts"
import { type Options, type Outcome, simulate } from "./simulate.ts"
import { RESULT } from "./Tally.ts"

export interface Values {
  readonly seeds: string
  readonly from: string
  readonly mode?: string | undefined
  readonly without: string
  readonly trace: boolean
  readonly workers?: string | undefined
  readonly fresh?: string | undefined
  readonly regressions: boolean
}

const optionsOf = ({ mode, trace, without }: Values): Options => {
  const names = without === "" ? [] : without.split(",")
  const unknown = names.find((name) => !FAULT_KINDS.some((kind) => kind === name))
  if (unknown !== undefined) throw new Error(`there is no fault ${unknown}; there are ${FAULT_KINDS.join(", ")}`)
  if (mode !== undefined && mode !== "safety" && mode !== "liveness") throw new Error(`there is no mode ${mode}`)
  return { without: names as ReadonlyArray<FaultKind>, trace, ...(mode === undefined ? {} : { mode }) }
}

/** Everything that is needed to see a failure again and to understand it. */
const report = (failed: Outcome, options: Options, mutant: string | undefined): void => {
  const { options: fewest, outcome } = shrink(failed, { ...options, stacks: true })
  const without = fewest.without ?? []
  const flags = [
    `--seeds 1 --from ${failed.seed} --mode ${failed.mode}`,
    ...(without.length === 0 ? [] : [`--without ${without.join(",")}`]),
    ...(mutant === undefined ? [] : [`--mutant ${mutant}`])
  ]
  print(`seed ${failed.seed} failed: ${failed.violation?.message}`)
  print(`commit ${commit() ?? "unknown"}; ${failed.mode} mode; digest ${failed.digest}`)
  print(`faults: ${failed.faults.join(", ")}`)
  print(`it still fails with: ${outcome.faults.join(", ") || "no fault at all"}: ${outcome.violation?.message}`)
  for (const line of outcome.history) print(`  ${line}`)
  print(`run it again: node test/simulation/main.ts ${flags.join(" ")}`)
}

/** Runs seeds one after the other; a turn of the host's loop between them lets it collect what they left. */
const here = async (values: Values, options: Options, mutant: string | undefined): Promise<number> => {
  let failed = 0
  for (let index = 0; index < Number(values.seeds); index++) {
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

const again = (): number => {
  const broken = REGRESSIONS.filter(({ options, seed }) => simulate(seed, options).violation !== undefined)
  for (const { issue, seed } of broken) print(`seed ${seed} fails again: ${issue}`)
  print(`${REGRESSIONS.length - broken.length} passed, ${broken.length} failed`)
  return broken.length
}

/** Answers the exit code. */
export const runSeeds = async (values: Values, mutant: Mutant | undefined): Promise<number> => {
  const options = optionsOf(values)
  if (values.regressions) return again() === 0 ? 0 : 1
  if (mutant !== undefined && !values.trace) {
    const isFound = await hunt(values, mutant)
    print(isFound ? "1 passed, 0 failed" : "0 passed, 1 failed")
    return isFound ? 0 : 1
  }
  const total = Number(values.seeds)
  const failed = await here(values, options, mutant?.name)
  if (values.workers !== "1") print(`${total - failed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}
