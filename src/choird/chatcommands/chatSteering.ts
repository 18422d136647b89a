/** Orders of a chat to the running session of its agent, with answers in words for a person. */
import { Effect, Option } from "effect"
import type { AgentId, JobName, ResourceName } from "#schema/Ids.ts"
import { boundDms } from "#schema/ResourceBindings.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import type { Order } from "#src/choird/sessions/Order.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Steering } from "#src/choird/sessions/Steering.ts"
import { writersAt } from "#src/shared/config/people.ts"
import { writtenBy } from "#src/shared/text/writtenBy.ts"
import { localMinute } from "#src/shared/text/localTime.ts"
import { shownLabel } from "#src/shared/session/labels.ts"
import { originsOf, sourceWords } from "#src/shared/session/sourceWords.ts"
import { nextReport } from "#src/shared/session/turns.ts"
import { choose, numbered } from "./Choices.ts"
import type { Answer } from "./Answer.ts"
import { refusedAnswer, sentence } from "./refusedAnswer.ts"
import type { Speaker } from "./Speaker.ts"
import type { Command } from "./readCommand.ts"

const notice = (text: string): Answer => ({ kind: "notice", text })
const refusal = (text: string): Answer => ({ kind: "refusal", text })

/** There is no turn to stop, but jobs go on. */
const nothingRuns = ([first, ...others]: ReadonlyArray<JobName>) =>
  first === undefined
    ? "Nothing is running."
    : `Only jobs are running: ${[first, ...others].join(", ")}. To end one: /cancel ${first}`

export const orderOf = (
  command: Extract<Command, { readonly type: "inject" | "answer" | "compact" | "cancel" | "new" | "stop" }>
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
    case "new":
      return { type: "NewSession", ...(command.end_jobs ? { end_jobs: true } : {}) }
    case "cancel":
      return command.job_name === undefined ? { type: "Cancel" } : { type: "CancelCore", job_name: command.job_name }
  }
}

/** An order with the name of the person whose words it brings, where several people talk to the agent. */
const signed = (order: Order, writer: ResourceName | undefined): Order =>
  order.type === "Inject" || order.type === "Answer"
    ? { ...order, content: writtenBy({ text: order.content, writer }) }
    : order

/** An agent with the state of its session, as far as it has one. */
export const makeLook = Effect.gen(function* () {
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

/** Gives an order to the session of the speaker's agent. */
export const makeSteer = Effect.gen(function* () {
  const audit = yield* Audit
  const config = yield* ConfigStore
  const look = yield* makeLook
  const sessions = yield* SessionStore
  const steering = yield* Steering
  return Effect.fnUntraced(function* (wanted: Order, { agent_id, gateway, request_id, writer }: Speaker) {
    const { state, view } = yield* look(agent_id)
    const people =
      view.bindings === null ? undefined : writersAt((yield* config.current).config, boundDms(view.bindings))
    const order = signed(wanted, people?.get(writer))
    const { session_id } = view
    if (session_id === null && order.type === "NewSession" && view.status === "running") {
      yield* databaseDefect(sessions.continueNothing(agent_id))
      yield* audit.record({ who: `gateway:${gateway}`, action: "session.new", agent_id, detail: {} })
      return notice("Your next message begins a new conversation.")
    }
    if (session_id === null) {
      const entry = { who: `gateway:${gateway}`, action: "session.steer", agent_id }
      yield* audit.record({ ...entry, detail: { refused: "NOT_RUNNING", order: order.type } })
      return refusal("There is no conversation at the moment; your next message starts a fresh one.")
    }
    const request = { session_id, request_id: `${gateway}:${request_id}`, who: `gateway:${gateway}`, wait_ms: 0 }
    const ordered = yield* Effect.result(databaseDefect(steering.order(request, order)))
    if (ordered._tag === "Failure") {
      const { failure } = ordered
      if (failure._tag === "SteeringRefused" && failure.kind === "NOTHING_RUNS")
        return notice(nothingRuns([...(state?.cores.keys() ?? [])]))
      if (failure._tag === "SteeringRefused" && failure.kind === "JOB_AMBIGUOUS" && order.type === "Cancel")
        return choose("Which job?", "cancel", numbered([...(state?.cores.keys() ?? [])]))
      if (failure._tag === "SteeringRefused" && failure.kind === "OTHER_TEXT") return refusedAnswer(failure)
      if (failure._tag === "SteeringRefused" && failure.kind === "JOBS_RUN")
        return refusal(`${sentence(failure.message)} Wait for the report, or send /new yes to end what runs.`)
      const namesJobs = order.type === "CancelCore" || order.type === "Cancel" || order.type === "Answer"
      return namesJobs ? refusedAnswer(failure) : refusal(sentence(failure.message))
    }
    const { body } = ordered.success
    switch (body.type) {
      case "Inject":
        if (body.job_name !== undefined) return notice(`Passed on to ${body.job_name}.`)
        return notice(
          state?.edge.state === "EDGE_IDLE" && nextReport(state) === undefined
            ? "Noted. The agent is idle and will read this with your next message."
            : "Noted. The agent will read this at its next step."
        )
      case "CancelCore":
        return notice(`${body.job_name} is being cancelled.`)
      case "StartSkill":
        return notice(`The skill ${body.skill} runs as the job ${body.job_name}.`)
      case "StopTurn":
        return notice("Stopping.")
      case "NewSession":
        return notice(
          state === undefined || (state.edge.state === "EDGE_IDLE" && nextReport(state) === undefined)
            ? "A new conversation begins. What I was asked to remember stays."
            : "A new conversation begins as soon as this answer is there. /stop ends the answer."
        )
      case "Trust":
        return notice("What this conversation has read so far counts as trusted from my next step on.")
      case "Compact":
        return notice("The older part of the conversation is being summarised.")
    }
  })
})

/** The text from outside in the conversation of the speaker's agent, with the number that takes it for trusted. */
export const makeShowOutside = Effect.map(makeLook, (look) =>
  Effect.fnUntraced(function* ({ agent_id, zone }: Speaker) {
    const { state } = yield* look(agent_id)
    const shown = shownLabel(state?.edge)
    if (shown === undefined) return notice("No text from outside is in this conversation.")
    const lines = originsOf(shown.sources).map((source) => `- ${sourceWords(source)}`)
    return notice(
      [
        "This conversation has read text from outside:",
        ...lines,
        `While it is there, I ask before anything acts outside. It leaves by ${localMinute(shown.until, zone)} if no more of it comes.`,
        `To take it for trusted: /trust ${state?.edge.label?.rev}`
      ].join("\n")
    )
  })
)
