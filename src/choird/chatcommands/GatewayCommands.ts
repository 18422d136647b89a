/** The execution of a chat's commands, with answers in words for a person. */
import { Clock, Context, Effect, Layer, Stream } from "effect"
import type { Budgets } from "#schema/Config.ts"
import { type AgentId, EDGE, type ResourceName, type SessionId } from "#schema/Ids.ts"
import { boundDms } from "#schema/ResourceBindings.ts"
import { isPrintedEvent } from "#schema/SessionsApi.ts"
import type { PromptContext } from "#schema/PromptContext.ts"
import type { CoreSummary } from "#schema/SessionsApi.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { isAdmin } from "#src/choird/approvals/decider.ts"
import { traitsOf } from "#src/shared/config/channelTraits.ts"
import { hasSeveralPeople } from "#src/shared/config/people.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { Contexts } from "#src/choird/queues/Contexts.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { jobSummaries } from "#src/choird/sessions/jobSummaries.ts"
import { contextLabel, contextShares, contextSize } from "#src/shared/session/contextShares.ts"
import { jobLines, waitText } from "#src/shared/session/jobText.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { nextReport } from "#src/shared/session/turns.ts"
import type { Answer } from "./Answer.ts"
import { AgentCommands } from "./AgentCommands.ts"
import { makeChatDecisions } from "./chatDecisions.ts"
import { makeChatGrants } from "./chatGrants.ts"
import { makeChatMemory } from "./chatMemory.ts"
import { makeChatPlans } from "./chatPlans.ts"
import { makeLook, makeShowOutside, makeSteer, orderOf } from "./chatSteering.ts"
import { ChatSettings } from "./ChatSettings.ts"
import { makeChatVoice } from "./chatVoice.ts"
import { Choices, choose, numbered } from "./Choices.ts"
import { type AgentCommand, type Command, OF_ALL_WORDS } from "./readCommand.ts"
import { refusedAnswer, sentence } from "./refusedAnswer.ts"
import type { Speaker } from "./Speaker.ts"
import { standingText } from "./standingText.ts"
import { hostZone, localSecond } from "#src/shared/text/localTime.ts"
import { counted } from "#src/shared/text/counts.ts"

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

const listed = (what: string, names: ReadonlyArray<string>) => `${what}: ${[...names].sort().join(", ") || "none"}.`

/** The activity of edge. A call that waits for a person gets its own line, unless another turn runs meanwhile. */
const activityText = (state: SessionState, edge_waits: boolean): ReadonlyArray<string> => {
  if (edge_waits && state.edge.parked === undefined) return []
  if (nextReport(state) !== undefined) return ["It is reporting on a job."]
  if (state.edge.state === "EDGE_IDLE") return state.cores.size === 0 ? ["It is idle."] : []
  return ["It is working."]
}

/** The session's use of its limits, and the skill that edge is in. */
const usedText = ({ edge, spent }: SessionState, { max_cost_usd, max_tool_calls_per_session, ...budgets }: Budgets) => {
  const paid = spent.cost_usd > 0 ? `, ${spent.cost_usd.toFixed(2)} USD` : ""
  const cost = max_cost_usd === null ? paid : `, ${spent.cost_usd.toFixed(2)} of ${max_cost_usd} USD`
  return [
    ...(edge.skill === undefined ? [] : [`Skill: ${edge.skill.name}, step ${edge.skill.state}.`]),
    `Used: ${counted(spent.tokens)} of ${counted(budgets.total_session_tokens)} tokens, ${counted(spent.tool_calls)} of ${counted(max_tool_calls_per_session)} tool calls${cost}.`
  ]
}

/** The jobs that have begun, by name; one that waits for its provider says so. */
const jobNames = (jobs: ReadonlyArray<CoreSummary>, zone: string | undefined): ReadonlyArray<string> =>
  jobs
    .filter(({ lifecycle }) => lifecycle !== "PENDING")
    .map(({ job_name, provider_wait }) =>
      provider_wait === undefined ? job_name : `${job_name} (${waitText(provider_wait, zone)})`
    )

