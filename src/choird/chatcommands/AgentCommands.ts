/**
 * Commands of a chat about whole agents and about Choir itself. Those that take long are answered at once, and their result comes as a
 * further message, so that nobody's messages wait for them.
 */
import { Context, Effect, FiberSet, Layer, Result } from "effect"
import type { ConfigChange } from "#schema/ConfigApi.ts"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { logDeath } from "#src/shared/background.ts"
import { makeImageSources } from "#src/choird/agents/imageSources.ts"
import { Leases } from "#src/choird/agents/Leases.ts"
import type { AgentRefused } from "#src/choird/agents/AgentRefused.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { mounted, type Updated, Updates } from "#src/choird/agents/Updates.ts"
import { Workspaces } from "#src/choird/agents/Workspaces.ts"
import { ConfigWriter } from "#src/choird/reconfiguration/ConfigWriter.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { Images } from "#src/choird/images/Images.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { Reconfiguration } from "#src/choird/reconfiguration/Reconfiguration.ts"
import { RESTART_CHOIRD } from "#src/choird/reconfiguration/reloadClasses.ts"
import { problemText } from "#src/shared/config/configProblems.ts"
import type { Answer } from "./Answer.ts"
import type { Speaker } from "./Speaker.ts"
import type { AgentCommand } from "./readCommand.ts"
import { chatOrder, type Refused, refusedAnswer, sentence, sentenceOn } from "./refusedAnswer.ts"

/** Long commands of all chats at once; the next one is refused. */
const AGENT_COMMANDS_MAX = 8
/** Lines of one answer about changes of the configuration. */
const CHANGES_SHOWN_MAX = 30

/** Runs commands about agents for a person who may give them. */
export class AgentCommands extends Context.Service<
  AgentCommands,
  {
    /** Never fails: a refusal is an answer. */
    run(command: AgentCommand, speaker: Speaker): Effect.Effect<Answer>
  }
>()("choir/choird/AgentCommands") {
  static readonly layer = Layer.effect(
    AgentCommands,
    Effect.suspend(() => make())
  ).pipe(Layer.provide([Updates.layer, Workspaces.layer]))
}

const notice = (...lines: ReadonlyArray<string>): Answer => ({ kind: "notice", text: lines.join("\n") })
const refusal = (text: string): Answer => ({ kind: "refusal", text })

const updateText = ({ agent_id, error, image_version, outcome, warnings }: Updated): string => {
  const words = {
    built: `has the new image ${image_version ?? ""} and is not running`,
    redeployed: `runs on ${image_version ?? "its new image"}`,
    skipped: "was up to date",
    failed: `failed: ${error?.message ?? "no reason is known"}`
  }[outcome]
  return [`${agent_id} ${words.trim()}`, ...warnings.map((warning) => `warning: ${warning}`)].join("; ")
}

/** Behind a change: what puts it to work. */
const takesEffect = ({ class: is, command }: ConfigChange): string => {
  if (is === "hot-reload") return ""
  if (command === RESTART_CHOIRD) return ", at a restart of choird"
  const order = chatOrder(command)
  return order === undefined ? ", at a restart" : `, by ${order}`
}

const changeLines = (changes: ReadonlyArray<ConfigChange>): ReadonlyArray<string> =>
  changes.length === 0
    ? ["No changes are waiting to be applied."]
    : [
        ...changes.slice(0, CHANGES_SHOWN_MAX).map((row) => `${row.path}: ${row.change}${takesEffect(row)}`),
        ...(changes.length > CHANGES_SHOWN_MAX ? [`and ${changes.length - CHANGES_SHOWN_MAX} more`] : [])
      ]

/** Says the result of long work in the chat when it is there. */
const makeLater = Effect.gen(function* () {
  const outbox = yield* Outbox
  const fibers = yield* FiberSet.make<void>()

  const say = ({ agent_id, dm, gateway, request_id }: Speaker, part: string, answer: Answer) =>
    Effect.ignore(
      outbox.tell({
        agent_id,
        dm,
        gateway,
        ...answer,
        source_id: `${gateway}:${request_id}/${part}`,
        in_reply_to: null
      }),
      { log: "Warn" }
    )

  /** @param work may say lines before its end. */
  const later = Effect.fnUntraced(function* (
    speaker: Speaker,
    doing: string,
    work: (say: (line: string) => Effect.Effect<void>) => Effect.Effect<Answer>
  ) {
    if ((yield* FiberSet.size(fibers)) >= AGENT_COMMANDS_MAX)
      return refusal("Too many commands are still running. Try again in a moment.")
    let lines = 0
    const line = (text: string) => Effect.suspend(() => say(speaker, `line-${(lines += 1)}`, notice(text)))
    const told = Effect.flatMap(work(line), (answer) => say(speaker, "done", answer))
    yield* FiberSet.run(fibers, logDeath("a command of a chat")(told))
    return notice(doing)
  })
  return later
})

