/** choirctl agent: set up, build, start, monitor and stop agents, and make the repository that their images are built from. */
import { Effect, Option, Schema, type Stream } from "effect"
import { Command, Flag, Prompt } from "effect/cli"
import { type AgentId, ResourceName } from "#schema/Ids.ts"
import type { AgentSummary } from "#schema/AgentSummary.ts"
import type { UpdateProgress } from "#schema/AgentsApi.ts"
import { ask, askStream, followProgress } from "#src/choirctl/client/ask.ts"
import { EXIT, failed, Unsuccessful, usageError } from "#src/choirctl/terminal/failure.ts"
import type { Choice } from "#src/choirctl/home/initAgent.ts"
import { print, printAdvice } from "#src/choirctl/terminal/print.ts"
import { withProgress } from "#src/choirctl/terminal/print.ts"
import {
  agentDetail,
  agentLine,
  agentTable,
  buildLine,
  keptLines,
  unpricedLines,
  updateLines
} from "#src/choirctl/render/agents.ts"
import { initAgentText, initBaseText } from "#src/choirctl/render/setup.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { askPerson } from "#src/choirctl/terminal/questions.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { safeLine } from "#src/choirctl/terminal/text.ts"
import { agentDelete } from "./agentDelete.ts"
import { agentId } from "#src/choirctl/commands/flags/arguments.ts"
import { briefFlag } from "#src/choirctl/commands/flags/briefFlag.ts"

const resource = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(description),
    Flag.withMetavar("<name>"),
    Flag.withSchema(ResourceName),
    Flag.optional
  )

const workspace = resource("workspace", "Workspace from config.json")
const llm = resource("llm", "Model from config.json")
const core_llm = resource("core-llm", "Model from config.json for core jobs; default: the agent's core_llm, else --llm")
const dm = resource("dm", "DM from config.json that the agent talks in")

/** `--dm phone --dm terminal`, or `--dm phone,terminal`. */
const dms = Flag.String("dm").pipe(
  Flag.withDescription("DM from config.json that the agent talks in; repeat for several, the main one first"),
  Flag.withMetavar("<name>"),
  Flag.atLeast(0),
  Flag.map((values) => values.flatMap((value) => value.split(","))),
  Flag.withSchema(Schema.Array(ResourceName))
)

const list = Command.make(
  "list",
  {},
  Effect.fnUntraced(function* () {
    const rows = yield* ask("agents", (choird) => choird.list())
    yield* printAdvice(rows, agentTable)
  })
).pipe(
  Command.withDescription("List all agents and their status"),
  Command.withExamples([{ command: "choirctl agent list" }])
)

const status = Command.make(
  "status",
  { id: agentId },
  Effect.fnUntraced(function* ({ id }) {
    const detail = yield* ask("agents", (choird) => choird.status({ params: { id } }))
    yield* printAdvice(detail, agentDetail)
  })
).pipe(
  Command.withDescription("Show an agent's lanes, budgets, bindings and uptime"),
  Command.withExamples([{ command: "choirctl agent status agent-1" }])
)

/** The flags that were given. */
const given = <A extends Readonly<Record<string, Option.Option<unknown>>>>(flags: A) =>
  Object.fromEntries(
    Object.entries(flags).flatMap(([key, value]) => (Option.isSome(value) ? [[key, value.value]] : []))
  ) as { readonly [K in keyof A]?: Option.Option.Value<A[K]> }

/** Options of a start or a restart that replace the defaults. */
const overrides = {
  workspace,
  llm,
  core_llm,
  voice_profile: resource("voice-profile", "Voice profile from config.json"),
  git_identity: resource("git-identity", "Git identity from config.json"),
  notion: resource("notion", "Notion integration from config.json"),
  email: resource("email", "E-mail account from config.json"),
  search: resource("search", "Search engine from config.json"),
  dms
} as const

type Overrides = {
  readonly [K in keyof typeof overrides]: (typeof overrides)[K] extends Flag.Flag<infer A> ? A : never
}

/** The overrides as choird takes them: `dm` is a list, absent if no DM is named. */
const named = ({ dms, ...flags }: Overrides) => ({ ...given(flags), ...(dms.length === 0 ? {} : { dm: dms }) })

/** Warns of models without a price: a start may name a model that config.json does not bind, so validating the file did not warn. */
const warnUnpriced = Effect.fnUntraced(function* ({ health }: AgentSummary) {
  const screen = yield* Screen
  for (const line of health === undefined ? [] : unpricedLines(health.cost_usd)) yield* screen.note(line)
})