const statusText = (
  view: AgentView,
  state: SessionState | undefined,
  budgets: Budgets,
  approvals: { readonly lines: ReadonlyArray<string>; readonly edge: boolean },
  jobs: ReadonlyArray<string>,
  first: string
): Answer => {
  return notice(
    first,
    ...(view.reason === null ? [] : [`${view.reason}.`]),
    ...(state === undefined ? [] : activityText(state, approvals.edge)),
    ...approvals.lines,
    ...(jobs.length === 0 ? [] : [`Jobs: ${jobs.join(", ")}.`]),
    ...(state === undefined ? [] : usedText(state, budgets))
  )
}

const coresText = (jobs: ReadonlyArray<CoreSummary>, zone: string | undefined): Answer =>
  jobs.length === 0 ? notice("No jobs are running.") : notice(...jobs.flatMap((job) => jobLines(job, zone)))

const contextAnswer = (context: PromptContext, zone: string | undefined): Answer =>
  notice(
    `The last prompt to ${context.model} has ${contextSize(context)}:`,
    ...contextShares(context).map(({ name, tokens }) => `${name}: ${counted(tokens)}`),
    ...contextLabel(context, zone)
  )

/** The running jobs of an agent's session. */
const makeRunning = Effect.map(EventStore, (events) =>
  Effect.fnUntraced(function* ({ session_id }: AgentView, state: SessionState | undefined) {
    if (state === undefined || session_id === null) return []
    const words = yield* databaseDefect(events.jobWords(session_id, state))
    return jobSummaries(state, words, yield* Clock.currentTimeMillis)
  })
)

/** A list for a command whose argument is missing. */
const makeChoice = Effect.gen(function* () {
  const config = yield* ConfigStore
  return Effect.fnUntraced(function* ({ from, words }: Extract<Command, { readonly type: "choose" }>) {
    const { agents, models, workspaces } = (yield* config.current).config
    const names = Object.keys({ agent: agents, model: models, workspace: workspaces, job: {}, approval: {} }[from])
    return names.length === 0
      ? refusal(`There is no ${from} in config.json.`)
      : choose(`Which ${from}?`, words, numbered(names))
  })
})

/** The last events of a session, a line each: what happened and where, never a text. */
const makeEventLines = Effect.map(EventStore, (events) =>
  Effect.fnUntraced(function* (session_id: SessionId, count: number, zone: string | undefined) {
    const lines = yield* Effect.orDie(Stream.runCollect(events.events(session_id, { last: count, follow: false })))
    const shown = lines.map((line) => {
      const { created_at, event_type, lane, rev } = isPrintedEvent(line) ? line.event : line.opaque
      return `${rev}. ${localSecond(created_at, zone)} ${lane} ${event_type}`
    })
    return [`The newest events, by the clock of ${zone ?? hostZone()}:`, ...shown]
  })
)

/** The answers about the conversation: its size, and its events. */
const makeOfSession = Effect.gen(function* () {
  const contexts = yield* Contexts
  const eventLines = yield* makeEventLines
  const look = yield* makeLook
  return Effect.fnUntraced(function* (
    command: Extract<Command, { readonly type: "context" | "events" }>,
    speaker: Speaker
  ): Effect.fn.Return<Answer> {
    const { session_id } = (yield* look(speaker.agent_id)).view
    if (session_id === null) return refusal("There is no conversation at the moment.")
    if (command.type === "events") return notice(...(yield* eventLines(session_id, command.count, speaker.zone)))
    return yield* Effect.match(contexts.ask(session_id, EDGE), {
      onFailure: ({ message }) => refusal(sentence(message)),
      onSuccess: (context) => contextAnswer(context, speaker.zone)
    })
  })
})

