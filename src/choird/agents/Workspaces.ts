/** Empties the folders that agents work in, which may be wiped at any time: nothing in them is the only copy. */
import { Context, Effect, Layer, Option, Schema } from "effect"
import type { Config } from "#schema/Config.ts"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import type { WorkspaceLabel } from "#schema/WorkspaceLabel.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { type ContainerError, ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { isInside } from "#src/choird/runtime/Ownership.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { WorkspaceLabels, workspacePath } from "#src/choird/sessions/WorkspaceLabels.ts"
import { realOf } from "#src/choird/config/realFolder.ts"
import { Leases, type ResourceHeld } from "./Leases.ts"
import type { AgentRefused } from "./AgentRefused.ts"
import type { AgentView } from "./AgentViews.ts"
import { Lifecycle } from "./Lifecycle.ts"
import { makeReapContainer } from "./prepareStart.ts"

/** The refusal to reset a workspace, which is unchanged; `FAILED` may have deleted part of it. */
export class WorkspaceRefused extends Schema.TaggedError<WorkspaceRefused>()("WorkspaceRefused", {
  kind: Schema.Literals(["UNKNOWN_WORKSPACE", "WORKSPACE_HELD", "WORKSPACE_REFUSED", "FAILED"]),
  workspace: ResourceName,
  reason: Schema.String,
  hint: Schema.String
}) {
  override get message() {
    return this.reason
  }
}

/** A workspace that is empty now. */
export interface ResetWorkspace {
  readonly name: ResourceName
  readonly path: string
  readonly stopped: AgentId | null
}

/** A workspace whose files no longer count as text from outside. */
export interface TrustedWorkspace {
  readonly name: ResourceName
  readonly path: string
  /** The label that they had before. */
  readonly label: WorkspaceLabel
}

export class Workspaces extends Context.Service<
  Workspaces,
  {
    /**
     * Stops the agent that holds a workspace, its folder, or one around or below it; then deletes all that is in it and keeps its folder
     * (D43, R41). No agent can take it meanwhile; refused if a second one works in these folders.
     */
    reset(name: ResourceName): Effect.Effect<ResetWorkspace, WorkspaceRefused>
    /**
     * Forgets where its files came from: a person has looked at them. Refused while an agent works there. It holds for sessions that begin
     * afterwards: one that is continued still knows its own, and labels the folder again.
     */
    trust(name: ResourceName): Effect.Effect<TrustedWorkspace, WorkspaceRefused>
  }
>()("choir/choird/Workspaces") {
  static readonly layer = Layer.effect(
    Workspaces,
    Effect.suspend(() => make)
  )
}

const overlaps = (one: string, other: string) => isInside(one, other) || isInside(other, one)

/** The agent that works in this folder, in one around it or in one below, by what its run began with. */
const userOf = (views: ReadonlyArray<AgentView>, folder: string) =>
  views.find(({ bindings, started_with, status }) => {
    if (bindings === null || status === "stopped" || status === "crashed") return false
    const path = started_with?.workspaces[bindings.workspace]?.path
    return path !== undefined && overlaps(realOf(path), folder)
  })?.agent_id

/** All names in config.json of this folder, or of one that shares files with it. */
const workspacesAt = ({ workspaces }: Config, folder: string) =>
  Object.entries(workspaces).flatMap(([name, { path }]) => (overlaps(realOf(path), folder) ? [name] : []))

const refusal = (workspace: ResourceName, kind: WorkspaceRefused["kind"]) => (reason: string, hint: string) =>
  new WorkspaceRefused({ kind, workspace, reason, hint })

const fromRuntime = (workspace: ResourceName) => (error: ContainerError) =>
  refusal(workspace, error.reason === "refused" ? "WORKSPACE_REFUSED" : "FAILED")(error.problem, error.fix)

const fromHeld = (workspace: ResourceName) => (error: ResourceHeld) =>
  refusal(workspace, "WORKSPACE_HELD")(
    error.message,
    error.holder === null ? error.hint : `choirctl agent stop ${error.holder}`
  )

/** A workspace of config.json, with the folder that its path leads to. */
const find = Effect.fnUntraced(function* (name: ResourceName) {
  const config = yield* ConfigStore
  const { config: running } = yield* config.current
  const path = Object.hasOwn(running.workspaces, name) ? running.workspaces[name]?.path : undefined
  if (path !== undefined) return { running, path, folder: realOf(path) }
  const known = Object.keys(running.workspaces).join(", ") || "none"
  return yield* refusal(name, "UNKNOWN_WORKSPACE")(`there is no workspace ${name}`, `known: ${known}`)
})

