/** The limits of sessions, turns and jobs, counted anew from the stored events alone (R23, R25, E11). */
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { EDGE, jobOf, type LaneId } from "#schema/Ids.ts"
import type { CoreLane } from "#src/shared/session/State.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { Violation } from "./Kernel.ts"
import { hasOutside } from "./outsideText.ts"
import { REPETITIONS_STUCK_MIN } from "#src/agent/session/CoreJob.ts"
import { REPETITIONS_REFUSED_MIN } from "#src/agent/arbiter/decideCalls.ts"

/** Tools that no job can be denied. */
const ALWAYS_ALLOWED: ReadonlySet<string> = new Set([
  "choir.core.report",
  "choir.core.writeback",
  "choir.skill.transition"
])

/** What a running job has used up. */
interface Job {
  readonly started: EventOf<"CoreStarted">
  steps: number
  toolCalls: number
  injections: number
}

/** How often a lane got the same answer to the same call in a row. */
interface Streak {
  call: string
  result: string
  times: number
}

export class JobRules {
  readonly #budgets: AgentConfig["budgets"]
  readonly #confirm: AgentConfig["approvals"]["confirm_external"]
  /** Lanes that saw untrusted text. */
  readonly #tainted = new Set<LaneId>()
  readonly #jobs = new Map<LaneId, Job>()
  /** Jobs that can be resumed, and what they used up. */
  readonly #resumable = new Map<string, Job>()
  readonly #calls = new Map<string, { readonly lane: LaneId; readonly digest: string; readonly name: string }>()
  readonly #streaks = new Map<LaneId, Streak>()
  /** Whether somebody else wrote the newest message. */
  #isForwarded = false
  #toolCalls = 0
  #turnSteps = 0
  tokens = 0
  /** The largest single model call. */
  largest = 0

  constructor({ approvals, budgets }: AgentConfig) {
    this.#budgets = budgets
    this.#confirm = approvals.confirm_external
  }

  /** What the state counts of a running job is what the events hold: nothing sets a count back (R23). */
  same({ injections, lane, step, tool_calls }: CoreLane): void {
    const job = this.#jobs.get(lane)
    if (job === undefined) throw new Violation("I9", `${lane} runs by the state, but not by the events`)
    if (job.steps !== step || job.toolCalls !== tool_calls || job.injections !== injections)
      throw new Violation(
        "I9",
        `the state counts ${step} steps, ${tool_calls} calls and ${injections} instructions of ${lane}, the events hold ${job.steps}, ${job.toolCalls} and ${job.injections}`
      )
  }

