/** What tools did to the world, outside of every crash: the only witness that no program can make forget. */
import type { CallId, LaneId } from "#schema/Ids.ts"
import type { LockRequest, ToolEffect } from "#schema/Tool.ts"

/** One run of a tool. */
export interface Run {
  readonly agent: number
  readonly epoch: number
  readonly session_id: string
  readonly lane: LaneId
  readonly call_id: CallId
  readonly tool: string
  readonly effect: ToolEffect
  readonly locks: ReadonlyArray<LockRequest>
  /** When the effect happened, in ms since 1970; `undefined` when it has not. */
  happened_at: number | undefined
}

export class Ledger {
  readonly runs: Array<Run> = []
  /** The runs that are under way, by agent process. */
  readonly running = new Map<number, Set<Run>>()
  onStart: (run: Run) => void = () => undefined
  onEffect: (run: Run) => void = () => undefined

  start(run: Run): void {
    this.runs.push(run)
    const running = this.running.get(run.agent) ?? new Set()
    this.running.set(run.agent, running.add(run))
    this.onStart(run)
  }

  effect(run: Run, now_ms: number): void {
    run.happened_at = now_ms
    this.onEffect(run)
  }

  stop(run: Run): void {
    this.running.get(run.agent)?.delete(run)
  }
}
