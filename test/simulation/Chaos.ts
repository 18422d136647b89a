/** Strikes: crashes, cuts, absences and stand-stills, at times that the seed draws. */
import type { Choird } from "./Choird.ts"
import type { FaultKind } from "./Faults.ts"
import type { Process } from "./Kernel.ts"
import type { Machine } from "./Machine.ts"
import type { Seed } from "./Seed.ts"
import type { World } from "./World.ts"

/** By how much the time of day is set: as by a person, after a resume of the machine, or by a time server. */
const CLOCK_STEPS_MS = [-3_600_000, -20_000, 20_000, 3_600_000] as const

export class Chaos {
  readonly #world: World
  readonly #machine: Machine
  readonly #choird: Choird
  readonly #draw: Seed
  readonly #clock: Seed
  #steps_left: number

  constructor(world: World, machine: Machine, choird: Choird) {
    this.#world = world
    this.#machine = machine
    this.#choird = choird
    this.#draw = world.draw("chaos")
    this.#clock = world.draw("clock")
    this.#steps_left = this.#nextCrash()
  }

  #nextCrash(): number {
    return this.#draw.between(1, 2 * this.#world.faults.rates.agent_crash_steps)
  }

  start(): void {
    const { database, kernel, note } = this.#world
    const { rates } = this.#world.faults
    this.#strike("choird-crash", rates.choird_crash_ms, () => this.#choird.crash())
    this.#strike("cut", rates.cut_ms, () => {
      this.#machine.wire.cut_until = kernel.now + this.#draw.between(300, 20_000)
      note("the wire is cut")
    })
    this.#strike("database", rates.database_ms, () => {
      database.leave(kernel.now + this.#draw.between(300, 12_000))
      note("the database is away")
    })
    this.#strike("stall", rates.stall_ms, () => this.#stall())
    this.#strike("operator", rates.operator_ms, () => {
      if (this.#draw.chance(0.5)) this.#choird.stopAgent()
      else this.#world.config_version++
    })
    if (this.#world.faults.kinds.has("clock"))
      this.#strike("clock", rates.clock_ms, () => this.#setClock(), this.#clock)
  }

  /** After each step of a process: an agent dies in the middle of whatever it does. */
  step(process: Process): void {
    const dies = this.#world.io.crash()
    const running = this.#machine.containers.at(-1)
    if (dies === "choird") this.#choird.crash()
    if (dies === "agent" && running !== undefined) this.#machine.crash(running)
    if (!this.#world.faults.active("agent-crash")) return
    const container = this.#machine.containers.at(-1)
    if (container?.process !== process || --this.#steps_left > 0) return
    this.#steps_left = this.#nextCrash()
    this.#machine.crash(container)
  }

  #setClock(): void {
    const { kernel, note } = this.#world
    const by_ms = this.#clock.pick(CLOCK_STEPS_MS)
    kernel.setTimeOfDay(by_ms)
    note(`the time of day is set by ${by_ms} ms`)
  }

  #strike(kind: FaultKind, typical_ms: number, act: () => void, draw = this.#draw): void {
    const { faults, kernel } = this.#world
    const again = () =>
      kernel.after(kernel.world, draw.wait(typical_ms), () => {
        if (faults.calm) return
        if (faults.active(kind)) act()
        again()
      })
    again()
  }

  #stall(): void {
    const { kernel, note } = this.#world
    const agent = this.#machine.living.at(-1)?.process
    const process = this.#draw.chance(0.6) ? agent : this.#choird.process
    if (process === undefined) return
    const ms = this.#draw.pick([100, 1000, 5000, 30_000])
    note(`${process.name} stands still for ${ms} ms`)
    kernel.freeze(process, Math.ceil(ms * this.#draw.unit()))
  }
}