/** The agent that uses it, by its lease or by its folder. */
const holderOf = Effect.fnUntraced(function* (names: ReadonlyArray<string>, folder: string) {
  const leases = yield* Leases
  const lifecycle = yield* Lifecycle
  const lease = (yield* leases.all).find(({ kind, name }) => kind === "workspace" && names.includes(name))
  return lease?.agent_id ?? userOf(yield* lifecycle.list, folder)
})

/** Somebody else may have stopped it meanwhile; whether it still holds the workspace is checked anyway. */
const stop = Effect.fnUntraced(function* (agent_id: AgentId) {
  const lifecycle = yield* Lifecycle
  yield* Effect.catch(Effect.asVoid(lifecycle.stop(agent_id)), ({ message }: AgentRefused) =>
    Effect.logDebug(`${agent_id} was not stopped: ${message}`)
  )
})

/** A container that could not be ended may still write there, although its run is over. */
const reapAll = Effect.fnUntraced(function* (running: Config) {
  const lifecycle = yield* Lifecycle
  const reapContainer = yield* makeReapContainer
  const sessions = yield* SessionStore
  for (const key of Object.keys(running.agents)) {
    const agent_id = AgentId.make(key)
    const view = yield* Effect.orDie(lifecycle.view(agent_id))
    const latest = yield* sessions.latest(agent_id)
    if (Option.isSome(latest) && (view.status === "stopped" || view.status === "crashed"))
      yield* reapContainer(latest.value)
  }
})

/** Drops the labels of a folder under all of its names. */
const dropLabels = Effect.fnUntraced(function* (running: Config, names: ReadonlyArray<string>) {
  const labels = yield* WorkspaceLabels
  const paths = names.flatMap((each) => workspacePath(running, each) ?? [])
  yield* Effect.forEach(paths, (path) => labels.drop(path), { discard: true })
})

const reset = Effect.fnUntraced(function* (name: ResourceName) {
  const audit = yield* Audit
  const config = yield* ConfigStore
  const leases = yield* Leases
  const lifecycle = yield* Lifecycle
  const runtime = yield* ContainerRuntime
  const { folder, path, running } = yield* find(name)
  const names = workspacesAt(running, folder)
  const holder = yield* holderOf(names, folder)
  if (holder !== undefined) yield* stop(holder)
  const wanted = names.map((each) => ({ kind: "workspace" as const, name: each }))
  yield* Effect.catchTag(leases.withhold(wanted), "ResourceHeld", (error) => Effect.fail(fromHeld(name)(error)))
  const user = userOf(yield* lifecycle.list, folder)
  if (user !== undefined)
    return yield* refusal(name, "WORKSPACE_HELD")(
      `${user} works in the folder ${folder}`,
      `choirctl agent stop ${user}`
    )
  const others = Object.values(running.workspaces).map((other) => realOf(other.path))
  const kept = [realOf(config.home), ...others.filter((other) => other !== folder)]
  yield* reapAll(running).pipe(
    Effect.andThen(runtime.emptyWorkspace(folder, kept)),
    Effect.catchTag("ContainerError", (error) => Effect.fail(fromRuntime(name)(error)))
  )
  yield* dropLabels(running, names)
  const stopped = holder ?? null
  yield* audit.record({ who: "operator", action: "workspace.reset", detail: { workspace: name, path, stopped } })
  return { name, path, stopped }
}, Effect.scoped)

const trust = Effect.fnUntraced(function* (name: ResourceName) {
  const audit = yield* Audit
  const labels = yield* WorkspaceLabels
  const { folder, path, running } = yield* find(name)
  const names = workspacesAt(running, folder)
  const holder = yield* holderOf(names, folder)
  if (holder !== undefined)
    return yield* refusal(name, "WORKSPACE_HELD")(`${holder} works in ${name}`, `choirctl agent stop ${holder}`)
  const label = yield* labels.of(path)
  yield* dropLabels(running, names)
  yield* audit.record({ who: "operator", action: "workspace.trust", detail: { workspace: name, path } })
  return { name, path, label }
})

const make = Effect.gen(function* () {
  const context = Context.pick(
    Audit,
    ConfigStore,
    ContainerRuntime,
    Leases,
    Lifecycle,
    SessionStore,
    WorkspaceLabels
  )(yield* Effect.context<Effect.Services<ReturnType<typeof reset>> | Effect.Services<ReturnType<typeof trust>>>())
  return Workspaces.of({
    reset: Effect.fn("Workspaces.reset")(reset, databaseDefect, Effect.provideContext(context)),
    trust: Effect.fn("Workspaces.trust")(trust, databaseDefect, Effect.provideContext(context))
  })
})
