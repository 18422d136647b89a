/** What goes wrong in a simulation: each kind of fault is on with one chance in two, and how often it strikes is drawn, too. */
import { makeSeed, type Seed } from "./Seed.ts"

/** The kinds, by the names that `--without` takes. */
export const FAULT_KINDS = [
  /** Requests and answers get lost. */
  "loss",
  /** Messages take up to seconds, and so overtake each other. */
  "delay",
  /** Requests arrive twice. */
  "twice",
  /** What is lost is not told: the client has only its own patience. */
  "silence",
  /** Nothing passes between agent and choird for a while. */
  "cut",
  /** The agent's process dies. */
  "agent-crash",
  /** choird dies, and its agents some time after it. */
  "choird-crash",
  /** The database is away for a while, or slow. */
  "database",
  /** A program stands still for a while. */
  "stall",
  /** A container that was killed takes its time, or lives on although it was reported gone. */
  "zombie",
  /** Deliveries to people fail, or succeed without telling. */
  "delivery",
  /** The model's provider limits its rate, fails, hangs, or talks nonsense. */
  "provider",
  /** The model itself makes no sense: unknown tools, wrong inputs, too many calls, endless repetition. */
  "hostile-model",
  /** Answers are cut at the model's limit, empty, refused and broken, streams break off, and prompts are too long. */
  "answers",
  /** Tools fail, hang, break and return what is untrusted. */
  "tools",
  /** The operator stops, starts and reconfigures the agent. */
  "operator",
  /** Limits are so small that they are reached. */
  "small-budgets",
  /** The host's time of day is set. */
  "clock"
] as const
export type FaultKind = (typeof FAULT_KINDS)[number]

/** How often, as probabilities, or how long, in ms of simulated time. */
interface Rates {
  readonly loss: number
  readonly delay: number
  readonly delay_ms: number
  readonly twice: number
  readonly agent_crash_steps: number
  readonly choird_crash_ms: number
  readonly cut_ms: number
  readonly database_ms: number
  readonly stall_ms: number
  readonly delivery: number
  readonly provider: number
  readonly hostile: number
  readonly answers: number
  readonly tools: number
  readonly operator_ms: number
  readonly clock_ms: number
}

export interface FaultOptions {
  /** Kinds that are off whatever the seed says, to find out which ones a failure needs. */
  readonly without: ReadonlyArray<FaultKind>
}

export class Faults {
  readonly kinds: ReadonlySet<FaultKind>
  readonly rates: Rates
  #calm = false
  readonly #waiting: Array<() => void> = []

  constructor(seed: number, { without }: FaultOptions) {
    const draw = makeSeed(seed, "faults")
    const clock = makeSeed(seed, "faults of the clock")
    const answers = makeSeed(seed, "faults of answers")
    const apart = new Map<FaultKind, Seed>([
      ["clock", clock],
      ["answers", answers]
    ])
    // Each kind is drawn whether it counts or not, so that switching one off leaves the others as they are.
    const drawn = FAULT_KINDS.filter((kind) => (apart.get(kind) ?? draw).chance(0.5))
    this.kinds = new Set(drawn.filter((kind) => !without.includes(kind)))
    this.rates = {
      loss: draw.pick([0.01, 0.05, 0.2]),
      delay: draw.pick([0.05, 0.3]),
      delay_ms: draw.pick([50, 400, 1500]),
      twice: draw.pick([0.02, 0.2]),
      agent_crash_steps: draw.pick([500, 2000, 8000]),
      choird_crash_ms: draw.pick([30_000, 90_000]),
      cut_ms: draw.pick([20_000, 60_000]),
      database_ms: draw.pick([20_000, 60_000]),
      stall_ms: draw.pick([15_000, 45_000]),
      delivery: draw.pick([0.05, 0.3]),
      provider: draw.pick([0.05, 0.25]),
      hostile: draw.pick([0.1, 0.4]),
      answers: answers.pick([0.08, 0.25]),
      tools: draw.pick([0.1, 0.3]),
      operator_ms: draw.pick([40_000, 100_000]),
      clock_ms: clock.pick([15_000, 45_000])
    }
  }

  get calm(): boolean {
    return this.#calm
  }

  active(kind: FaultKind): boolean {
    return !this.#calm && this.kinds.has(kind)
  }

  /** Ends every fault. What only waited for that, goes on now. */
  end(): void {
    this.#calm = true
    for (const go of this.#waiting.splice(0)) go()
  }

  /** Runs when all faults end; for what would hang for ever. */
  onCalm(go: () => void): void {
    if (this.#calm) go()
    else this.#waiting.push(go)
  }
}
