/**
 * choird's execution of what was approved: begins, works, and ends with it, or dies on the way and does it again in its next life. What a
 * stored proposal says is read by choird's own code, and a new version of choird may be too strict to read it.
 */
import { Result } from "effect"
import type { Ending } from "#src/choird/approvals/proposalNotes.ts"
import { executionOf, PROPOSAL_RETRY_MS } from "#src/choird/approvals/Execution.ts"
import type { ApprovalRow } from "./ApprovalTable.ts"
import type { Process } from "./Kernel.ts"
import type { Seed } from "./Seed.ts"
import type { World } from "./World.ts"

/** How often choird looks, in ms. */
const LOOK_MS = 400
/** The longest an execution works, in ms. */
const WORK_MS = 3000
/** Looks at one proposal after which it keeps all others from being carried out: a minute of a choird that runs. */
const LOOKS_MAX = 150
/** The share of proposals that another version of choird stored. */
const OUTDATED = 0.4

const BROKE: Ending = { status: "failed", kind: "BUILD", reason: "it broke" }
const DONE: Ending = { status: "done", outcome: "done" }

export class Executor {
  readonly #world: World
  readonly #draw: Seed
  readonly #upgrades: Seed
  readonly #wake: () => void
  readonly #known = new Set<ApprovalRow>()
  readonly #looks = new Map<ApprovalRow, number>()

  constructor(world: World, wake: () => void) {
    this.#world = world
    this.#draw = world.draw("executor")
    this.#upgrades = world.draw("upgrades")
    this.#wake = wake
  }

  /** For as long as this life of choird lasts. */
  start(process: Process): void {
    const { database, kernel, setup } = this.#world
    if (!setup.proposes) return
    let isBusy = false
    const look = () => {
      for (const row of database.approvals.undecided()) this.#outdate(row)
      // As choird does: the oldest of each agent, and one at a time.
      const [row] = database.isAway(kernel.now) ? [] : database.approvals.provable()
      if (row !== undefined) this.#seen(row)
      if (row !== undefined && !isBusy) {
        isBusy = true
        this.#execute(process, row, () => {
          isBusy = false
        })
      }
      kernel.after(process, LOOK_MS, look)
    }
    look()
  }

  /** Some proposals are of another version of choird, which understood what this one does not. */
  #outdate(row: ApprovalRow): void {
    if (this.#known.has(row)) return
    this.#known.add(row)
    if (!this.#upgrades.chance(OUTDATED)) return
    row.canonical = `{"old":1}`
    this.#world.note(`this version of choird cannot read approval ${row.approval_id}`)
  }

  /** I12: what cannot be carried out does not keep the others from it. */
  #seen(row: ApprovalRow): void {
    const looks = (this.#looks.get(row) ?? 0) + 1
    this.#looks.set(row, looks)
    if (looks > LOOKS_MAX) this.#world.invariants.stuck(row)
  }

  #execute(process: Process, row: ApprovalRow, done: () => void): void {
    const { database, kernel, note } = this.#world
    try {
      const proof = database.approvals.proofOf(row)
      if (proof === undefined) return done()
      const execution = executionOf(proof)
      database.approvals.begin(row)
      const ending: Ending = Result.isFailure(execution)
        ? { status: "failed", kind: execution.failure.kind, reason: execution.failure.reason }
        : this.#draw.chance(0.8)
          ? DONE
          : BROKE
      const work_ms = Result.isFailure(execution) ? 0 : this.#draw.wait(WORK_MS)
      kernel.after(process, work_ms, () => this.#finish(process, row, ending, done))
    } catch (defect) {
      note(`approval ${row.approval_id} is carried out later: ${String(defect)}`)
      kernel.after(process, PROPOSAL_RETRY_MS, done)
    }
  }

  #finish(process: Process, row: ApprovalRow, ending: Ending, done: () => void): void {
    const { database, kernel, note } = this.#world
    if (database.isAway(kernel.now))
      return void kernel.after(process, LOOK_MS, () => this.#finish(process, row, ending, done))
    database.approvals.finish(row, ending)
    note(`approval ${row.approval_id} is ${row.status}`)
    done()
    this.#wake()
  }
}
