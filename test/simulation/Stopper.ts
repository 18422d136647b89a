/** The person who stops turns: at every point of one, by what the agent commits, and a moment later. */
import type { ChoirEvent } from "#schema/Event.ts"
import { EDGE } from "#schema/Ids.ts"
import type { Choird } from "./Choird.ts"
import { isEmptyReply } from "./emptyReply.ts"
import type { Seed } from "./Seed.ts"
import type { World } from "./World.ts"

/** One seed in so many has a person who stops turns. */
const STOPPING_SEEDS = 4
/** How likely an event of edge makes the person stop its turn. */
const CHANCE = 0.06
/** How likely the person stops a turn whose reply came empty, while the model is asked for it again. */
const CORRECTION_CHANCE = 0.5
/** How long the person takes, in ms: at once, while a call is on its way, while a tool or a model works. */
const DELAYS_MS = [0, 0, 20, 200, 1500] as const
/** Orders of one simulation. */
const STOPS_MAX = 25

export class Stopper {
  readonly #world: World
  readonly #choird: Choird
  readonly #draw: Seed
  /** Apart from the others, so that these orders leave those as they are. */
  readonly #corrections: Seed
  readonly #stops: boolean
  #ordered = 0

  constructor(world: World, choird: Choird, seed: number) {
    this.#world = world
    this.#choird = choird
    this.#draw = world.draw("stopper")
    this.#corrections = world.draw("stopped corrections")
    this.#stops = seed % STOPPING_SEEDS === 0
  }

  /** Sees what the agent commits, before choird does. */
  committed(events: ReadonlyArray<ChoirEvent>): void {
    const { faults, kernel } = this.#world
    if (!this.#stops || faults.calm) return
    for (const event of events)
      if (isEmptyReply(event) && this.#corrections.chance(CORRECTION_CHANCE))
        kernel.after(kernel.world, this.#corrections.between(1, 200), () => this.#order())
    for (const { lane } of events) {
      if (lane !== EDGE || this.#ordered >= STOPS_MAX || !this.#draw.chance(CHANCE)) continue
      this.#ordered++
      // Now and then twice, as a person does who does not trust the first one.
      for (let left = this.#draw.pick([1, 1, 1, 2]); left > 0; left--)
        kernel.after(kernel.world, this.#draw.wait(this.#draw.pick(DELAYS_MS) + 1), () => this.#order())
    }
  }

  /** Reaches the table once choird and its database are there; until then the person tries again. */
  #order(): void {
    const { database, kernel } = this.#world
    if (this.#choird.process === undefined || database.isAway(kernel.now))
      return void kernel.after(kernel.world, 300, () => this.#order())
    database.order({ stop: true })
    this.#choird.wake()
  }
}
