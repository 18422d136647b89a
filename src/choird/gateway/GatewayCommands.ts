/** The execution of a chat's commands, with answers in words for a person. */
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { Budgets } from "#schema/Config.ts"
import type { CoreReport } from "#schema/Core.ts"
import type { AgentId, JobName, ResourceName } from "#schema/Ids.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { type AgentView, Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { type Order, Steering } from "#src/choird/sessions/Steering.ts"
import { reportLine } from "#src/shared/session/reported.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { makeChatDecisions } from "./chatDecisions.ts"
import type { Command } from "./readCommand.ts"

/** Characters of a job's latest words that the list of jobs shows in a chat. */
const CHAT_REPORT_CHARS_MAX = 300

/** The person who typed it, and the identity by which a repetition is the same request. */
export interface Speaker {
  readonly agent_id: AgentId
  readonly gateway: ResourceName
  readonly dm: ResourceName
  readonly request_id: string
}

export interface Answer {
  readonly kind: "notice" | "refusal"
  readonly text: string
}

/** Runs commands for the person at an agent's DM. */
export class GatewayCommands extends Context.Service<
  GatewayCommands,
  {
    /** Never fails: a refusal is an answer. A command repeated with its request_id takes effect once. */
    run(command: Command, speaker: Speaker): Effect.Effect<Answer>
  }
>()("choir/choird/GatewayCommands") {
  static readonly layer = Layer.effect(
    GatewayCommands,
    Effect.suspend(() => make())
  )
}