  event(event: ChoirEvent): void {
    switch (event.event_type) {
      case "UserMsg":
        this.#isForwarded = event.payload.forwarded === true
        if (this.#isForwarded) this.#tainted.add(EDGE)
        this.#turnSteps = 0
        this.#streaks.delete(EDGE)
        return
      case "AgentMessage":
        if (event.payload.kind === "notice") return
        this.#turnSteps = 0
        // A turn that was set aside begins to count again.
        this.#streaks.delete(EDGE)
        return
      case "ModelOutput":
        return this.#output(event)
      case "ToolCallRequested":
        return this.#request(event)
      case "ToolResultCommitted":
        return this.#result(event)
      case "CoreStarted": {
        const used = this.#resumable.get(event.payload.resumes?.job_id ?? "")
        const { injections, steps, toolCalls } = used ?? { steps: 0, toolCalls: 0, injections: 0 }
        this.#jobs.set(event.lane, { started: event, steps, toolCalls, injections })
        this.#streaks.delete(event.lane)
        if (this.#tainted.has(EDGE)) this.#tainted.add(event.lane)
        return this.#limit(this.#jobs.size, this.#budgets.max_core_jobs, "jobs at once")
      }
      case "CoreStopped":
        if (event.payload.resumable !== undefined)
          this.#resumable.set(event.payload.job_id, this.#jobs.get(event.lane) as Job)
        this.#jobs.delete(event.lane)
        if (this.#tainted.delete(event.lane)) this.#tainted.add(EDGE)
        return
      case "SkillTransitionCommitted":
        return this.#begins(event)
      case "InjectedInstruction":
        return this.#injection(event)
      case "CompactionCommitted":
        if (event.payload.split?.ended === true) this.#tainted.delete(event.lane)
        return
      default:
        return
    }
  }

  #limit(value: number, most: number, what: string): void {
    if (value > most) throw new Violation("I9", `${value} ${what}, of ${most}`)
  }

  #output({ lane, payload, rev }: EventOf<"ModelOutput">): void {
    const { input_tokens, output_tokens } = payload.usage
    this.tokens += input_tokens + output_tokens
    this.largest = Math.max(this.largest, input_tokens + output_tokens)
    if (payload.purpose !== "turn" && payload.purpose !== "report") return
    for (const { call_id, input, name } of payload.tool_calls)
      this.#calls.set(call_id, { lane, name, digest: canonicalJson([name, input]) })
    const job = this.#jobs.get(lane)
    if (job === undefined) return this.#limit(++this.#turnSteps, this.#budgets.turn_max_steps, "steps of a turn")
    this.#limit(++job.steps, job.started.payload.budgets.max_steps, `steps of ${lane}`)
    if ((this.#streaks.get(lane)?.times ?? 0) >= REPETITIONS_STUCK_MIN)
      throw new Violation("I9", `${lane} goes on at ${rev} though it kept repeating one step (R25)`)
  }

  #request({ lane, payload, rev }: EventOf<"ToolCallRequested">): void {
    this.#limit(++this.#toolCalls, this.#budgets.max_tool_calls_per_session, "tool calls of the session")
    const call = this.#calls.get(payload.call_id)
    const streak = this.#streaks.get(lane)
    if (streak !== undefined && streak.call === call?.digest && streak.times >= REPETITIONS_REFUSED_MIN)
      throw new Violation("I9", `${lane} repeats ${payload.tool} at ${rev} for the ${streak.times + 1}th time (R25)`)
    const isForeign = this.#tainted.has(lane) || hasOutside(payload.input)
    const needsPerson = this.#confirm === "always" || (this.#confirm === "tainted" && isForeign)
    if (payload.effect === "external" && needsPerson && payload.confirm === undefined)
      throw new Violation("J4", `${lane} asks for ${payload.tool} at ${rev} without anybody's confirmation (D31)`)
    const job = this.#jobs.get(lane)
    if (job === undefined) return
    const { budgets, start } = job.started.payload
    this.#limit(++job.toolCalls, budgets.max_tool_calls, `tool calls of ${lane}`)
    const { allowed_tools } = start.tool_constraints
    const { tool } = payload
    if (allowed_tools.length > 0 && !ALWAYS_ALLOWED.has(tool) && !allowed_tools.some((name) => name === tool))
      throw new Violation("J2", `${lane} uses ${tool} at ${rev}, which its constraints do not allow`)
  }

  #result({ lane, payload }: EventOf<"ToolResultCommitted">): void {
    const call = this.#calls.get(payload.call_id)?.digest ?? ""
    if (payload.untrusted === true) this.#tainted.add(lane)
    const result = canonicalJson([payload.status, payload.summary, payload.output ?? null])
    const streak = this.#streaks.get(lane)
    const again = streak?.call === call && (streak.result === result || payload.status === "rejected")
    if (again) streak.times++
    else this.#streaks.set(lane, { call, result, times: 1 })
  }

  /** Words begin a skill only where they are trusted. */
  #begins({ lane, payload, rev }: EventOf<"SkillTransitionCommitted">): void {
    const { skill, trigger } = payload
    if (trigger === undefined || trigger === "person") return
    if (lane === EDGE ? this.#isForwarded : this.#tainted.has(EDGE))
      throw new Violation("K9", `${skill} begins on ${lane} at ${rev} by ${trigger}, in words of somebody outside`)
  }

  #injection({ lane, payload, rev }: EventOf<"InjectedInstruction">): void {
    const job = jobOf(lane) === undefined ? undefined : this.#jobs.get(lane)
    if (job === undefined || payload.refused !== undefined) return
    if (payload.source === "edge" && this.#tainted.has(EDGE)) this.#tainted.add(lane)
    this.#limit(++job.injections, job.started.payload.budgets.max_injections, `instructions of ${lane} at ${rev}`)
  }
}
