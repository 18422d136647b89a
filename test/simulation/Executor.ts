/** choird's execution of what was approved: begins, works, and ends with it, or dies on the way and does it again in its next life. */
import type { ApprovalRow } from "./ApprovalTable.ts"
import type { Process } from "./Kernel.ts"
import type { Seed } from "./Seed.ts"
import type { World } from "./World.ts"

/** How often choird looks, in ms. */
const LOOK_MS = 400
/** The longest an execution works, in ms. */
const WORK_MS = 3000

export class Executor {
  readonly #world: World
  readonly #draw: Seed
  readonly #wake: () => void

  constructor(world: World, wake: () => void) {
    this.#world = world
    this.#draw = world.draw("executor")
    this.#wake = wake
  }

  /** For as long as this life of choird lasts. */
  start(process: Process): void {
    const { kernel, setup } = this.#world
    if (!setup.proposes) return
    const busy = new Set<ApprovalRow>()
    const look = () => {
      const { database } = this.#world
      if (!database.isAway(kernel.now))
        for (const row of database.approvals.provable()) {
          if (busy.has(row)) continue
          busy.add(row)
          database.approvals.begin(row)
          kernel.after(process, this.#draw.wait(WORK_MS), () => this.#finish(process, row, busy))
        }
      kernel.after(process, LOOK_MS, look)
    }
    look()
  }

  #finish(process: Process, row: ApprovalRow, busy: Set<ApprovalRow>): void {
    const { database, kernel, note } = this.#world
    if (database.isAway(kernel.now)) return void kernel.after(process, LOOK_MS, () => this.#finish(process, row, busy))
    database.approvals.finish(row, this.#draw.chance(0.8) ? "done" : "failed")
    busy.delete(row)
    note(`approval ${row.approval_id} is ${row.status}`)
    this.#wake()
  }
}