const notice = (...lines: ReadonlyArray<string>): Answer => ({ kind: "notice", text: lines.join("\n") })
const refusal = (text: string): Answer => ({ kind: "refusal", text })

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`

/** `CORE_WAITING_TOOL` as a person reads it. */
const stateWords = (state: string) =>
  state
    .replace(/^[A-Z]+_/u, "")
    .toLowerCase()
    .replaceAll("_", " ")

/** The activity of edge. A call that waits for a person gets its own line, unless another turn runs meanwhile. */
const activityText = (state: SessionState, edge_waits: boolean): ReadonlyArray<string> => {
  if (state.edge.state === "EDGE_IDLE") return ["Nothing is open."]
  return edge_waits && state.edge.parked === undefined ? [] : ["It is at work."]
}

const standing = ({ agent_id, since_ms, status }: AgentView, now_ms: number): string => {
  if (status !== "running") return `${agent_id} is ${status}.`
  const minutes = Math.floor((now_ms - since_ms) / 60_000)
  return `${agent_id} has been running for ${minutes < 1 ? "less than a minute" : `${minutes} min`}.`
}

/** The session's use of its limits, and the skill that edge is in. */
const usedText = ({ edge, spent }: SessionState, { max_cost_usd, max_tool_calls_per_session, ...budgets }: Budgets) => {
  const cost = max_cost_usd === null ? "" : `, ${spent.cost_usd.toFixed(2)} of ${max_cost_usd} USD`
  return [
    ...(edge.skill === undefined ? [] : [`Skill: ${edge.skill.name}, step ${edge.skill.state}.`]),
    `Used: ${spent.tokens} of ${budgets.total_session_tokens} tokens, ${spent.tool_calls} of ${max_tool_calls_per_session} tool calls${cost}.`
  ]
}

const statusText = (
  view: AgentView,
  state: SessionState | undefined,
  budgets: Budgets,
  approvals: { readonly lines: ReadonlyArray<string>; readonly edge: boolean },
  now_ms: number
): Answer => {
  const cores = [...(state?.cores.keys() ?? [])]
  return notice(
    standing(view, now_ms),
    ...(view.reason === null ? [] : [`${view.reason}.`]),
    ...(state === undefined ? [] : activityText(state, approvals.edge)),
    ...approvals.lines,
    ...(cores.length === 0 ? [] : [`Jobs: ${cores.join(", ")}.`]),
    ...(state === undefined ? [] : usedText(state, budgets))
  )
}

const coresText = (state: SessionState | undefined, reports: ReadonlyMap<JobName, CoreReport>): Answer => {
  const cores = [...(state?.cores.values() ?? [])]
  if (cores.length === 0) return notice("No job runs.")
  return notice(
    ...cores.map(({ job_name, state, step }) => {
      const report = reports.get(job_name)
      const said = report === undefined ? "" : `; ${reportLine(report).slice(0, CHAT_REPORT_CHARS_MAX).toWellFormed()}`
      return `${job_name}: ${stateWords(state)}, step ${step}${said}`
    })
  )
}

const orderOf = (command: Extract<Command, { readonly type: "inject" | "compact" | "cancel" | "stop" }>): Order => {
  switch (command.type) {
    case "inject":
      return { type: "Inject", content: command.content }
    case "compact":
      return { type: "Compact" }
    case "stop":
      return { type: "StopTurn" }
    case "cancel":
      return command.job_name === undefined ? { type: "Cancel" } : { type: "CancelCore", job_name: command.job_name }
  }
}

const make = Effect.fnUntraced(function* () {
  const audit = yield* Audit
  const config = yield* ConfigStore
  const decisions = yield* makeChatDecisions
  const events = yield* EventStore
  const lifecycle = yield* Lifecycle
  const models = yield* Models
  const steering = yield* Steering

  const look = Effect.fnUntraced(function* (agent_id: AgentId) {
    const view = yield* Effect.orDie(lifecycle.view(agent_id))
    const state =
      view.session_id === null
        ? undefined
        : Option.getOrUndefined(yield* Effect.option(databaseDefect(events.state(view.session_id))))
    return { view, state }
  })

  const steer = Effect.fnUntraced(function* (order: Order, { agent_id, gateway, request_id }: Speaker) {
    const { state, view } = yield* look(agent_id)
    const { session_id } = view
    if (session_id === null) {
      const entry = { who: `gateway:${gateway}`, action: "session.steer", agent_id }
      yield* audit.record({ ...entry, detail: { refused: "NOT_RUNNING", order: order.type } })
      return refusal("There is no conversation at the moment; your next message starts a fresh one.")
    }
    const request = { session_id, request_id: `${gateway}:${request_id}`, who: `gateway:${gateway}`, wait_ms: 0 }
    const ordered = yield* Effect.result(databaseDefect(steering.order(request, order)))
    if (ordered._tag === "Failure") {
      const { failure } = ordered
      if (failure._tag === "SteeringRefused" && failure.kind === "NOTHING_RUNS") return notice("Nothing is running.")
      const isCancel = order.type === "CancelCore" || order.type === "Cancel"
      return refusal(`${sentence(failure.message)}${isCancel ? ` ${sentence(failure.hint)}` : ""}`)
    }
    const { wish } = ordered.success
    switch (wish.type) {
      case "Inject":
        return notice(
          state?.edge.state === "EDGE_IDLE"
            ? "Noted. Nothing is open, so it is read with your next message."
            : "Noted. It is read at the next step."
        )
      case "CancelCore":
        return notice(`${wish.job_name} is being cancelled.`)
      case "StopTurn":
        return notice("Stopping.")
      case "Compact":
        return notice("The older part of the conversation is being summarised.")
    }
  })

  const setModel = Effect.fnUntraced(function* (llm: ResourceName, { agent_id, gateway }: Speaker) {
    const set = yield* Effect.result(models.set(agent_id, `gateway:${gateway}`, { llm }))
    if (set._tag === "Failure") return refusal(`${sentence(set.failure.reason)} ${sentence(set.failure.hint)}`)
    return notice(`${llm} answers from the next step on, until the agent is started again.`)
  })

  return GatewayCommands.of({
    run: Effect.fn("GatewayCommands.run")(function* (command, speaker) {
      switch (command.type) {
        case "status": {
          const { state, view } = yield* look(speaker.agent_id)
          const { budgets } = (yield* config.current).config
          return statusText(view, state, budgets, yield* decisions.waiting(speaker), yield* Clock.currentTimeMillis)
        }
        case "decide":
          return yield* decisions.decide(command, speaker)
        case "cores": {
          const { state, view } = yield* look(speaker.agent_id)
          const said =
            state === undefined || view.session_id === null
              ? new Map<JobName, CoreReport>()
              : yield* databaseDefect(events.reports(view.session_id, state))
          return coresText(state, said)
        }
        case "inject":
        case "compact":
        case "cancel":
        case "stop":
          return yield* steer(orderOf(command), speaker)
        case "model": {
          const { core_llm, llm } = yield* Effect.orDie(models.get(speaker.agent_id))
          return notice(llm === core_llm ? `${llm} answers and works.` : `${llm} answers, ${core_llm} works in jobs.`)
        }
        case "set model":
          return yield* setModel(command.llm, speaker)
      }
    })
  })
})
