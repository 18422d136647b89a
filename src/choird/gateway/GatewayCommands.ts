/** The execution of a chat's commands, with answers in words for a person. */
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { Budgets } from "#schema/Config.ts"
import { type AgentId, EDGE, type ResourceName } from "#schema/Ids.ts"
import type { PromptContext } from "#schema/PromptContext.ts"
import type { CoreSummary } from "#schema/SessionsApi.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { type AgentView, Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { Contexts } from "#src/choird/queues/Contexts.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { summaryOf } from "#src/choird/sessions/jobSummaries.ts"
import { type Order, Steering } from "#src/choird/sessions/Steering.ts"
import { contextLine, contextShares } from "#src/shared/session/contextShares.ts"
import { jobLines } from "#src/shared/session/jobText.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { makeChatDecisions } from "./chatDecisions.ts"
import { makeChatMemory } from "./chatMemory.ts"
import type { Command } from "./readCommand.ts"

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

const coresText = (jobs: ReadonlyArray<CoreSummary>): Answer =>
  jobs.length === 0 ? notice("No job runs.") : notice(...jobs.flatMap(jobLines))

const contextAnswer = (context: PromptContext): Answer =>
  notice(
    sentence(contextLine(context)),
    ...contextShares(context).map(({ name, tokens }) => `${name}: ${tokens} tokens`)
  )

const orderOf = (
  command: Extract<Command, { readonly type: "inject" | "answer" | "compact" | "cancel" | "stop" }>
): Order => {
  switch (command.type) {
    case "inject":
      return { type: "Inject", content: command.content }
    case "answer": {
      const { content, job_name } = command
      return { type: "Answer", content, ...(job_name === undefined ? {} : { job_name }) }
    }
    case "compact":
      return { type: "Compact" }
    case "stop":
      return { type: "StopTurn" }
    case "cancel":
      return command.job_name === undefined ? { type: "Cancel" } : { type: "CancelCore", job_name: command.job_name }
  }
}

/** An agent with the state of its session, as far as it has one. */
const makeLook = Effect.gen(function* () {
  const events = yield* EventStore
  const lifecycle = yield* Lifecycle
  return Effect.fnUntraced(function* (agent_id: AgentId) {
    const view = yield* Effect.orDie(lifecycle.view(agent_id))
    const state =
      view.session_id === null
        ? undefined
        : Option.getOrUndefined(yield* Effect.option(databaseDefect(events.state(view.session_id))))
    return { view, state }
  })
})

const make = Effect.fnUntraced(function* () {
  const audit = yield* Audit
  const config = yield* ConfigStore
  const contexts = yield* Contexts
  const decisions = yield* makeChatDecisions
  const memory = yield* makeChatMemory
  const events = yield* EventStore
  const models = yield* Models
  const steering = yield* Steering

  const look = yield* makeLook

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
      const namesJobs = order.type === "CancelCore" || order.type === "Cancel" || order.type === "Answer"
      return refusal(`${sentence(failure.message)}${namesJobs ? ` ${sentence(failure.hint)}` : ""}`)
    }
    const { wish } = ordered.success
    switch (wish.type) {
      case "Inject":
        if (wish.job_name !== undefined) return notice(`Passed on to ${wish.job_name}.`)
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
          if (state === undefined || view.session_id === null) return coresText([])
          const words = yield* databaseDefect(events.jobWords(view.session_id, state))
          const now_ms = yield* Clock.currentTimeMillis
          return coresText([...state.cores.values()].map((core) => summaryOf(core, words.get(core.job_name), now_ms)))
        }
        case "context": {
          const { view } = yield* look(speaker.agent_id)
          return view.session_id === null
            ? refusal("There is no conversation at the moment.")
            : yield* Effect.match(contexts.ask(view.session_id, EDGE), {
                onFailure: ({ message }) => refusal(sentence(message)),
                onSuccess: contextAnswer
              })
        }
        case "inject":
        case "answer":
        case "compact":
        case "cancel":
        case "stop":
          return yield* steer(orderOf(command), speaker)
        case "memory":
          return yield* memory.memory(command.query, speaker)
        case "forget":
          return yield* memory.forget(command.text, speaker)
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
