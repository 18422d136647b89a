/** `choirctl config apply`: reads the files, shows the difference, asks, applies exactly that, and restarts whom it concerns. */
import { Effect, Result } from "effect"
import type { ApplyReport, ConfigChange, ConfigPlan, PlannedChange } from "#schema/ConfigApi.ts"
import type { AgentId } from "#schema/Ids.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { confirm } from "#src/choirctl/terminal/confirm.ts"
import { CommandFailed, EXIT, Unsuccessful } from "#src/choirctl/terminal/failure.ts"
import { loadConfig } from "#src/choirctl/client/loadConfig.ts"
import { printAdvice } from "#src/choirctl/terminal/print.ts"
import { withProgress } from "#src/choirctl/terminal/progress.ts"
import { type Applied, appliedText, planLines, type Restarted, unbuiltOf } from "#src/choirctl/render/plan.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"

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

/** What is left after the restarts: what choird says is left, and what no restart of an agent takes over. */
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
