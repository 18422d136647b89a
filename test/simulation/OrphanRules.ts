/** The rule of jobs that owe an account of their work, from the stored events alone: J5. */
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import type { LaneId } from "#schema/Ids.ts"
import { Violation } from "./Kernel.ts"

/** The words by which a user reads that a job gave no account. */
const UNTOLD = "no writeback"
/** The end of the words below a question, which is reported as well. */
const ASKS = /: \/answer \S+ …$/u

export class OrphanRules {
  /** Running jobs: whether each owes an account, and whether it gave one. */
  readonly #jobs = new Map<LaneId, { readonly owes: boolean; gave: boolean }>()
  readonly #accounts = new Set<string>()
  /** By job names, the ends that nobody has reported: whether each is an orphan's. */
  readonly #ends = new Map<string, Array<boolean>>()

  event(event: ChoirEvent): void {
    switch (event.event_type) {
      case "CoreStarted":
        this.#jobs.set(event.lane, { owes: event.payload.start.agent_type !== undefined, gave: false })
        return
      case "ToolCallRequested":
        if (event.payload.tool === "choir.core.writeback") this.#accounts.add(event.payload.call_id)
        return
      case "ToolResultCommitted": {
        const job = this.#jobs.get(event.lane)
        const { call_id, status } = event.payload
        if (job !== undefined && status === "success" && this.#accounts.has(call_id)) job.gave = true
        return
      }
      case "CoreStopped":
        return this.#stop(event)
      case "AgentMessage":
        return this.#message(event)
      default:
        return
    }
  }

  #stop({ lane, payload, rev }: EventOf<"CoreStopped">): void {
    const { gave = false, owes = false } = this.#jobs.get(lane) ?? {}
    const isOrphan = owes && !gave
    if (isOrphan !== (payload.orphan === true))
      throw new Violation("J5", `${lane} ends at ${rev} ${gave ? "with" : "without"} an account, and its end differs`)
    this.#jobs.delete(lane)
    this.#ends.set(payload.job_name, [...(this.#ends.get(payload.job_name) ?? []), isOrphan])
  }

  #message({ payload, rev }: EventOf<"AgentMessage">): void {
    const { facts = "", job = "", kind } = payload
    if (kind !== "report" || ASKS.test(facts)) return
    const isOrphan = this.#ends.get(job)?.shift()
    if (isOrphan === true && !facts.includes(UNTOLD))
      throw new Violation("J5", `the report at ${rev} does not say that ${job} gave no account of its work`)
  }
}
