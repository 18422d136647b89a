/** `choirctl config load` and `apply`: stage the files, show the changes, ask, apply exactly these, and restart the agents that need it. */
import { Effect, Result, Stream } from "effect"
import type { ApplyReport, ConfigChange, ConfigPlan, PlannedChange } from "#schema/ConfigApi.ts"
import type { AgentId } from "#schema/Ids.ts"
import { ask, askStream, choirdAnswers, followProgress } from "#src/choirctl/client/ask.ts"
import { type Applied, appliedText, planLines, type Restarted, unbuiltOf } from "#src/choirctl/render/config.ts"
import type { Joined } from "#src/choirctl/render/setup.ts"
import { CommandFailed, EXIT, failed, Unsuccessful } from "#src/choirctl/terminal/failure.ts"
import { printAdvice, withProgress } from "#src/choirctl/terminal/print.ts"
import { confirm } from "#src/choirctl/terminal/questions.ts"
import { root, startCommand } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { jsonText, safeLine } from "#src/choirctl/terminal/text.ts"
import { type Problem, problemText } from "#src/shared/config/configProblems.ts"
import { onHome } from "#src/shared/files/homeFolder.ts"

/** With --json the problems are a list of paths and reasons beside the pinned error. */
export const refused = Effect.fnUntraced(function* (message: string, problems: ReadonlyArray<Problem>, hint: string) {
  const { json } = yield* root
  const screen = yield* Screen
  const error = { type: "CONFIG", message, hint }
  if (json) {
    yield* screen.print(jsonText({ ok: false, error, problems }))
    return yield* new Unsuccessful({ exit_code: EXIT.config })
  }
  for (const problem of problems) yield* screen.note(safeLine(problemText(problem)))
  return yield* new CommandFailed({ type: error.type, problem: error.message, hint, exit_code: EXIT.config })
})

/** Makes choird read, check and stage the files of its home. Steps and warnings go to standard error. */
export const loadConfig = Effect.gen(function* () {
  const screen = yield* Screen
  const steps = askStream("configuration", (choird) => choird.load()).pipe(
    Stream.tap((step) => {
      if (step.type !== "failed" || step.error.type !== "CONFIG") return Effect.void
      const { error, problems = [] } = step
      return refused(`nothing is staged: ${error.message}`, problems, error.hint ?? "choirctl config validate")
    })
  )
  const report = yield* followProgress(
    steps,
    failed("LOAD_BROKE_OFF", "choird exited before it had read everything", "choirctl config load")
  )
  for (const warning of report.warnings) yield* screen.note(`warning: ${safeLine(warning)}`)
  return report
})

const unique = <A>(values: ReadonlyArray<A>) => [...new Set(values)]

const concerned = (changes: ReadonlyArray<PlannedChange>) => unique(changes.flatMap(({ restarts }) => restarts))

const isRunning = (id: AgentId) =>
  ask("agents", (choird) => choird.status({ params: { id } })).pipe(
    Effect.map(({ status }) => status === "running"),
    Effect.orElseSucceed(() => false)
  )

const restarted = Effect.fnUntraced(function* (id: AgentId) {
  const asking = ask("agents", (choird) => choird.restart({ params: { id }, payload: {} }))
  const done = yield* Effect.result(asking.pipe(withProgress(`restarting ${id}`)))
  if (Result.isSuccess(done)) return { agent_id: id, outcome: "restarted" } satisfies Restarted
  const { hint, problem, type } = done.failure
  if (type === "NOT_RUNNING") return { agent_id: id, outcome: "not running" } satisfies Restarted
  const error = { type, message: problem, ...(hint === undefined ? {} : { hint }) }
  return { agent_id: id, outcome: (yield* isRunning(id)) ? "refused" : "failed", error } satisfies Restarted
})

const hasFailed = ({ outcome }: Restarted) => outcome === "refused" || outcome === "failed"

/** Changes still pending after the restarts: those that choird reports, and those that no restart of an agent applies. */
const stillPending = (plan: ConfigPlan, first: ApplyReport, last: ApplyReport): ReadonlyArray<ConfigChange> => {
  const byRestart = new Set(plan.changes.flatMap(({ path, restarts }) => (restarts.length > 0 ? [path] : [])))
  const all = [...last.pending, ...first.pending.filter(({ path }) => !byRestart.has(path))]
  return [...new Map(all.map((row) => [row.path, row])).values()]
}