const whoIs = ({ gateway, writer }: Speaker) => `gateway:${gateway}/${writer}`

/** Work on agents, with the words for its result. */
const makeWork = Effect.gen(function* () {
  const audit = yield* Audit
  const config = yield* ConfigStore
  const imageSources = yield* makeImageSources
  const images = yield* Images
  const lifecycle = yield* Lifecycle
  const updates = yield* Updates
  const workspaces = yield* Workspaces

  /** Does something to an agent, with its refusal as an answer; a person's order is audited whatever comes of it. */
  const onAgent = Effect.fnUntraced(function* (
    action: string,
    agent_id: AgentId,
    speaker: Speaker,
    work: Effect.Effect<string, AgentRefused>
  ) {
    const done = yield* Effect.result(work)
    const detail = Result.isFailure(done) ? { refused: done.failure.kind } : {}
    yield* audit.record({ who: whoIs(speaker), action, agent_id, detail })
    return Result.match(done, {
      onFailure: (failure) => refusedAnswer(failure, sentenceOn(agent_id, failure.message)),
      onSuccess: (text) => notice(sentenceOn(agent_id, text))
    })
  })

  const build = Effect.fnUntraced(function* (agent_id: AgentId) {
    const view = yield* lifecycle.view(agent_id)
    const sources = yield* imageSources(agent_id, view)
    const built = yield* Effect.result(images.build(agent_id, sources, { in_use: mounted(view) }))
    if (Result.isFailure(built)) return `the build of ${agent_id} failed: ${built.failure.message}`
    const { built: isNew, image_version, warnings } = built.success
    const about = isNew ? `${agent_id} has the new image ${image_version}` : `${agent_id} was up to date`
    return [about, ...warnings.map((warning) => `warning: ${warning}`)].join("; ")
  })

  const updateAll = Effect.fnUntraced(function* (speaker: Speaker, say: (line: string) => Effect.Effect<void>) {
    const ids = Object.keys((yield* config.current).config.agents).map((id) => AgentId.make(id))
    for (const [index, agent_id] of ids.entries()) {
      const done = yield* onAgent(
        "agent.update",
        agent_id,
        speaker,
        Effect.map(updates.one(agent_id, quiet), updateText)
      )
      yield* say(`${index + 1} of ${ids.length}: ${done.text}`)
    }
    return notice(ids.length === 0 ? "There are no agents." : "All agents are updated.")
  })

  const reset = Effect.fnUntraced(function* (name: ResourceName, speaker: Speaker) {
    const done = yield* Effect.result(workspaces.reset(name))
    const detail = { workspace: name, ...(Result.isFailure(done) ? { refused: done.failure.kind } : {}) }
    yield* audit.record({ who: whoIs(speaker), action: "workspace.reset", detail })
    if (Result.isFailure(done)) return refusedAnswer(done.failure)
    const { stopped } = done.success
    return notice(
      `${name} is empty.`,
      ...(stopped === null ? [] : [`${stopped} was stopped to do this; to start it again: /start ${stopped}`])
    )
  })

  return { build, onAgent, reset, updateAll }
})

/** An agent that runs is not started: the refusal comes at once. */
const ifRunning = <A, B>(
  { list }: Lifecycle["Service"],
  agent_id: AgentId,
  runs: Effect.Effect<A>,
  others: Effect.Effect<B>
) =>
  Effect.flatMap(list, (views): Effect.Effect<A | B> =>
    views.some((view) => view.agent_id === agent_id && view.status === "running") ? runs : others
  )

