/** The steps that put an approved change to work: build the agent's image, then restart the agent with its session resumed. */
import { Context, Effect, Layer, Option, Stream } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { ImageVersion } from "#schema/Image.ts"
import type { RunBindings } from "#schema/ResourceBindings.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import type { Rebound } from "#src/choird/agents/bindings.ts"
import { type BuildError, Images } from "#src/choird/images/Images.ts"
import { makeImageSources } from "#src/choird/agents/imageSources.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import type { ProofOfApproval } from "#src/choird/approvals/ProofOfApproval.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { changed, type ExecutionFailed, failedAs } from "#src/choird/approvals/ExecutionFailed.ts"
import { done, type Job, next, type Next } from "#src/choird/approvals/Execution.ts"

/** The longest wait for an agent that is starting or stopping before it is restarted. */
const PROPOSAL_AGENT_MS_MAX = 90_000

export class AgentSteps extends Context.Service<
  AgentSteps,
  {
    /** Builds the image of the commit that was approved; `CHANGED` if the agent's ref has moved on since (R54). */
    build(approved: ProofOfApproval, job: Pick<Job, "commit">): Effect.Effect<ImageVersion, ExecutionFailed>
    /**
     * The step after a change that needs a restart of the agent: an update if the agent runs, or would run if choird had not died.
     * Otherwise the execution is done with this outcome, since the agent picks up the change at its next start.
     */
    afterChange(approved: ProofOfApproval, job: Job, outcome: string): Effect.Effect<Next>
    /** Restarts it with these bindings, unless it runs with the image and the defaults of `rebound` already. */
    update(approved: ProofOfApproval, job: Job, rebound: Rebound): Effect.Effect<void, ExecutionFailed>
  }
>()("choir/choird/AgentSteps") {
  static readonly layer = Layer.effect(
    AgentSteps,
    Effect.suspend(() => make())
  )
}

const isDown = ({ status }: AgentView) => status === "stopped" || status === "crashed"
const isAtRest = (view: AgentView) => view.status === "running" || isDown(view)
const agent = failedAs("AGENT")
const notBuilt = (error: BuildError) =>
  error._tag === "OtherCommit" && error.warning === null ? changed(error.message) : failedAs("BUILD")(error)

/** The agent as config.json has it now. */
const defaultsOf = Effect.fnUntraced(function* (agent_id: AgentId) {
  const config = yield* ConfigStore
  const { config: running } = yield* config.current
  const known = Object.hasOwn(running.agents, agent_id) ? running.agents[agent_id] : undefined
  return known ?? (yield* changed(`config.json no longer has an agent ${agent_id}`))
})

/** Waits for an agent that is starting or stopping, but not for one that hangs. */
const atRest = Effect.fnUntraced(function* (agent_id: AgentId) {
  const lifecycle = yield* Lifecycle
  const ready = Stream.takeUntil(lifecycle.follow(agent_id), isAtRest)
  yield* Effect.timeoutOption(Stream.runDrain(ready), PROPOSAL_AGENT_MS_MAX)
  return yield* Effect.mapError(lifecycle.view(agent_id), agent)
})

/** Whether it runs with the image of the change and with the defaults of `rebound`. */
const isUpToDate = Effect.fnUntraced(function* (view: AgentView, { image_version }: Job, rebound: Rebound) {
  if (view.status !== "running") return false
  if (image_version !== undefined && view.image_version !== image_version) return false
  const { defaults } = yield* defaultsOf(view.agent_id)
  const { bindings } = view
  return [...rebound].every((key) => {
    const name = key as "llm" | "core_llm" | "voice_profile"
    const wanted = name === "core_llm" ? (defaults.core_llm ?? defaults.llm) : defaults[name]
    return bindings?.[name] === wanted
  })
})

/** The bindings of an agent that runs, or would run if choird had not died. */
const boundTo = Effect.fnUntraced(function* (
  agent_id: AgentId
): Effect.fn.Return<RunBindings | undefined, never, Lifecycle | SessionStore> {
  const lifecycle = yield* Lifecycle
  const sessions = yield* SessionStore
  const view = Option.getOrUndefined(yield* Effect.option(lifecycle.view(agent_id)))
  if (view !== undefined && !isDown(view) && view.bindings !== null) return view.bindings
  const latest = Option.getOrUndefined(yield* databaseDefect(sessions.latest(agent_id)))
  return latest?.status === "active" ? latest.resource_bindings : undefined
})

/** One that hangs in its start or its stop is stopped; one that runs keeps its session active meanwhile. */
const again = Effect.fnUntraced(function* (view: AgentView, before: RunBindings, rebound: Rebound) {
  const lifecycle = yield* Lifecycle
  const { agent_id, status } = view
  if (status === "running") return yield* lifecycle.restart(agent_id, {}, rebound)
  if (!isDown(view))
    yield* Effect.catchIf(
      lifecycle.stop(agent_id),
      ({ kind }) => kind === "NOT_RUNNING",
      () => Effect.void
    )
  return yield* lifecycle.startAsBefore(agent_id, before, rebound)
})

const make = Effect.fnUntraced(function* () {
  const imageSources = yield* makeImageSources
  const images = yield* Images
  const lifecycle = yield* Lifecycle
  const sessions = yield* SessionStore
  const provide = Effect.provideContext(
    Context.pick(ConfigStore, Lifecycle, SessionStore)(yield* Effect.context<ConfigStore | Lifecycle | SessionStore>())
  )

  return AgentSteps.of({
    build: Effect.fn("AgentSteps.build")(function* ({ row }, { commit }) {
      const { agent_id, session_id } = row
      if (commit === undefined) return yield* Effect.die(new Error("nothing was committed"))
      yield* defaultsOf(agent_id)
      const view = yield* Effect.mapError(lifecycle.view(agent_id), agent)
      const in_use = isDown(view) ? [] : Option.toArray(ImageVersion.makeOption(view.image_version ?? ""))
      // It was pushed as the session's identity, which may be the only one that can fetch it.
      const git_identity = Option.getOrUndefined(yield* databaseDefect(sessions.get(session_id)))?.resource_bindings
        .git_identity
      const sources = { ...(yield* imageSources(agent_id, view)), git_identity }
      const built = images.build(agent_id, sources, { in_use, agent_commit: commit })
      return (yield* Effect.mapError(built, notBuilt)).image_version
    }, provide),
    afterChange: Effect.fn("AgentSteps.afterChange")(function* ({ row }, job, outcome) {
      const bindings = yield* boundTo(row.agent_id)
      return bindings === undefined
        ? done(`${outcome}; the agent picks it up at its next start`)
        : next("update", { ...job, bindings })
    }, provide),
    update: Effect.fn("AgentSteps.update")(function* ({ row }, job, rebound) {
      const { agent_id } = row
      if (job.bindings === undefined) return
      const view = yield* atRest(agent_id)
      if (yield* isUpToDate(view, job, rebound)) return
      const started = yield* Effect.mapError(again(view, job.bindings, rebound), agent)
      if (job.image_version !== undefined && started.image_version !== job.image_version)
        return yield* agent({ message: started.reason ?? "it runs on another image" })
    }, provide)
  })
})
