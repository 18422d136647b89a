/** The people around the agent: they write, interrupt, cancel and ask to compact, whenever it does not suit. */
import { JobName } from "#schema/Ids.ts"
import type { Choird } from "./Choird.ts"
import { OUTSIDE } from "./outsideText.ts"
import { JOBS } from "./Script.ts"
import type { Seed } from "./Seed.ts"
import { ASKED_NICELY } from "./skills.ts"
import type { World } from "./World.ts"

/** Between two things that people do, in ms. */
const PAUSES_MS = [3000, 8000, 20_000] as const
/** When, after a message, the compactions are ordered by which a window loses what it read. */
const FORGETS_AFTER_MS = [10_000, 13_000] as const
/** Between two messages of people who let the agent finish. */
const PATIENT_PAUSE_MS = 20_000
/** Messages of one simulation. */
const MESSAGES_MAX = 30

export class People {
  readonly #world: World
  readonly #choird: Choird
  readonly #draw: Seed
  #said = 0

  constructor(world: World, choird: Choird) {
    this.#world = world
    this.#choird = choird
    this.#draw = world.draw("people")
  }

  start(): void {
    const { faults, kernel } = this.#world
    const pause = this.#draw.pick(PAUSES_MS)
    const { outside } = this.#world.setup
    const act = () => {
      if (faults.calm) return
      this.#act()
      kernel.after(kernel.world, outside ? PATIENT_PAUSE_MS : this.#draw.wait(pause), act)
    }
    kernel.after(kernel.world, this.#draw.wait(500), act)
  }

  #act(): void {
    const { database, io, kernel } = this.#world
    const draw = this.#draw
    const roll = draw.unit()
    const job_name = JobName.make(draw.pick(JOBS))
    const again = (act: (change: () => void) => void, change: () => void) =>
      void kernel.after(kernel.world, 300, () => act(change))
    // Whatever is sent reaches a table once choird and its database are there; until then the sender waits.
    const send = (change: () => void): void => {
      if (this.#choird.process === undefined || database.isAway(kernel.now)) return again(send, change)
      const met = io.meets("query")
      if (met === "query-refused") return again(send, change)
      change()
      // Whoever hears of a failure asks again with the same id, which changes nothing more and wakes the agent all the same.
      if (met === "query-unheard") again(() => this.#choird.wake(), change)
      else this.#choird.wake()
    }
    if (roll < 0.6 && this.#said < MESSAGES_MAX) {
      // Some write several messages in a breath, which must stay in order.
      const breath = draw.pick([1, 1, 1, 3])
      for (let left = this.#world.setup.outside ? 1 : breath; left > 0; left--) {
        // A pasted binary, whose characters take six bytes each in an event.
        const isLarge = this.#world.setup.large && this.#said < 6 && draw.chance(0.3)
        const text = isLarge ? "\u0001".repeat(90_000) : `message ${++this.#said}`
        if (this.#world.setup.heeds) {
          const asked = draw.chance(0.3) ? `${text} ${ASKED_NICELY}` : text
          const forwarded = draw.chance(0.3)
          send(() => database.say(forwarded ? `${asked} ${OUTSIDE}` : asked, forwarded))
        } else send(() => database.say(text))
      }
      if (this.#world.setup.outside)
        for (const after of FORGETS_AFTER_MS)
          kernel.after(kernel.world, after, () => send(() => database.order({ compact: true })))
    } else if (roll < 0.75) send(() => database.order({ inject: `note ${kernel.steps % 100}` }))
    else if (roll < 0.9) send(() => database.order({ cancel: job_name }))
    else send(() => database.order({ compact: true }))
  }
}
