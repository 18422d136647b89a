/**
 * The simulated machine: one list of tasks that are ready, one heap of timers, and processes that run, stand still and die. The
 * seed picks which ready task is next; time jumps to the next timer when none is. No turn of the host's event loop is involved.
 */
import type { Seed } from "./Seed.ts"
import { Digest } from "./Digest.ts"

/** When simulated time begins. */
export const EPOCH_MS = Date.UTC(2026, 0, 1)

/** Tasks without any time passing after which the simulation counts as stuck: something spins. */
const STEPS_PER_INSTANT_MAX = 5000
/** The same for operations of fibers, so that a loop around something expensive is found before it has cost minutes. */
const OPERATIONS_PER_INSTANT_MAX = 100_000

/** A program of the simulated machine. What it had in memory is gone when it dies; no finalizer runs. */
export interface Process {
  readonly name: string
  alive: boolean
  /** It stands still until then, as in a long garbage collection or on an overloaded machine. */
  frozen_until: number
  /** Timers of its own that are pending. */
  timers: number
  /** Tasks of its scheduler that are ready. */
  tasks: number
  /** Steps it has taken. */
  steps: number
}

interface Task {
  readonly process: Process
  readonly run: () => void
}

interface Timer extends Task {
  readonly at: number
  readonly order: number
  cancelled: boolean
}

/** Something broke the rules; `invariant` names which. */
export class Violation extends Error {
  /** The first one of the simulation that runs: thrown inside a program it would end as a defect that the program survives. */
  static raised: Violation | undefined
  readonly invariant: string
  constructor(invariant: string, message: string) {
    super(`${invariant}: ${message}`)
    this.invariant = invariant
    Violation.raised ??= this
  }
}

const before = (a: Timer, b: Timer) => a.at < b.at || (a.at === b.at && a.order < b.order)

/** Timers, the earliest first. */
class Heap {
  readonly #items: Array<Timer> = []
  peek(): Timer | undefined {
    return this.#items[0]
  }
  push(timer: Timer): void {
    const items = this.#items
    let at = items.length
    items.push(timer)
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = items[parent]
      if (above === undefined || !before(timer, above)) break
      items[at] = above
      at = parent
    }
    items[at] = timer
  }
  pop(): Timer | undefined {
    const items = this.#items
    const top = items[0]
    const last = items.pop()
    if (top === undefined || last === undefined || items.length === 0) return top
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      const left = items[child]
      if (left === undefined) break
      const right = items[child + 1]
      let least = left
      if (right !== undefined && before(right, left)) {
        least = right
        child++
      }
      if (!before(least, last)) break
      items[at] = least
      at = child
    }
    items[at] = last
    return top
  }
}

export class Kernel {
  /** What nobody sets. */
  now = EPOCH_MS
  /** How far the time of day is from it, in ms. */
  #moved = 0
  #isTimeSet = false
  steps = 0
  /** Operations of fibers in this instant. */
  operations = 0
  readonly digest = new Digest()
  /** Runs after each step of a process. */
  watch: (process: Process) => void = () => undefined
  readonly #seed: Seed
  readonly #ready: Array<Task> = []
  readonly #timers = new Heap()
  readonly #inOrder: number
  #order = 0
  #processes = 0
  /** The world outside of all programs; it never dies. */
  readonly world: Process

  constructor(seed: Seed) {
    Violation.raised = undefined
    this.#seed = seed
    // Some seeds run tasks mostly in the order in which they became ready, as Node does; others in any order.
    this.#inOrder = seed.pick([0, 0, 0.5, 0.9])
    this.world = this.process("world")
  }

  /** The host's time of day, in ms since 1970. */
  timeOfDay(): number {
    return this.now + this.#moved
  }

  /** Whether it was ever set. */
  get isTimeSet(): boolean {
    return this.#isTimeSet
  }

  /** Sets the host's time of day; no span gets longer or shorter by it. */
  setTimeOfDay(by_ms: number): void {
    this.#moved += by_ms
    this.#isTimeSet = true
  }

  process(name: string): Process {
    return { name: `${name}#${this.#processes++}`, alive: true, frozen_until: 0, timers: 0, tasks: 0, steps: 0 }
  }

  kill(process: Process): void {
    process.alive = false
  }

  freeze(process: Process, ms: number): void {
    process.frozen_until = Math.max(process.frozen_until, this.now + ms)
  }

  /** Makes a task ready. */
  post(process: Process, run: () => void): void {
    this.#ready.push({ process, run })
  }

  /** Makes a task ready after a time in ms; the answer cancels it. */
  after(process: Process, ms: number, run: () => void): () => void {
    const at = this.now + Math.max(0, Math.ceil(ms))
    const timer: Timer = { process, run, at, order: this.#order++, cancelled: false }
    this.#timers.push(timer)
    return () => {
      timer.cancelled = true
    }
  }

  /** Seconds since the beginning. */
  seconds(): number {
    return (this.now - EPOCH_MS) / 1000
  }

  /** Runs until a time in ms since 1970. */
  runUntil(until: number): void {
    let instant = 0
    for (;;) {
      if (this.#ready.length > 0) {
        if (++instant > STEPS_PER_INSTANT_MAX)
          throw new Violation("L2", `${STEPS_PER_INSTANT_MAX} steps within one instant: something spins`)
        if (this.operations > OPERATIONS_PER_INSTANT_MAX)
          throw new Violation("L2", `${OPERATIONS_PER_INSTANT_MAX} operations within one instant: something spins`)
        this.#step()
        continue
      }
      const next = this.#timers.peek()
      if (next === undefined || next.at > until) {
        this.now = until
        return
      }
      if (next.at > this.now) {
        this.now = next.at
        instant = 0
        this.operations = 0
      }
      this.#timers.pop()
      if (!next.cancelled && next.process.alive) this.#ready.push(next)
    }
  }

  #step(): void {
    const ready = this.#ready
    const index = this.#inOrder > 0 && this.#seed.chance(this.#inOrder) ? 0 : this.#seed.below(ready.length)
    const task = ready[index]
    if (task === undefined) return
    if (index === 0) ready.shift()
    else ready.splice(index, 1)
    const { process } = task
    if (!process.alive) return
    if (process.frozen_until > this.now) {
      this.after(process, process.frozen_until - this.now, task.run)
      return
    }
    this.steps++
    process.steps++
    this.digest.number(index)
    this.digest.number(this.now & 0xffffffff)
    task.run()
    this.watch(process)
    if (Violation.raised !== undefined) throw Violation.raised
  }
}
