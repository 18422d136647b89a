/** What must hold in an agent when a turn is stopped, and when any call gives up its locks: T1 and I7. */
import { Effect } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import type { Probe } from "./Agent.ts"
import { Violation } from "./Kernel.ts"
import type { Run } from "./Ledger.ts"

export class TurnRules {
  readonly #probe: Probe
  readonly #running: () => Iterable<Run>
  /** Edge's calls of this process, and those of them whose turn was stopped. */
  readonly #calls = new Set<string>()
  readonly #stopped = new Set<string>()
  /** Calls that were granted locks here and have no result, with their lanes. */
  readonly #granted = new Map<string, LaneId>()

  constructor(probe: Probe, running: () => Iterable<Run>) {
    this.#probe = probe
    this.#running = running
  }

  committed(events: ReadonlyArray<ChoirEvent>): void {
    for (const [index, event] of events.entries()) {
      if (event.event_type === "ModelOutput" && event.lane === EDGE)
        for (const { call_id } of event.payload.tool_calls) this.#calls.add(call_id)
      if (event.event_type === "ToolCallCommitted" && event.payload.locks.length > 0)
        this.#granted.set(event.payload.call_id, event.lane)
      if (event.event_type === "ToolResultCommitted") this.#granted.delete(event.payload.call_id)
      if (event.event_type === "Cancelled" && (event.payload.turn ?? 0) > 0) this.#stops(events.slice(index + 1))
    }
  }

  /** T1: a turn that counts as stopped has said its last word, and nothing of it runs or is locked. */
  #stops(after: ReadonlyArray<ChoirEvent>): void {
    const [last, ...more] = after
    // In the same batch only the end of a turn that was set aside may follow, which is held against this rule by itself.
    const next = more.find(({ event_type }) => event_type !== "ToolResultCommitted")
    const isEnd = more.length === 0 || (next?.event_type === "Cancelled" && (next.payload.turn ?? 0) > 0)
    if (last?.event_type !== "AgentMessage" || last.payload.kind === "notice" || !isEnd)
      throw new Violation("T1", "a stopped turn does not end with its one answer")
    for (const { lane, tool } of this.#running())
      if (lane === EDGE) throw new Violation("T1", `${tool} runs on though its turn was stopped`)
    const { locks } = this.#probe
    const left = [...Effect.runSync(locks.held), ...Effect.runSync(locks.waiting)].find(({ lane }) => lane === EDGE)
    if (left !== undefined) throw new Violation("T1", `a stopped turn keeps ${JSON.stringify(left.locks)}`)
    // What is open after it belongs to a turn that was set aside and goes on.
    const open = new Set<string>(this.#probe.arbiter.state().edge.calls.map(({ call_id }) => call_id))
    for (const call_id of this.#calls) if (!open.has(call_id)) this.#stopped.add(call_id)
  }

  toolStarts({ call_id, tool }: Run): void {
    if (this.#stopped.has(call_id)) throw new Violation("T1", `${tool} ${call_id} starts though its turn was stopped`)
  }

  /** I7: locks are free only once the result is committed, or somebody else sees the work before its end is known. */
  step(): void {
    if (this.#granted.size === 0) return
    const held = Effect.runSync(this.#probe.locks.held).filter(({ locks }) => locks.length > 0)
    for (const lane of new Set(this.#granted.values())) {
      const open = [...this.#granted.values()].filter((other) => other === lane).length
      const kept = held.filter((claim) => claim.lane === lane).length
      if (open > kept) throw new Violation("I7", `${lane} gave up locks before the result of their call was committed`)
    }
  }
}