const carryOut = Effect.fnUntraced(function* (plan: ConfigPlan, restart: boolean) {
  const apply = ask("configuration", (choird) => choird.applyPlan({ payload: { plan: plan.plan } }))
  const first = yield* apply.pipe(withProgress("applying"))
  const agents = concerned(plan.changes)
  if (!restart || agents.length === 0) return { ...first, restarted: [], needs_restart: agents } satisfies Applied
  const outcomes = yield* Effect.forEach(agents, restarted)
  // What an agent held on to goes when it has let go.
  const last = yield* apply.pipe(withProgress("applying"))
  return {
    version: last.version,
    previous: first.previous,
    applied: [...first.applied, ...last.applied],
    pending: stillPending(plan, first, last),
    restarted: outcomes,
    needs_restart: outcomes.filter(hasFailed).map(({ agent_id }) => agent_id)
  } satisfies Applied
})

const untouched = ({ changes, version }: ConfigPlan): Applied => ({
  version,
  previous: version,
  applied: [],
  pending: changes.map(({ change, class: kind, command, path }) => ({ path, change, class: kind, command })),
  restarted: [],
  needs_restart: concerned(changes)
})

/** @param restart whether agents are restarted that take a change over only when they start. */
export const applyConfig = Effect.fn("choirctl.applyConfig")(function* ({
  restart,
  yes
}: {
  readonly restart: boolean
  readonly yes: boolean
}) {
  const { json } = yield* root
  const screen = yield* Screen
  yield* loadConfig
  const plan = yield* ask("configuration", (choird) => choird.plan())
  const agents = concerned(plan.changes)
  const nothing = !plan.changes.some(({ applies }) => applies) && !(restart && agents.length > 0)
  const lines = planLines(plan.changes, screen.color && screen.transient)
  if (!json && (nothing || yes)) for (const line of lines) yield* screen.note(line)
  // A restart without a build would come up on the old commits, so none is made; what was asked for is not done.
  const undone = restart && unbuiltOf(plan.changes).length > 0
  if (nothing) {
    yield* printAdvice(untouched(plan), appliedText)
    return undone ? yield* new Unsuccessful({ exit_code: EXIT.failed }) : undefined
  }
  const flags = restart ? "--restart --yes" : "--yes"
  const also = restart && agents.length > 0 ? [`These agents will be restarted: ${agents.join(", ")}.`] : []
  yield* confirm({
    yes,
    about: [...lines, ...also],
    ask: "Apply these changes?",
    command: `choirctl config apply ${flags}`
  })
  const done = yield* carryOut(plan, restart)
  yield* printAdvice(done, appliedText)
  if (undone || done.restarted.some(hasFailed)) return yield* new Unsuccessful({ exit_code: EXIT.failed })
})

/** Whether choird took an addition over, and what kept it from it otherwise. */
export type Addition =
  | { readonly type: "applied"; readonly version: number }
  | { readonly type: "other changes"; readonly paths: ReadonlyArray<string> }
  | { readonly type: "refused"; readonly problem: string }

/** Applies what was just added to config.json, unless other changes wait there as well. */
export const applyAddition = Effect.fn("choirctl.applyAddition")(
  function* (paths: ReadonlyArray<string>) {
    yield* loadConfig
    const plan = yield* ask("configuration", (choird) => choird.plan())
    const others = plan.changes.filter(({ applies, path }) => applies && !paths.includes(path))
    if (others.length > 0) return { type: "other changes", paths: others.map(({ path }) => path) } as const
    const { version } = yield* ask("configuration", (choird) => choird.applyPlan({ payload: { plan: plan.plan } }))
    return { type: "applied", version } as const
  },
  Effect.catchIf(
    (error) => error instanceof CommandFailed,
    ({ problem }) => Effect.succeed<Addition>({ type: "refused", problem })
  )
)

/** Applies new entries of config.json to a running choird; `applied` is null if none runs, and `note` says why they were not applied. */
export const applyEntries = Effect.fn("choirctl.applyEntries")(function* (name: string, added: ReadonlyArray<string>) {
  const { home } = yield* root
  if (!(yield* choirdAnswers(home))) return { applied: null, note: undefined }
  const done = yield* applyAddition(added)
  if (done.type === "applied") return { applied: true, note: undefined }
  const note =
    done.type === "refused"
      ? `choird did not accept ${name}: ${done.problem}`
      : `config.json has other changes that choird has not applied (${done.paths.join(", ")}), so ${name} is not applied either`
  return { applied: false, note }
})

/**
 * Applies a new agent to a running choird, and returns the commands that come next.
 *
 * @param added the new entries of config.json.
 */
export const joinChoird = Effect.fn("choirctl.joinChoird")(function* (id: AgentId, added: ReadonlyArray<string>) {
  const { home } = yield* root
  const apply = onHome(home, "choirctl config apply")
  const on = ["agent build", "agent start", "chat"].map((command) => onHome(home, `choirctl ${command} ${id}`))
  const { applied, note } = yield* applyEntries(id, added)
  const next = applied === null ? [startCommand(home), ...on] : applied ? on : [apply, ...on]
  return { applied, next, ...(note === undefined ? {} : { note }) } satisfies Joined
})
