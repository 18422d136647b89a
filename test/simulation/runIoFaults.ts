/**
 * `npm run sim -- --io-faults`: one scenario without any other fault, again and again, with exactly one fault at the n-th of its inputs
 * and outputs, for every n (R4). All invariants hold each time, and in the end everybody was answered and told.
 */
import { availableParallelism } from "node:os"
import { setImmediate } from "node:timers/promises"
import { FAULT_KINDS } from "./Faults.ts"
import { IO_FAULT_KINDS, IO_FAULTS, type IoFaultKind, type IoFaultOptions, type IoPlace } from "./IoFault.ts"
import { print, RESULT, type Tally, worker } from "./runSeeds.ts"
import { type Options, simulate } from "./simulate.ts"

/**
 * The scenario: messages, jobs, external calls, instructions, cancels and compactions in 20 seconds, and what is left to do after
 * them. Its log has more than 200 events.
 */
const SCENARIO = 4
const SCENARIO_S = 20
const SCENARIO_EVENTS_MIN = 200

interface Values {
  readonly kind?: string | undefined
  readonly mix: boolean
  /** The first of the inputs and outputs, from 1. */
  readonly from: string
  /** One of them alone. */
  readonly only?: string | undefined
  readonly step: string
  readonly workers?: string | undefined
  readonly mutant?: string | undefined
  readonly trace: boolean
}

const options = (io: IoFaultOptions, trace: boolean): Options => ({
  mode: "liveness",
  without: FAULT_KINDS,
  calm_s: SCENARIO_S,
  io,
  trace
})

const concerns = (kind: IoFaultKind, place: IoPlace): boolean =>
  (IO_FAULTS[kind] as ReadonlyArray<IoPlace>).includes(place)

/** Every fault at every place that it concerns; of a mix each place meets with one of them, in turn. */
const faultsOf = (places: ReadonlyArray<IoPlace>, { from, kind, mix, only }: Values): ReadonlyArray<IoFaultOptions> =>
  places.flatMap((place, index) => {
    const at = index + 1
    if (only === undefined ? at < Number(from) : at !== Number(only)) return []
    const kinds = IO_FAULT_KINDS.filter((each) => concerns(each, place) && (kind === undefined || each === kind))
    return kinds.filter((_, turn) => !mix || turn === at % kinds.length).map((each) => ({ kind: each, at }))
  })

const report = ({ at, kind }: IoFaultOptions, history: ReadonlyArray<string>, message: string): void => {
  print(`${kind} at ${at} failed: ${message}`)
  for (const line of history) print(`  ${line}`)
  print(`run it again: node test/simulation/main.ts --io-faults --kind ${kind} --only ${at} --trace`)
}

const here = async (all: ReadonlyArray<IoFaultOptions>, trace: boolean): Promise<Tally> => {
  const tally = { passed: 0, failed: 0 }
  for (const io of all) {
    const { history, violation } = simulate(SCENARIO, options(io, trace))
    if (violation !== undefined) report(io, history, violation.message)
    else if (trace) for (const line of history) print(line)
    tally[violation === undefined ? "passed" : "failed"]++
    print(`${RESULT} ${io.kind} ${io.at} ${violation === undefined ? "passed" : "failed"}`)
    await setImmediate()
  }
  return tally
}

/** Answers the exit code. */
export const runIoFaults = async (values: Values): Promise<number> => {
  const { kind, mix, mutant, trace } = values
  if (kind !== undefined && !IO_FAULT_KINDS.some((known) => known === kind))
    throw new Error(`there is no fault ${kind}; there are ${IO_FAULT_KINDS.join(", ")}`)
  const scenario = simulate(SCENARIO, options({ kind: "agent-crash", at: 0 }, false))
  if (scenario.violation !== undefined || scenario.events < SCENARIO_EVENTS_MIN)
    throw new Error(`the scenario itself has ${scenario.events} events: ${scenario.violation?.message ?? "too few"}`)
  const all = faultsOf(scenario.io, values)
  const wanted = values.workers === undefined ? availableParallelism() : Number(values.workers)
  if (wanted === 1 || trace) {
    // A worker takes each so-manieth of the faults, from its own place on.
    const [first = 0, every = 1] = values.step.split("/").map(Number)
    const { failed, passed } = await here(every === 1 ? all : all.filter((_, index) => index % every === first), trace)
    if (every === 1) print(`${passed} passed, ${failed} failed`)
    return failed === 0 ? 0 : 1
  }
  print(`${scenario.io.length} inputs and outputs, ${scenario.events} events, ${all.length} faults`)
  const tally = { passed: 0, failed: 0 }
  const named = Object.entries({ "--kind": kind, "--mutant": mutant })
  const flags = [
    ...named.flatMap(([flag, value]) => (value === undefined ? [] : [flag, value])),
    ...(mix ? ["--mix"] : [])
  ]
  const range = ["--from", values.from, ...(values.only === undefined ? [] : ["--only", values.only])]
  const args = (index: number) => ["--io-faults", "--workers", "1", "--step", `${index}/${wanted}`, ...range, ...flags]
  await Promise.all(Array.from({ length: wanted }, (_, index) => worker(args(index), tally, all.length)))
  // A worker that died has not told of its faults.
  const failed = tally.failed + Math.max(0, all.length - tally.passed - tally.failed)
  print(`${tally.passed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}