const start = Command.make(
  "start",
  {
    id: agentId,
    ...overrides,
    fresh: Flag.Boolean("fresh").pipe(
      Flag.withDescription("Start a new session instead of continuing the last one"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ fresh, id, ...flags }) {
    const payload = { ...named(flags), ...(fresh ? { fresh } : {}) }
    const summary = yield* ask("agents", (choird) => choird.start({ params: { id }, payload })).pipe(
      withProgress(`starting ${id}`)
    )
    yield* warnUnpriced(summary)
    yield* printAdvice(summary, agentLine)
  })
).pipe(
  Command.withDescription("Start an agent; options that are not given use its defaults in config.json"),
  Command.withExamples([{ command: "choirctl agent start agent-1 --dm phone --dm terminal" }])
)

const stop = Command.make(
  "stop",
  { id: agentId },
  Effect.fnUntraced(function* ({ id }) {
    const summary = yield* ask("agents", (choird) => choird.stop({ params: { id } })).pipe(
      withProgress(`stopping ${id}`)
    )
    yield* printAdvice(summary, agentLine)
  })
).pipe(
  Command.withDescription("Stop an agent at its next safe point; its session can be resumed"),
  Command.withExamples([{ command: "choirctl agent stop agent-1" }])
)

const restart = Command.make(
  "restart",
  { id: agentId, ...overrides },
  Effect.fnUntraced(function* ({ id, ...flags }) {
    const screen = yield* Screen
    const summary = yield* ask("agents", (choird) => choird.restart({ params: { id }, payload: named(flags) })).pipe(
      withProgress(`restarting ${id}`)
    )
    for (const line of keptLines(summary)) yield* screen.note(line)
    yield* warnUnpriced(summary)
    yield* printAdvice(summary, agentLine)
  })
).pipe(
  Command.withDescription(
    "Restart an agent on its newest image with its defaults in config.json; options given to agent start are kept"
  ),
  Command.withExamples([
    { command: "choirctl agent restart agent-1" },
    { command: "choirctl agent restart agent-1 --llm sonnet" }
  ])
)

const build = Command.make(
  "build",
  {
    id: agentId,
    force: Flag.Boolean("force").pipe(
      Flag.withDescription("Build even if the image is up to date"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ force, id }) {
    const screen = yield* Screen
    const report = yield* followProgress(
      askStream("agents", (choird) => choird.build({ params: { id }, payload: { force } })),
      failed("BUILD_BROKE_OFF", "choird exited before the build finished", `choirctl agent build ${id}`)
    )
    for (const warning of report.warnings) yield* screen.note(`warning: ${safeLine(warning)}`)
    yield* printAdvice(report, buildLine)
  })
).pipe(
  Command.withDescription("Build an agent's image from the global repository and its own; does not start the agent"),
  Command.withExamples([{ command: "choirctl agent build agent-1" }])
)

/** Prints what an update did; the exit code says if it failed for an agent. */
const printUpdate = Effect.fnUntraced(function* <E, R>(steps: Stream.Stream<UpdateProgress, E, R>, again: string) {
  const screen = yield* Screen
  const rows = yield* followProgress(
    steps,
    failed("UPDATE_BROKE_OFF", "choird exited before the update finished", again)
  )
  for (const { agent_id, warnings } of rows)
    for (const warning of warnings) yield* screen.note(`warning: ${agent_id}: ${safeLine(warning)}`)
  yield* printAdvice(rows, updateLines)
  const broken = rows.some(({ outcome }) => outcome === "failed")
  return broken ? yield* new Unsuccessful({ exit_code: EXIT.failed }) : undefined
})

const update = Command.make(
  "update",
  { id: agentId },
  Effect.fnUntraced(function* ({ id }) {
    yield* printUpdate(
      askStream("updates", (choird) => choird.one({ params: { id } })),
      `choirctl agent update ${id}`
    )
  })
).pipe(
  Command.withDescription("Build an agent's image if its repositories changed, and restart the agent if it is running"),
  Command.withExamples([{ command: "choirctl agent update agent-1" }])
)

const updateAll = Command.make(
  "update-all",
  {},
  Effect.fnUntraced(function* () {
    yield* printUpdate(
      askStream("updates", (choird) => choird.all()),
      "choirctl agent update-all"
    )
  })
).pipe(
  Command.withDescription(
    "Update all agents, one after the other; agents that are not running are built but not started"
  ),
  Command.withExamples([{ command: "choirctl agent update-all" }])
)

const shareMemory = Flag.Boolean("share-memory").pipe(
  Flag.withDescription(
    "Let all agents search each other's memory; without it they do not, and on a terminal a second agent asks"
  ),
  Flag.optional
)

