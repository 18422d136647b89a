/** The person who is asked: approves, refuses, clicks twice, on what is not shown any more, or forgets, whenever it does not suit. */
import type { ApprovalRow } from "./ApprovalTable.ts"
import type { Choird } from "./Choird.ts"
import type { Seed } from "./Seed.ts"
import type { World } from "./World.ts"

/** How often the person looks, in ms. */
const LOOK_MS = 500
/** The longest a person takes to decide, in ms. */
const THINK_MS = 6000

/** The digits of what was shown of something else. */
const OTHER_HASH = "00000000"

export class Approver {
  readonly #world: World
  readonly #choird: Choird
  readonly #draw: Seed
  readonly #misreads: Seed
  readonly #seen = new Set<ApprovalRow>()

  constructor(world: World, choird: Choird) {
    this.#world = world
    this.#choird = choird
    this.#draw = world.draw("approver")
    this.#misreads = world.draw("misreader")
  }

  start(): void {
    const { kernel, setup } = this.#world
    if (setup.config(1).approvals.confirm_external === "never" && !setup.proposes) return
    const look = () => {
      for (const row of this.#world.database.approvals.waiting()) this.#look(row)
      kernel.after(kernel.world, LOOK_MS, look)
    }
    look()
  }

  #look(row: ApprovalRow): void {
    const { faults, kernel } = this.#world
    // Once all is calm nobody forgets, so that what waits ends.
    if (faults.calm) return this.#click(row, "approved")
    if (this.#seen.has(row)) return
    this.#seen.add(row)
    const roll = this.#draw.unit()
    if (this.#misreads.chance(0.3))
      kernel.after(kernel.world, this.#misreads.wait(THINK_MS), () => this.#click(row, "approved", OTHER_HASH))
    const later = (resolution: "approved" | "rejected") =>
      kernel.after(kernel.world, this.#draw.wait(THINK_MS), () => this.#click(row, resolution))
    if (roll < 0.75) later(roll < 0.55 ? "approved" : "rejected")
    // Two clicks, of which one counts.
    if (roll >= 0.5 && roll < 0.85) later("rejected")
  }

  /** Reaches the table once choird and its database are there; until then the person tries again. */
  #click(row: ApprovalRow, resolution: "approved" | "rejected", hash8 = row.hash.slice(0, 8)): void {
    const { database, kernel } = this.#world
    if (this.#choird.process === undefined || database.isAway(kernel.now))
      return void kernel.after(kernel.world, 300, () => this.#click(row, resolution, hash8))
    const isEnded = database.sessions.get(row.session_id)?.status !== "active"
    database.approvals.decide(row, { resolution, hash8 }, kernel.now, isEnded)
    this.#choird.wake()
  }
}
