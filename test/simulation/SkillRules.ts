/** The rules of skills, counted again from the stored events alone: K1 to K4. */
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import type { SkillSpec } from "#schema/Skill.ts"
import { Violation } from "./Kernel.ts"

const TRANSITION = "choir.skill.transition"
const REPORT = "choir.core.report"

/** Where a lane's skill is. */
interface Running {
  readonly spec: SkillSpec
  readonly state: string
  readonly entered_rev: number
  steps: number
  /** Outputs of this state that broke its rules. */
  readonly broken: Set<number>
}

export class SkillRules {
  readonly #skills: ReadonlyMap<string, SkillSpec>
  readonly #retries: number
  readonly #running = new Map<LaneId, Running>()
  /** Calls with the revision of the output that proposed them, and the tool once it is requested. */
  readonly #outputs = new Map<string, number>()
  readonly #tools = new Map<string, string>()
  /** The newest call of each lane that was let through. */
  readonly #granted = new Map<LaneId, string>()

  /** Jobs that a step of edge's skill started, and the tools that the step allows. */
  readonly #within = new Map<LaneId, ReadonlyArray<string>>()

  constructor(skills: ReadonlyMap<string, SkillSpec>, retries: number) {
    this.#skills = skills
    this.#retries = retries
  }

  event(event: ChoirEvent): void {
    switch (event.event_type) {
      case "ModelOutput":
        return this.#output(event)
      case "ToolCallRequested":
        this.#tools.set(event.payload.call_id, event.payload.tool)
        return
      case "ToolCallCommitted":
        return this.#commit(event)
      case "ToolResultCommitted": {
        const { allowed, call_id, status } = event.payload
        if (status === "rejected" && allowed !== undefined) this.#breaks(event.lane, this.#outputs.get(call_id) ?? 0)
        return
      }
      case "SkillTransitionCommitted":
        return this.#move(event)
      case "CoreStarted": {
        const { spec, state } = this.#running.get(EDGE) ?? {}
        if (state !== undefined) this.#within.set(event.lane, spec?.states[state]?.allowed_tools ?? [])
        return
      }
      case "CoreStopped":
        this.#within.delete(event.lane)
        if (this.#running.has(event.lane)) throw new Violation("K2", `${event.lane} ended with its skill at work`)
        return
      default:
        return
    }
  }

  #breaks(lane: LaneId, rev: number): void {
    const running = this.#running.get(lane)
    if (running !== undefined && rev > running.entered_rev) running.broken.add(rev)
  }

  #output({ lane, payload, rev }: EventOf<"ModelOutput">): void {
    if (payload.purpose !== "turn" && payload.purpose !== "report") return
    for (const { call_id } of payload.tool_calls) this.#outputs.set(call_id, rev)
    const running = this.#running.get(lane)
    if (running === undefined) return
    const { broken, spec, state } = running
    if (++running.steps > spec.max_steps)
      throw new Violation("K3", `step ${running.steps} of ${spec.name} on ${lane} at ${rev}, of ${spec.max_steps}`)
    if (broken.size > this.#retries)
      throw new Violation(
        "K3",
        `${lane} goes on at ${rev} though ${state} of ${spec.name} was broken ${broken.size} times`
      )
    if (lane !== "edge" && payload.error === undefined && payload.tool_calls.length === 0) this.#breaks(lane, rev)
  }

  #commit({ lane, payload, rev }: EventOf<"ToolCallCommitted">): void {
    this.#granted.set(lane, payload.call_id)
    const tool = this.#tools.get(payload.call_id)
    const running = this.#running.get(lane)
    const within = this.#within.get(lane)
    if (within !== undefined && tool !== undefined && tool !== REPORT && !within.includes(tool))
      throw new Violation("K4", `${lane} runs ${tool} at ${rev}, which the skill that started it does not allow`)
    if (running === undefined || tool === TRANSITION) return
    const allowed = running.spec.states[running.state]?.allowed_tools ?? []
    if (!allowed.some((name) => name === tool))
      throw new Violation("K1", `${lane} runs ${tool} at ${rev} in ${running.state} of ${running.spec.name}`)
  }

  #move({ lane, payload, rev }: EventOf<"SkillTransitionCommitted">): void {
    const { ended, from, on, reason, skill, step, to } = payload
    const running = this.#running.get(lane)
    const spec = this.#skills.get(skill)
    const wrong = (why: string) =>
      new Violation("K2", `${skill} goes from "${from}" to "${to}" on ${lane} at ${rev}: ${why}`)
    if (spec === undefined) throw wrong("there is no such skill")
    if (from === "" && this.#within.has(lane))
      throw new Violation("K4", `${lane} was started by a skill and starts ${skill} at ${rev}`)
    if (from === "") {
      if (running !== undefined || to !== spec.initial_state) throw wrong("it cannot begin so")
      this.#running.set(lane, { spec, state: to, entered_rev: rev, steps: 0, broken: new Set() })
      return
    }
    if (running?.state !== from || running.spec !== spec) throw wrong("it is not there")
    if (running.steps !== step) throw wrong(`it took ${running.steps} steps, not ${step}`)
    const known =
      spec.states[from]?.transitions.some((transition) => transition.on === on && transition.to === to) === true
    const isCancel = on === "cancel" && ended === "cancelled" && (spec.interruptible || reason !== undefined)
    const isFailure = on === "error" && ended === "failed" && reason !== undefined && to === ""
    if (!known && !isCancel && !isFailure) throw wrong(`the state has no such transition ${on}`)
    const proposed = this.#outputs.get(this.#granted.get(lane) ?? "") ?? 0
    if (reason === undefined && proposed < running.entered_rev) throw wrong("it was proposed in another state")
    const isEnd = ended !== undefined
    if (isEnd !== (to === "" || spec.states[to]?.terminal === true)) throw wrong(`it ended as ${ended}`)
    this.#running.delete(lane)
    if (!isEnd) this.#running.set(lane, { spec, state: to, entered_rev: rev, steps: step, broken: new Set() })
  }
}