/** How answers and reactions are shown in a chat. */
const makeDisplay = Effect.gen(function* () {
  const config = yield* ConfigStore
  const settings = yield* ChatSettings
  return Effect.fnUntraced(function* (
    { on, type }: Extract<Command, { readonly type: "rich" | "reactions" }>,
    { dm, gateway }: Speaker
  ) {
    if (!traitsOf((yield* config.current).config, gateway).reactions)
      return refusal(`/${type} is for a messenger: a terminal shows every answer as plain text, and no reactions.`)
    if (type === "rich") {
      yield* databaseDefect(settings.setRich(dm, on))
      return notice(
        on ? "Tables and long answers come as rich messages now." : "All answers come as plain messages now."
      )
    }
    yield* databaseDefect(settings.setReactions(dm, on))
    return notice(
      on ? "A message that has arrived gets 👀 until it is answered." : "Your messages no longer get reactions."
    )
  })
})

/** Commands about agents and workspaces, after a look whether those exist. A stop that names no agent may mean a job. */
const makeOnAgents = Effect.gen(function* () {
  const agents = yield* AgentCommands
  const audit = yield* Audit
  const config = yield* ConfigStore
  const lifecycle = yield* Lifecycle
  const look = yield* makeLook

  const jobsLine = Effect.fnUntraced(function* (name: AgentId, speaker: Speaker) {
    const jobs = [...((yield* look(speaker.agent_id)).state?.cores.keys() ?? [])]
    const job = jobs.find((one) => String(one) === name) ?? jobs[0]
    return job === undefined ? [] : [`Jobs: ${jobs.join(", ")}. To end one: /cancel ${job}`]
  })

  const unknown = Effect.fnUntraced(function* (command: AgentCommand, speaker: Speaker) {
    const { config: running } = yield* config.current
    if (command.type === "reset workspace") {
      const workspaces = Object.keys(running.workspaces)
      return workspaces.includes(command.name)
        ? []
        : [`There is no workspace ${command.name}. ${listed("Workspaces", workspaces)}`]
    }
    const name = "agent_id" in command ? command.agent_id : undefined
    const known = new Set([...Object.keys(running.agents), ...(yield* lifecycle.list).map(({ agent_id }) => agent_id)])
    if (name === undefined || known.has(name)) return []
    const jobs = command.type === "stop agent" ? yield* jobsLine(name, speaker) : []
    return [`There is no agent ${name}. ${listed("Agents", [...known])}`, ...jobs]
  })

  return Effect.fnUntraced(function* (command: AgentCommand, speaker: Speaker) {
    const problem = yield* unknown(command, speaker)
    if (problem.length === 0) return yield* agents.run(command, speaker)
    const [verb = "", noun = ""] = command.type.split(" ")
    const who = `gateway:${speaker.gateway}/${speaker.writer}`
    yield* audit.record({ who, action: `${noun}.${verb}`, detail: { refused: `UNKNOWN_${noun.toUpperCase()}` } })
    return refusal(problem.join("\n"))
  })
})

/** Names of models in one answer. */
const MODELS_NAMED_MAX = 10

/** The models that an agent runs on, and the others that it can be switched to. */
const makeModelAnswer = Effect.gen(function* () {
  const config = yield* ConfigStore
  const models = yield* Models
  return Effect.fnUntraced(function* ({ agent_id }: Speaker) {
    const { core_llm, llm } = yield* Effect.orDie(models.get(agent_id))
    const { models: all } = (yield* config.current).config
    const others = Object.keys(all).filter((name) => name !== llm)
    const named = (name: ResourceName) => (Object.hasOwn(all, name) ? `${name} (${all[name]?.model})` : name)
    return notice(
      llm === core_llm
        ? `The model is ${named(llm)}.`
        : `${named(llm)} talks with you; ${named(core_llm)} runs the jobs.`,
      ...(others.length === 0
        ? []
        : [`To switch: /model llm <name>. ${listed("Others", others.slice(0, MODELS_NAMED_MAX))}`])
    )
  })
})

/** The switch to another model, which an admin may make the default. */
const makeSetModel = Effect.gen(function* () {
  const models = yield* Models
  const onAgents = yield* makeOnAgents
  return Effect.fnUntraced(function* (llm: ResourceName, keep: boolean, speaker: Speaker) {
    const { admin, agent_id, gateway } = speaker
    if (keep && !admin) return refusal("Only an admin can change the default model. Leave out default to switch now.")
    const set = yield* Effect.result(models.set(agent_id, `gateway:${gateway}`, { llm }))
    if (set._tag === "Failure") return refusedAnswer(set.failure)
    if (keep) return yield* onAgents({ type: "default model", llm }, speaker)
    return notice(`Switched to ${llm}, from the next step until the agent is started again.`)
  })
})

