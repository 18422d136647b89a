/** Spans are measured by the clock that nobody sets (M1): no call and no job is cut off early, or measured wrongly, because the time of day was. */
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import type { LaneId } from "#schema/Ids.ts"
import type { CoreLane } from "#src/shared/session/State.ts"
import { waitOf } from "#src/shared/session/providerWait.ts"
import type { Probe } from "./Agent.ts"
import { type Kernel, Violation } from "./Kernel.ts"
import { timeoutOf } from "./tools.ts"

/** What rounding to whole milliseconds may make of a span. */
const ROUNDING_MS = 2

interface Begun {
  /** Later than its start by what it waited for its provider, which does not count in its time. */
  readonly at_ms: number
  readonly wall_time_ms: number
  /** Since when it waits; absent where it does not. */
  readonly waits_ms?: number
}

/** How long a job has waited for its provider by the times of the log, and since when it does. */
const waitedBy = ({ lane, output, started_rev }: CoreLane, find: (rev: number) => ChoirEvent | undefined) => {
  let ended_ms = 0
  let since: string | undefined
  for (let rev = started_rev; rev <= output.rev; rev += 1) {
    const event = find(rev)
    if (event?.event_type !== "ModelOutput" || event.lane !== lane || event.payload.purpose !== "turn") continue
    if (since !== undefined) ended_ms += Math.max(0, Date.parse(event.created_at) - Date.parse(since))
    since = waitOf(event)?.since
  }
  return { ended_ms, since }
}

export class ClockRules {
  readonly #kernel: Kernel
  /** When calls were requested by this process, and for which tool. */
  readonly #requested = new Map<string, { readonly at_ms: number; readonly tool: string }>()
  readonly #jobs = new Map<LaneId, Begun>()
  /** Jobs that this process began. The age of any other is what the times of the log say. */
  readonly #own = new Set<LaneId>()

  constructor(kernel: Kernel, { arbiter, log }: Probe) {
    this.#kernel = kernel
    const wall = kernel.timeOfDay()
    // The time of day may be set between this moment and the one in which the job goes on.
    const ageOf = (at: string) => (kernel.isTimeSet ? 0 : Math.max(0, wall - Date.parse(at)))
    for (const core of arbiter.state().cores.values()) {
      const { budgets, lane, started_at } = core
      const { ended_ms, since } = waitedBy(core, log.find)
      this.#jobs.set(lane, {
        at_ms: kernel.now - Math.max(0, ageOf(started_at) - ended_ms),
        wall_time_ms: budgets.wall_time_ms,
        ...(since === undefined ? {} : { waits_ms: kernel.now - ageOf(since) })
      })
    }
  }

  committed(events: ReadonlyArray<ChoirEvent>): void {
    for (const event of events) this.#event(event)
  }

  /** Whether a job's time is up for certain. */
  isOver(lane: LaneId): boolean {
    const job = this.#jobs.get(lane)
    return job !== undefined && this.#worked(job) >= job.wall_time_ms
  }

  /** What counts of a job's time until now. */
  #worked({ at_ms, waits_ms = this.#kernel.now }: Begun): number {
    return Math.min(this.#kernel.now, waits_ms) - at_ms
  }

  /** An output ends the wait of its job, and begins the next one where its failure may pass. */
  #output(event: EventOf<"ModelOutput">): void {
    const job = this.#jobs.get(event.lane)
    if (job === undefined || event.payload.purpose !== "turn") return
    const { now } = this.#kernel
    const { at_ms, wall_time_ms, waits_ms = now } = job
    const after = { at_ms: at_ms + now - waits_ms, wall_time_ms }
    this.#jobs.set(event.lane, waitOf(event) === undefined ? after : { ...after, waits_ms: now })
  }

  #event(event: ChoirEvent): void {
    const { now } = this.#kernel
    switch (event.event_type) {
      case "ToolCallRequested":
        this.#requested.set(event.payload.call_id, { at_ms: now, tool: event.payload.tool })
        return
      case "ToolResultCommitted":
        return this.#result(event)
      case "CoreStarted":
        this.#own.add(event.lane)
        this.#jobs.set(event.lane, { at_ms: now, wall_time_ms: event.payload.budgets.wall_time_ms })
        return
      case "ModelOutput":
        return this.#output(event)
      case "CoreStopped":
        return this.#stop(event)
      default:
        return
    }
  }

  #result({ payload }: EventOf<"ToolResultCommitted">): void {
    const { call_id, duration_ms, status } = payload
    const request = this.#requested.get(call_id)
    if (request === undefined) return
    this.#requested.delete(call_id)
    const { at_ms, tool } = request
    const passed_ms = this.#kernel.now - at_ms + ROUNDING_MS
    if (duration_ms > passed_ms)
      throw new Violation(
        "M1",
        `${tool} is said to have taken ${duration_ms} ms of the ${passed_ms} ms since its request`
      )
    const timeout_ms = timeoutOf(tool)
    if (status === "timeout" && timeout_ms !== undefined && passed_ms < timeout_ms)
      throw new Violation("M1", `${tool} was cut off after ${passed_ms} ms, and may take ${timeout_ms} ms`)
  }

  #stop({ lane, payload }: EventOf<"CoreStopped">): void {
    const job = this.#jobs.get(lane)
    this.#jobs.delete(lane)
    if (job === undefined || !this.#own.delete(lane)) return
    const passed_ms = this.#worked(job) + ROUNDING_MS
    if (/limit of \d+ s is reached/u.test(payload.summary) && passed_ms < job.wall_time_ms)
      throw new Violation("M1", `${lane} ended after ${passed_ms} ms for its limit of ${job.wall_time_ms} ms`)
  }
}
