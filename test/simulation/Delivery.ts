/** Delivers the outbox to a person, in order and at least once: what was accepted without choird hearing of it comes again. */
import type { Process } from "./Kernel.ts"
import type { Seed } from "./Seed.ts"
import type { World } from "./World.ts"

/** Between two looks at the outbox, in ms. */
const LOOK_MS = 200

export class Delivery {
  readonly #world: World
  readonly #draw: Seed

  constructor(world: World) {
    this.#world = world
    this.#draw = world.draw("delivery")
  }

  /** Delivers for as long as this life of choird lasts. */
  start(process: Process): void {
    const { database, io, kernel } = this.#world
    const look = () => {
      const row = database.isAway(kernel.now) ? undefined : database.outbox.find(({ delivered }) => !delivered)
      if (row === undefined) return void kernel.after(process, LOOK_MS, look)
      this.#send(row.source_id, (accepted) =>
        kernel.after(process, this.#draw.wait(20), () => {
          // The database may have left between the delivery and its mark: then it comes again.
          const marks = accepted && !database.isAway(kernel.now) && io.meets("query") !== "query-refused"
          if (marks) row.delivered = true
          else if (accepted) this.#world.invariants.unmarked()
          kernel.after(process, accepted ? 0 : LOOK_MS, look)
        })
      )
    }
    kernel.after(process, LOOK_MS, look)
  }

  #send(source_id: string, answer: (accepted: boolean) => void): void {
    const { faults, invariants, io, kernel } = this.#world
    const met = io.meets("request") ?? io.meets("answer")
    const fails = faults.active("delivery") && this.#draw.chance(faults.rates.delivery)
    kernel.after(kernel.world, this.#draw.wait(50), () => {
      if (met === "request-lost" || (fails && this.#draw.chance(0.5))) return answer(false)
      const unheard = fails || met === "answer-lost"
      invariants.delivered(source_id, unheard)
      answer(!unheard)
    })
  }
}