/** Why a person may not give a command: others' words are an admin's to read and to forget. */
const makeHindrance = Effect.gen(function* () {
  const config = yield* ConfigStore
  const lifecycle = yield* Lifecycle
  return Effect.fnUntraced(function* ({ type }: Command, { agent_id, writer }: Speaker) {
    if (!OF_ALL_WORDS.has(type)) return undefined
    const { config: running } = yield* config.current
    const { bindings } = yield* Effect.orDie(lifecycle.view(agent_id))
    if (bindings === null || isAdmin(running, writer) || !hasSeveralPeople(running, boundDms(bindings)))
      return undefined
    return refusal(`Several people talk with ${agent_id}, so only an admin may use /${type}.`)
  })
})

const make = Effect.fnUntraced(function* () {
  const hindrance = yield* makeHindrance
  const choice = yield* makeChoice
  const choices = yield* Choices
  const config = yield* ConfigStore
  const decisions = yield* makeChatDecisions
  const grants = yield* makeChatGrants
  const memory = yield* makeChatMemory
  const plans = yield* makeChatPlans
  const ofSession = yield* makeOfSession
  const display = yield* makeDisplay
  const voice = yield* makeChatVoice
  const look = yield* makeLook
  const running = yield* makeRunning
  const showOutside = yield* makeShowOutside
  const steer = yield* makeSteer
  const onAgents = yield* makeOnAgents

  const modelAnswer = yield* makeModelAnswer
  const setModel = yield* makeSetModel

  const answer = Effect.fnUntraced(function* (command: Command, speaker: Speaker): Effect.fn.Return<Answer> {
    switch (command.type) {
      case "status": {
        const { state, view } = yield* look(speaker.agent_id)
        const { budgets } = (yield* config.current).config
        const now_ms = yield* Clock.currentTimeMillis
        const jobs = state === undefined || state.cores.size === 0 ? [] : yield* running(view, state)
        const first = standingText(view, now_ms, speaker.zone)
        return statusText(view, state, budgets, yield* decisions.waiting(speaker), jobNames(jobs, speaker.zone), first)
      }
      case "decide":
        return yield* decisions.decide(command, speaker)
      case "grants":
        return yield* grants.list(speaker)
      case "revoke grant":
        return yield* grants.revoke(command.grant_id, speaker)
      case "approvals":
        return yield* decisions.list(speaker)
      case "cores": {
        const { state, view } = yield* look(speaker.agent_id)
        return coresText(yield* running(view, state), speaker.zone)
      }
      case "context":
      case "events":
        return yield* ofSession(command, speaker)
      case "trust":
        return command.rev === undefined
          ? yield* showOutside(speaker)
          : yield* steer({ type: "Trust", rev: command.rev }, speaker)
      case "inject":
      case "answer":
      case "compact":
      case "cancel":
      case "new":
      case "stop":
        return yield* steer(orderOf(command), speaker)
      case "memory":
        return yield* memory.memory(command.query, speaker)
      case "forget":
        return yield* memory.forget(command.text, speaker)
      case "remind":
      case "next":
      case "order plan":
      case "again":
        return yield* plans(command, speaker)
      case "model":
        return yield* modelAnswer(speaker)
      case "set model":
        return yield* setModel(command.llm, command.keep, speaker)
      case "rich":
      case "reactions":
        return yield* display(command, speaker)
      case "voice":
      case "voice mode":
      case "set voice":
        return yield* voice(command, speaker)
      case "choose":
        return yield* choice(command)
      default:
        return yield* onAgents(command, speaker)
    }
  })

  return GatewayCommands.of({
    run: Effect.fn("GatewayCommands.run")(function* (command, speaker) {
      const { choices: offered, ...said } = (yield* hindrance(command, speaker)) ?? (yield* answer(command, speaker))
      if (offered !== undefined) yield* choices.offer(speaker, offered.words, offered.options)
      return said
    })
  })
})
