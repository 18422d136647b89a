/** Who runs when tools are many (D1, E1): a call that has its locks begins at once where a slot is free, and edge always finds one. */
import { Effect } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import type { Probe } from "./Agent.ts"
import { Violation } from "./Kernel.ts"
import type { Run } from "./Ledger.ts"
import { TOOLS_RESERVED_FOR_EDGE } from "#src/agent/calls/ToolSlots.ts"
import { TOOLS_IN_FLIGHT_MAX } from "#src/agent/control/choirdConnections.ts"

export class SlotRules {
  readonly #probe: Probe
  readonly #running: () => Iterable<Run>
  /** Calls with locks that began here and have no result, with their lanes. */
  readonly #begun = new Map<string, LaneId>()
  /** Lanes that were kept waiting when they were last looked at. */
  #kept: ReadonlySet<LaneId> = new Set()

  constructor(probe: Probe, running: () => Iterable<Run>) {
    this.#probe = probe
    this.#running = running
  }

  committed(events: ReadonlyArray<ChoirEvent>): void {
    for (const event of events) {
      if (event.event_type === "ToolCallCommitted" && event.payload.locks.length > 0)
        this.#begun.set(event.payload.call_id, event.lane)
      if (event.event_type === "ToolResultCommitted") this.#begun.delete(event.payload.call_id)
    }
  }

  /** Each second of a process that does not stand still: a call that is kept waiting twice in a row had no reason to wait. */
  second(): void {
    const running = [...this.#running()]
    const edge = running.filter(({ lane }) => lane === EDGE).length
    const isFull = running.length >= TOOLS_IN_FLIGHT_MAX
    const jobsFull = running.length - edge >= TOOLS_IN_FLIGHT_MAX - TOOLS_RESERVED_FOR_EDGE
    const isFree = (lane: LaneId) => (lane === EDGE ? !isFull || edge < TOOLS_RESERVED_FOR_EDGE : !isFull && !jobsFull)
    const kept = new Set(this.#waiting().filter(isFree))
    for (const lane of kept)
      if (this.#kept.has(lane))
        throw new Violation(
          "E1",
          `${lane} waits for its turn while ${running.length} tools run, ${edge} of them edge's`
        )
    this.#kept = kept
  }

  /** Lanes that hold the locks of more calls than have begun. */
  #waiting(): ReadonlyArray<LaneId> {
    const held = Effect.runSync(this.#probe.locks.held).filter(({ locks }) => locks.length > 0)
    const begun = [...this.#begun.values()]
    return [...new Set(held.map(({ lane }) => lane))].filter(
      (lane) => held.filter((claim) => claim.lane === lane).length > begun.filter((other) => other === lane).length
    )
  }
}