/** The answer about the memory of several agents: by the flag, by the person at the terminal, or none. */
const crossReadOf = Effect.fnUntraced(function* (id: AgentId, flag: Option.Option<boolean>) {
  if (Option.isSome(flag)) return { cross_read: flag.value ? "all" : "none" } as const
  const { home, json } = yield* root
  const screen = yield* Screen
  if (json || !screen.interactive) return {}
  const { asksAboutMemory } = yield* Effect.promise(() => import("#src/choirctl/home/initAgent.ts"))
  if (!(yield* onHost(asksAboutMemory(home, id)))) return {}
  const message = "May your agents search each other's memory? What you tell one, the others can then find."
  return {
    cross_read: (yield* onHost(askPerson(Prompt.Confirm({ message, initial: false })))) ? "all" : "none"
  } as const
})

const dailyBrief = Flag.String("daily-brief").pipe(
  Flag.withDescription("Let it send a brief each day at this time, such as 07:30; on a terminal the first agent asks"),
  Flag.withMetavar("<time>"),
  Flag.optional
)

/** The schedule of the brief: by the flag, by the person at the terminal, who sees the price first, or none. */
const briefOf = Effect.fnUntraced(function* (id: AgentId, choice: Choice, flag: Option.Option<string>) {
  const { home, json } = yield* root
  const screen = yield* Screen
  const { briefOffer, briefSchedule } = yield* Effect.promise(() => import("#src/choirctl/home/dailyBrief.ts"))
  const read = (typed: string) => Effect.fromResult(briefSchedule(typed))
  if (Option.isSome(flag))
    return {
      brief: yield* Effect.mapError(read(flag.value), (problem) => usageError("--daily-brief needs a time", problem))
    }
  if (json || !screen.interactive) return {}
  const { briefWriter } = yield* Effect.promise(() => import("#src/choirctl/home/initAgent.ts"))
  const writer = yield* onHost(briefWriter(home, id, choice))
  if (writer === undefined) return {}
  for (const line of yield* onHost(briefOffer(writer.model))) yield* screen.note(safeLine(line))
  const timeZone = writer.timezone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone
  const validate = (typed: string) => (typed.trim() === "" ? Effect.succeed("") : read(typed))
  const message = `Time of a daily brief (${timeZone}), such as 07:30 (Enter: no brief)`
  const schedule = yield* onHost(askPerson(Prompt.String({ message, validate })))
  return schedule === "" ? {} : { brief: schedule }
})

const init = Command.make(
  "init",
  { id: agentId, workspace, llm, dm, share_memory: shareMemory, daily_brief: dailyBrief, brief: briefFlag },
  Effect.fnUntraced(function* (flags) {
    const { home, json } = yield* root
    const { initAgent } = yield* Effect.promise(() => import("#src/choirctl/home/initAgent.ts"))
    const shared = yield* crossReadOf(flags.id, flags.share_memory)
    const named = given({ workspace: flags.workspace, llm: flags.llm, dm: flags.dm })
    const choice = { ...named, ...shared, ...(yield* briefOf(flags.id, named, flags.daily_brief)) }
    const made = yield* onHost(initAgent(home, flags.id, choice))
    const { agent_id, added, brief_left_out, daily_brief, dm, llm, repo, workspace } = made
    const { joinChoird } = yield* Effect.promise(() => import("./applyConfig.ts"))
    const joined = yield* joinChoird(agent_id, added)
    const screen = yield* Screen
    if (joined.note !== undefined) yield* screen.note(safeLine(joined.note))
    const { applied, next } = joined
    const all = { ok: true, agent_id, repo, workspace, llm, dm, daily_brief, brief_left_out, applied, next }
    if (!flags.brief || json) yield* print(all, initAgentText)
  })
).pipe(
  Command.withDescription("Add an agent to config.json and create the repository with its tools, skills and identity"),
  Command.withExamples([{ command: "choirctl agent init agent-1 --llm sonnet" }])
)

const baseInit = Command.make(
  "init",
  {
    bare: Flag.Boolean("bare").pipe(
      Flag.withDescription("Create a bare repository, to push to"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ bare }) {
    const { home } = yield* root
    const { initBase } = yield* Effect.promise(() => import("#src/choirctl/home/repositories.ts"))
    const made = yield* onHost(initBase(home, bare ? "bare" : "worktree"))
    yield* printAdvice({ ok: true, ...made }, initBaseText)
  })
).pipe(
  Command.withDescription(
    "Create the global repository named in config.json, with Dockerfile.base, tools, skills and USER.md"
  ),
  Command.withExamples([{ command: "choirctl agent base init" }])
)

const agentBase = Command.make("base").pipe(
  Command.withDescription("Set up the repository that all agents' images are built from"),
  Command.withSubcommands([baseInit])
)

export const agent = Command.make("agent").pipe(
  Command.withSubcommands([init, agentBase, list, build, update, updateAll, start, stop, restart, status, agentDelete])
)
