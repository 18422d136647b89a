/** choirctl agent: set up, build, start, watch and stop agents. */
import { Effect, Option, Schema, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { ResourceName } from "#schema/Ids.ts"
import type { AgentSummary, UpdateProgress } from "#schema/AgentsApi.ts"
import { ask, askStream } from "#src/choirctl/client/ask.ts"
import { EXIT, failed, refusedByChoird, Unsuccessful } from "#src/choirctl/terminal/failure.ts"
import { print, printAdvice } from "#src/choirctl/terminal/print.ts"
import { withProgress } from "#src/choirctl/terminal/progress.ts"
import {
  agentDetail,
  agentLine,
  agentTable,
  buildLine,
  keptLines,
  unpricedLines,
  updateLines
} from "#src/choirctl/render/agents.ts"
import { safeLine } from "#src/choirctl/terminal/safeText.ts"
import { initAgentText } from "#src/choirctl/render/setup.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { agentBase } from "./agentBase.ts"
import { agentId } from "./arguments.ts"

const resource = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(description),
    Flag.withMetavar("<name>"),
    Flag.withSchema(ResourceName),
    Flag.optional
  )

const workspace = resource("workspace", "Workspace of config.json")
const llm = resource("llm", "Model of config.json")
const core_llm = resource(
  "core-llm",
  "Model of config.json for core jobs; without it they use the agent's core_llm, else --llm"
)
const dm = resource("dm", "DM of config.json that the agent talks in")

/** `--dm phone --dm terminal`, or `--dm phone,terminal`. */
const dms = Flag.String("dm").pipe(
  Flag.withDescription("DM of config.json that the agent talks in; repeat it for several, the main one first"),
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

/** Starts override config.json for one run; a flag that is absent stays absent. */
const given = <A extends Readonly<Record<string, Option.Option<unknown>>>>(flags: A) =>
  Object.fromEntries(
    Object.entries(flags).flatMap(([key, value]) => (Option.isSome(value) ? [[key, value.value]] : []))
  ) as { readonly [K in keyof A]?: Option.Option.Value<A[K]> }

/** What a start or a restart names in place of the defaults. */
const overrides = {
  workspace,
  llm,
  core_llm,
  voice_profile: resource("voice-profile", "Voice profile of config.json"),
  git_identity: resource("git-identity", "Git identity of config.json"),
  notion: resource("notion", "Notion integration of config.json"),
  email: resource("email", "E-mail account of config.json"),
  dms
} as const

type Overrides = {
  readonly [K in keyof typeof overrides]: (typeof overrides)[K] extends Flag.Flag<infer A> ? A : never
}

/** As choird takes them: `dm` is a list, absent where no DM is named. */
const named = ({ dms, ...flags }: Overrides) => ({ ...given(flags), ...(dms.length === 0 ? {} : { dm: dms }) })

/** A start may name a model that config.json binds nowhere, so that validating the file did not warn of it. */
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
      Flag.withDescription("Begin a new session instead of going on with the last one"),
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
  Command.withDescription("Start an agent; what is not named comes from its defaults in config.json"),
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
    "Stop and start an agent on its newest image and its defaults of config.json; what agent start named is kept"
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
      Flag.withDescription("Build even when the image is up to date"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ force, id }) {
    const screen = yield* Screen
    const steps = askStream("agents", (choird) => choird.build({ params: { id }, payload: { force } }))
    const last = yield* steps.pipe(
      Stream.tap((step) => (step.type === "step" ? screen.note(safeLine(step.text)) : Effect.void)),
      Stream.runLast
    )
    const end = Option.getOrUndefined(last)
    if (end?.type === "failed") return yield* refusedByChoird(end.error)
    if (end?.type !== "done")
      return yield* failed("BUILD_BROKE_OFF", "choird ended before the build did", `choirctl agent build ${id}`)
    for (const warning of end.result.warnings) yield* screen.note(`warning: ${safeLine(warning)}`)
    yield* printAdvice(end.result, buildLine)
  })
).pipe(
  Command.withDescription("Build an agent's image from the global repository and its own; starts nothing"),
  Command.withExamples([{ command: "choirctl agent build agent-1" }])
)

/** Follows an update to its end. One that failed is told in its row, and by the exit code. */
const followed = Effect.fnUntraced(function* <E, R>(steps: Stream.Stream<UpdateProgress, E, R>, again: string) {
  const screen = yield* Screen
  const last = yield* steps.pipe(
    Stream.tap((step) => (step.type === "step" ? screen.note(safeLine(step.text)) : Effect.void)),
    Stream.runLast
  )
  const end = Option.getOrUndefined(last)
  if (end?.type === "failed") return yield* refusedByChoird(end.error)
  if (end?.type !== "done") return yield* failed("UPDATE_BROKE_OFF", "choird ended before the update did", again)
  for (const { agent_id, warnings } of end.result)
    for (const warning of warnings) yield* screen.note(`warning: ${agent_id}: ${safeLine(warning)}`)
  yield* printAdvice(end.result, updateLines)
  const broken = end.result.some(({ outcome }) => outcome === "failed")
  return broken ? yield* new Unsuccessful({ exit_code: EXIT.failed }) : undefined
})

const update = Command.make(
  "update",
  { id: agentId },
  Effect.fnUntraced(function* ({ id }) {
    yield* followed(
      askStream("updates", (choird) => choird.one({ params: { id } })),
      `choirctl agent update ${id}`
    )
  })
).pipe(
  Command.withDescription(
    "Build an agent's image where its repositories changed, and restart the agent on it if it runs"
  ),
  Command.withExamples([{ command: "choirctl agent update agent-1" }])
)

const updateAll = Command.make(
  "update-all",
  {},
  Effect.fnUntraced(function* () {
    yield* followed(
      askStream("updates", (choird) => choird.all()),
      "choirctl agent update-all"
    )
  })
).pipe(
  Command.withDescription("Update all agents, one after the other; those that do not run are built and not started"),
  Command.withExamples([{ command: "choirctl agent update-all" }])
)

const init = Command.make(
  "init",
  { id: agentId, workspace, llm, dm },
  Effect.fnUntraced(function* (flags) {
    const { home } = yield* root
    const { initAgent } = yield* Effect.promise(() => import("#src/choirctl/home/initAgent.ts"))
    const choice = given({ workspace: flags.workspace, llm: flags.llm, dm: flags.dm })
    const made = yield* onHost(initAgent(home, flags.id, choice))
    const { agent_id, added, dm, llm, repo, workspace } = made
    const { joinChoird } = yield* Effect.promise(() => import("./joinChoird.ts"))
    const joined = yield* joinChoird(agent_id, added)
    const screen = yield* Screen
    if (joined.note !== undefined) yield* screen.note(safeLine(joined.note))
    const { applied, next } = joined
    yield* print({ ok: true, agent_id, repo, workspace, llm, dm, applied, next }, initAgentText)
  })
).pipe(
  Command.withDescription("Add an agent to config.json and make the repository of its tools, skills and identity"),
  Command.withExamples([{ command: "choirctl agent init agent-1 --llm sonnet" }])
)

export const agent = Command.make("agent").pipe(
  Command.withDescription("Set up, build, start, watch and stop agents"),
  Command.withSubcommands([init, agentBase, list, build, update, updateAll, start, stop, restart, status])
)