const make = Effect.fnUntraced(function* () {
  const lifecycle = yield* Lifecycle
  const updates = yield* Updates
  const later = yield* makeLater
  const shown = yield* makeShown
  const settings = yield* makeSettings
  const keepModel = yield* makeKeepModel

  const { build, onAgent, reset, updateAll } = yield* makeWork

  /** Commands that take effect on an agent, or on all, and take long. */
  const lasting = (command: Lasting, speaker: Speaker) => {
    const agent_id = "agent_id" in command && command.agent_id !== undefined ? command.agent_id : speaker.agent_id
    const does = (action: string, doing: string, work: Effect.Effect<string, AgentRefused>) =>
      later(speaker, `${doing} ${agent_id}.`, () => onAgent(action, agent_id, speaker, work))
    switch (command.type) {
      case "start agent": {
        const begun = lifecycle.startInChat(agent_id, speaker.dm, command.options)
        const started = Effect.as(begun, `${agent_id} is running`)
        const refused = onAgent("agent.start", agent_id, speaker, started)
        return ifRunning(lifecycle, agent_id, refused, does("agent.start", "Starting", started))
      }
      case "stop agent":
        return does("agent.stop", "Stopping", Effect.as(lifecycle.stop(agent_id), `${agent_id} is stopped`))
      case "restart agent":
        return does(
          "agent.restart",
          "Restarting",
          Effect.as(lifecycle.restart(agent_id), `${agent_id} is running again`)
        )
      case "update agent":
        return does("agent.update", "Updating", Effect.map(updates.one(agent_id, quiet), updateText))
      case "build agent":
        return does("agent.build", "Building", build(agent_id))
    }
  }

  return AgentCommands.of({
    run: Effect.fn("AgentCommands.run")(function* (command, speaker) {
      switch (command.type) {
        case "update all":
          return yield* later(speaker, "Updating all agents.", (say) => updateAll(speaker, say))
        case "list agents":
          return yield* shown.agents
        case "list workspaces":
          return yield* shown.workspaces
        case "list secrets":
          return yield* shown.secrets
        case "load config":
          return yield* later(speaker, "Reading config.json and secrets.json.", () => settings.load(whoIs(speaker)))
        case "diff config":
          return yield* settings.diff
        case "apply config":
          return yield* later(speaker, "Applying.", () => settings.apply(whoIs(speaker)))
        case "reset workspace": {
          const { name, sure } = command
          return sure
            ? yield* later(speaker, `Emptying ${name}.`, () => reset(name, speaker))
            : notice(
                `Everything in the workspace ${name} would be deleted. Send /workspace reset ${name} yes to do it.`
              )
        }
        case "default model":
          return yield* later(speaker, `Making ${command.llm} the default.`, () => keepModel(command.llm, speaker))
        default:
          return yield* lasting(command, speaker)
      }
    })
  })
})

type Lasting = Extract<
  AgentCommand,
  { readonly type: "start agent" | "stop agent" | "restart agent" | "update agent" | "build agent" }
>

const quiet = () => Effect.void

/** The lists that an admin is shown. */
const makeShown = Effect.gen(function* () {
  const config = yield* ConfigStore
  const leases = yield* Leases
  const lifecycle = yield* Lifecycle
  return {
    agents: Effect.map(lifecycle.list, (views) =>
      views.length === 0
        ? notice("There are no agents.")
        : notice(
            ...views.map(
              ({ agent_id, reason, status }) => `${agent_id}: ${status}${reason === null ? "" : `, ${reason}`}`
            )
          )
    ),
    workspaces: Effect.gen(function* () {
      const names = Object.keys((yield* config.current).config.workspaces)
      const held = yield* databaseDefect(leases.all)
      return notice(
        ...names.map((name) => {
          const holder = held.find((row) => row.kind === "workspace" && row.name === name)?.agent_id
          return `${name}: ${holder === undefined ? "free" : `held by ${holder}`}`
        })
      )
    }),
    secrets: Effect.map(config.secrets, (secrets) => {
      const names = Object.keys(secrets).sort()
      return names.length === 0 ? notice("There are no secrets.") : notice(...names)
    })
  }
})

/** Makes a model the default of the agent at a chat, in config.json. */
const makeKeepModel = Effect.gen(function* () {
  const audit = yield* Audit
  const edits = yield* ConfigWriter
  return Effect.fnUntraced(function* (llm: ResourceName, speaker: Speaker) {
    const { agent_id } = speaker
    const who = whoIs(speaker)
    const done = yield* Effect.result(edits.apply(who, [{ path: ["agents", agent_id, "defaults", "llm"], value: llm }]))
    const detail = { llm, ...(Result.isFailure(done) ? { refused: "NOT_APPLIED" } : {}) }
    yield* audit.record({ who, action: "model.default", agent_id, detail })
    return Result.isFailure(done)
      ? refusedAnswer(done.failure)
      : notice(`${llm} is the default model of ${agent_id} from now on.`)
  })
})

/** Changes of the configuration. */
const makeSettings = Effect.gen(function* () {
  const reconfiguration = yield* Reconfiguration
  const answered = Effect.matchEager({
    onFailure: ({
      hint,
      message,
      problems
    }: Refused & { readonly problems: ReadonlyArray<Parameters<typeof problemText>[0]> }) =>
      problems.length === 0
        ? refusedAnswer({ message, hint: hint ?? "" })
        : refusal([sentence(message), ...problems.map(problemText)].join("\n")),
    onSuccess: (lines: ReadonlyArray<string>) => notice(...lines)
  })
  return {
    load: (who: string) =>
      reconfiguration.load(who, quiet).pipe(
        Effect.map(({ changes, warnings }) => [...changeLines(changes), ...warnings.map((text) => `warning: ${text}`)]),
        answered
      ),
    diff: Effect.map(reconfiguration.diff, (changes) => notice(...changeLines(changes))),
    apply: (who: string) =>
      reconfiguration.apply(who).pipe(
        Effect.map(({ applied, pending, version }) => [
          `Version ${version} is running. Changes applied: ${applied.length}; waiting for a restart: ${pending.length}.`,
          ...(pending.length === 0 ? [] : changeLines(pending))
        ]),
        answered
      )
  }
})
