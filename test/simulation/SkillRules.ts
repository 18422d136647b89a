/** The rules of skills, counted again from the stored events alone: K1 to K8. */
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import type { SkillSpec } from "#schema/Skill.ts"
import { Violation } from "./Kernel.ts"

const TRANSITION = "choir.skill.transition"
const REPORT = "choir.core.report"
const RETRY = "control:retry"

/** Where a lane's skill is. */
interface Running {
  readonly spec: SkillSpec
  readonly state: string
  readonly entered_rev: number
  steps: number
  /** Results that were sent back. */
  retries: number
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
  /** The newest verdict of each lane, and what each call proposed. */
  readonly #verdicts = new Map<LaneId, EventOf<"ModelOutput">["payload"]>()
  readonly #inputs = new Map<string, unknown>()

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
    if (payload.purpose === "judge") this.#verdicts.set(lane, payload)
    if (payload.purpose !== "turn" && payload.purpose !== "report") return
    for (const { call_id, input } of payload.tool_calls) {
      this.#outputs.set(call_id, rev)
      this.#inputs.set(call_id, input)
    }
    const running = this.#running.get(lane)
    if (running === undefined) return
    const isScript = running.spec.contract?.execution_class === "deterministic"
    if (isScript !== payload.model.startsWith("skill:"))
      throw new Violation("K8", `${payload.model} speaks at ${rev} in ${running.spec.name} on ${lane}`)
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

  #move(event: EventOf<"SkillTransitionCommitted">): void {
    const { lane, payload, rev } = event
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
      this.#running.set(lane, { spec, state: to, entered_rev: rev, steps: 0, retries: 0, broken: new Set() })
      return
    }
    if (running?.state !== from || running.spec !== spec) throw wrong("it is not there")
    if (running.steps !== step) throw wrong(`it took ${running.steps} steps, not ${step}`)
    if (on === RETRY) return this.#retry(running, event)
    this.#scope(running, event)
    const known =
      spec.states[from]?.transitions.some((transition) => transition.on === on && transition.to === to) === true
    const isCancel = on === "cancel" && ended === "cancelled" && (spec.interruptible || reason !== undefined)
    const isFailure = on === "error" && ended === "failed" && reason !== undefined && to === ""
    if (!known && !isCancel && !isFailure) throw wrong(`the state has no such transition ${on}`)
    const proposed = this.#outputs.get(this.#granted.get(lane) ?? "") ?? 0
    if (reason === undefined && proposed < running.entered_rev) throw wrong("it was proposed in another state")
    const isEnd = ended !== undefined
    if (isEnd !== (to === "" || spec.states[to]?.terminal === true)) throw wrong(`it ended as ${ended}`)
    if (ended === "completed") this.#judged(running, event)
    this.#running.delete(lane)
    const { retries } = running
    if (!isEnd) this.#running.set(lane, { spec, state: to, entered_rev: rev, steps: step, retries, broken: new Set() })
  }

  /** A result that is sent back moves nothing and gives nothing back. */
  #retry(running: Running, { lane, payload, rev }: EventOf<"SkillTransitionCommitted">): void {
    const most = running.spec.contract?.retries ?? 0
    if (payload.to !== payload.from || payload.ended !== undefined || payload.writes !== undefined)
      throw new Violation("K7", `a result of ${lane} is sent back at ${rev} and changes something`)
    if (++running.retries > most)
      throw new Violation("K7", `retry ${running.retries} of ${running.spec.name} on ${lane} at ${rev}, of ${most}`)
    this.#running.set(lane, { ...running, entered_rev: rev })
  }

  /** Only what a step may write changes, and only what a skill declares. */
  #scope({ spec, state }: Running, { lane, payload, rev }: EventOf<"SkillTransitionCommitted">): void {
    const scope = spec.states[state]?.state_write ?? spec.contract?.state_write ?? []
    for (const field of Object.keys(payload.writes ?? {}))
      if (!scope.includes(field))
        throw new Violation("K5", `${lane} writes ${field} at ${rev} in ${state} of ${spec.name}`)
  }

  /** A result that was not sure by itself has a verdict on it that is good enough. */
  #judged({ spec }: Running, { lane, payload, rev }: EventOf<"SkillTransitionCommitted">): void {
    const threshold = spec.contract?.confidence_threshold
    if (threshold === undefined) return
    const call_id = this.#granted.get(lane) ?? ""
    const input = this.#inputs.get(call_id) as Readonly<Record<string, unknown>> | undefined
    const blocks = input?.["judge_blocks"]
    const confidence = input?.["confidence"]
    const isSure = typeof confidence === "number" && confidence >= threshold
    if (isSure && (!Array.isArray(blocks) || blocks.length === 0)) return
    const verdict = this.#verdicts.get(lane)
    const [call] = verdict?.tool_calls ?? []
    const said = call?.input as { readonly score?: unknown; readonly unsupported?: unknown } | undefined
    const passes =
      verdict?.judges === call_id &&
      verdict.error === undefined &&
      verdict.tool_calls.length === 1 &&
      typeof said?.score === "number" &&
      said.score >= threshold &&
      said.score <= 1 &&
      Array.isArray(said.unsupported) &&
      said.unsupported.length === 0
    if (!passes)
      throw new Violation("K6", `${spec.name} on ${lane} ends well at ${rev} without a verdict: ${payload.on}`)
  }
}
