/**
 * `npm run sim -- --io-faults`: one scenario without any other fault, again and again, with exactly one fault at the n-th of its inputs
 * and outputs, for every n (R4). All invariants hold each time, and in the end everybody was answered and told.
 */
import { availableParallelism } from "node:os"
import { setImmediate } from "node:timers/promises"
import { FAULT_KINDS } from "./Faults.ts"
import { IO_FAULT_KINDS, IO_FAULTS, type IoFaultKind, type IoFaultOptions, type IoPlace } from "./IoFault.ts"
import { print } from "./print.ts"
import { RESULT, Tally } from "./Tally.ts"
import { type Options, simulate } from "./simulate.ts"

/** The scenario's seed: messages, jobs, external calls, instructions, cancels and compactions. */
const SCENARIO = 13
/** People go on for so many seconds as it takes until the log has so many events in the end. */
const EVENTS_MIN = 200
const SECONDS = [15, 20, 25, 30, 40, 50, 70, 100]

interface Values {
  readonly kind?: string | undefined
  readonly mix: boolean
  /** The first of the inputs and outputs, from 1. */
  readonly from: string
  /** One of them alone. */
  readonly only?: string | undefined
  /** Each so-manieth of them. */
  readonly every: string
  readonly step: string
  readonly workers?: string | undefined
  readonly mutant?: string | undefined
  readonly trace: boolean
}

const options = (calm_s: number, io: IoFaultOptions, trace: boolean): Options => ({
  mode: "liveness",
  without: FAULT_KINDS,
  calm_s,
  io,
  trace
})

/** The scenario without its fault, and how long it goes on. */
const makeScenario = () => {
  for (const calm_s of SECONDS) {
    const outcome = simulate(SCENARIO, options(calm_s, { kind: "agent-crash", at: 0 }, false))
    if (outcome.violation !== undefined) throw new Error(`the scenario itself fails: ${outcome.violation.message}`)
    if (outcome.events >= EVENTS_MIN) return { calm_s, io: outcome.io, events: outcome.events }
  }
  throw new Error(`the scenario never has ${EVENTS_MIN} events`)
}

const concerns = (kind: IoFaultKind, place: IoPlace): boolean =>
  (IO_FAULTS[kind] as ReadonlyArray<IoPlace>).includes(place)

/** Every fault at every place that it concerns; of a mix each place meets with one of them, in turn. */
const faultsOf = (
  places: ReadonlyArray<IoPlace>,
  { every, from, kind, mix, only }: Values
): ReadonlyArray<IoFaultOptions> =>
  places.flatMap((place, index) => {
    const at = index + 1
    if (only === undefined ? at < Number(from) || index % Number(every) !== 0 : at !== Number(only)) return []
    const kinds = IO_FAULT_KINDS.filter((each) => concerns(each, place) && (kind === undefined || each === kind))
    return kinds.filter((_, turn) => !mix || turn === at % kinds.length).map((each) => ({ kind: each, at }))
  })

const report = ({ at, kind }: IoFaultOptions, history: ReadonlyArray<string>, message: string): void => {
  print(`${kind} at ${at} failed: ${message}`)
  for (const line of history) print(`  ${line}`)
  print(`run it again: node test/simulation/main.ts --io-faults --kind ${kind} --only ${at} --trace`)
}

const here = async (calm_s: number, all: ReadonlyArray<IoFaultOptions>, trace: boolean): Promise<Tally> => {
  const tally = new Tally(all.length)
  for (const io of all) {
    const { history, violation } = simulate(SCENARIO, options(calm_s, io, trace))
    if (violation !== undefined) report(io, history, violation.message)
    else if (trace) for (const line of history) print(line)
    tally[violation === undefined ? "passed" : "failed"]++
    print(`${RESULT} ${io.kind} ${io.at} ${violation === undefined ? "passed" : "failed"}`)
    await setImmediate()
  }
  return tally
}

/** The step of a run that is not shared out. */
const WHOLE = "0/1"

/** Answers the exit code. */
export const runIoFaults = async (values: Values): Promise<number> => {
  const { kind, mix, mutant, trace } = values
  if (kind !== undefined && !IO_FAULT_KINDS.some((known) => known === kind))
    throw new Error(`there is no fault ${kind}; there are ${IO_FAULT_KINDS.join(", ")}`)
  const scenario = makeScenario()
  const all = faultsOf(scenario.io, values)
  const wanted = values.workers === undefined ? availableParallelism() : Number(values.workers)
  const { events, io } = scenario
  // Not in the worker of another process, which says it.
  if (values.step === WHOLE) print(`${io.length} inputs and outputs, ${events} events, ${all.length} faults`)
  if (wanted === 1 || trace) {
    // A worker takes each so-manieth of the faults, from its own place on.
    const [first = 0, every = 1] = values.step.split("/").map(Number)
    const { failed, passed } = await here(
      scenario.calm_s,
      every === 1 ? all : all.filter((_, index) => index % every === first),
      trace
    )
    if (every === 1) print(`${passed} passed, ${failed} failed`)
    return failed === 0 ? 0 : 1
  }
  const tally = new Tally(all.length)
  const named = Object.entries({ "--kind": kind, "--mutant": mutant })
  const flags = [
    ...named.flatMap(([flag, value]) => (value === undefined ? [] : [flag, value])),
    ...(mix ? ["--mix"] : [])
  ]
  const range = [
    "--from",
    values.from,
    "--every",
    values.every,
    ...(values.only === undefined ? [] : ["--only", values.only])
  ]
  const args = (index: number) => ["--io-faults", "--workers", "1", "--step", `${index}/${wanted}`, ...range, ...flags]
  await Promise.all(Array.from({ length: wanted }, (_, index) => tally.worker(args(index))))
  // A worker that died has not told of its faults.
  const failed = tally.failed + Math.max(0, all.length - tally.passed - tally.failed)
  print(`${tally.passed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}
