/** One seed: a world, minutes of its time, and what came of them. */
import type { ChoirEvent } from "#schema/Event.ts"
import { Approver } from "./Approver.ts"
import { Chaos } from "./Chaos.ts"
import { Choird } from "./Choird.ts"
import { Database } from "./Database.ts"
import { type FaultKind, Faults } from "./Faults.ts"
import { IoFault, type IoFaultOptions, type IoPlace } from "./IoFault.ts"
import { Hoarder } from "./Hoarder.ts"
import { Invariants } from "./Invariants.ts"
import { EPOCH_MS, Kernel, Violation } from "./Kernel.ts"
import { Ledger } from "./Ledger.ts"
import { Locks } from "./Locks.ts"
import { Machine } from "./Machine.ts"
import { Memory } from "./Memory.ts"
import { Network } from "./Network.ts"
import { People } from "./People.ts"
import { Provider } from "./Provider.ts"
import { Rival } from "./Rival.ts"
import { makeSeed } from "./Seed.ts"
import { makeSetup } from "./Setup.ts"
import { Stopper } from "./Stopper.ts"
import type { World } from "./World.ts"

/** Faults end here in a seed that tests liveness, in seconds. */
const CALM_S = 240
/** The end of a simulation, in seconds. */
const END_S = 300
/** Lines of the history that a failure keeps. */
const HISTORY_LINES = 200

export interface Options {
  readonly without?: ReadonlyArray<FaultKind>
  /** Safety: faults to the end. Liveness: a minute without any. Absent: liveness one time in three. */
  readonly mode?: "safety" | "liveness"
  /** How long a safety run takes, in seconds of its time; 300 when absent. */
  readonly seconds?: number
  /** When faults and people come to their end in a run that tests liveness, in seconds; 240 when absent. */
  readonly calm_s?: number
  /** One fault at one input or output. The run ends as soon as it struck and everybody was answered. */
  readonly io?: IoFaultOptions
  /** Keeps all of the history. */
  readonly trace?: boolean
  /** Errors say where they were made. Nothing depends on it, and it takes a tenth of a seed. */
  readonly stacks?: boolean
}

export interface Outcome {
  readonly seed: number
  readonly mode: "safety" | "liveness"
  readonly faults: ReadonlyArray<FaultKind>
  readonly digest: string
  readonly violation: Violation | undefined
  readonly history: ReadonlyArray<string>
  readonly steps: number
  readonly events: number
  /** How many of them there are of each kind: the type, with the status or outcome where the payload has one. */
  readonly kinds: Readonly<Record<string, number>>
  readonly starts: number
  /** The inputs and outputs of a run with {@link Options.io}, in their order. */
  readonly io: ReadonlyArray<IoPlace>
  readonly seconds: number
}

const modeOf = (seed: number): Outcome["mode"] => (seed % 3 === 0 ? "liveness" : "safety")

const kindOf = ({ event_type, payload }: ChoirEvent): string => {
  if ("status" in payload) return `${event_type}/${payload.status}`
  return "outcome" in payload ? `${event_type}/${payload.outcome}` : event_type
}

const kindsIn = (database: Database): Readonly<Record<string, number>> => {
  const kinds: Record<string, number> = {}
  for (const { events } of database.sessions.values())
    for (const { event } of events) kinds[kindOf(event)] = (kinds[kindOf(event)] ?? 0) + 1
  return kinds
}

/** Runs a seed. Nothing of it depends on anything but the seed, the options and the code. */
export const simulate = (seed: number, options: Options = {}): Outcome => {
  const mode = options.mode ?? modeOf(seed)
  const faults = new Faults(seed, { without: options.without ?? [] })
  const io = new IoFault(options.io)
  const draw = (name: string) => makeSeed(seed, name)
  const kernel = new Kernel(draw("kernel"))
  const history: Array<string> = []
  const note = (line: string) => {
    invariants.logged(line)
    history.push(`${((kernel.now - EPOCH_MS) / 1000).toFixed(3)} ${line}`)
    if (options.trace !== true && history.length > 2 * HISTORY_LINES) history.splice(0, HISTORY_LINES)
  }
  const database = new Database(draw("database"), faults)
  const ledger = new Ledger()
  const world = {
    kernel,
    faults,
    io,
    database,
    locks: new Locks(() => database.isAway(kernel.now)),
    ledger,
    draw,
    note,
    config_version: 1,
    setup: makeSetup(seed, faults),
    network: new Network(kernel, draw("network"), faults, io)
  } as unknown as World
  const invariants = new Invariants(world)
  Object.assign(world, { invariants })
  const machine = new Machine(world, new Provider(world))
  const choird = new Choird(world, machine)
  invariants.choird = () => choird.process
  const chaos = new Chaos(world, machine, choird)
  database.onStored = (session, rows) => invariants.stored(session, rows)
  database.onFrozen = (session, reason) => invariants.frozen(session, reason)
  ledger.onStart = (run) => invariants.toolStarts(run)
  ledger.onEffect = (run) => invariants.toolActs(run)
  kernel.watch = (process) => {
    invariants.step(process)
    chaos.step(process)
  }
  const stopper = new Stopper(world, choird, seed)
  invariants.onCommitted = (events) => stopper.committed(events)
  const outcome = (violation: Violation | undefined): Outcome => ({
    seed,
    mode,
    faults: [...faults.kinds],
    digest: kernel.digest.hex(),
    violation,
    history: options.trace === true ? history : history.slice(-HISTORY_LINES),
    steps: kernel.steps,
    events: [...database.sessions.values()].reduce((total, { events }) => total + events.length, 0),
    kinds: kindsIn(database),
    starts: machine.containers.length,
    io: io.places,
    seconds: kernel.seconds()
  })
  const memory = new Memory(world)
  const stackTraceLimit = Error.stackTraceLimit
  if (options.stacks !== true) Error.stackTraceLimit = 0
  try {
    choird.start()
    new People(world, choird).start()
    new Approver(world, choird).start()
    chaos.start()
    if (world.setup.rivalled) new Rival(world).start()
    const hoarder = world.setup.hoards ? new Hoarder(world) : undefined
    const calm = options.calm_s ?? CALM_S
    const end = mode === "safety" ? (options.seconds ?? END_S) : calm + END_S - CALM_S
    for (let second = 1; second <= end; second++) {
      if (second === calm && mode === "liveness") faults.end()
      kernel.runUntil(EPOCH_MS + 1000 * second)
      invariants.second()
      hoarder?.second()
      if (choird.process !== undefined) memory.second()
      if (io.struck && second > calm && invariants.isSettled()) break
    }
    invariants.end()
    if (mode === "liveness") invariants.settled()
    return outcome(undefined)
  } catch (error) {
    if (error instanceof Violation || Violation.raised !== undefined) return outcome(Violation.raised)
    return outcome(new Violation("W3", error instanceof Error ? (error.stack ?? error.message) : String(error)))
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}
