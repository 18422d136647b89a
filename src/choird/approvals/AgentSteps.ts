/** Lets an agent take over what was approved: its image is built, and it is started anew with its session resumed. */
import { Context, Effect, Layer, Option } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { ImageVersion } from "#schema/Image.ts"
import type { RunBindings } from "#schema/ResourceBindings.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import type { StartOptions } from "#src/choird/agents/bindings.ts"
import { type BuildError, Images } from "#src/choird/images/Images.ts"
import { imageSources } from "#src/choird/agents/imageSources.ts"
import { type AgentView, Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import type { Approved } from "./executionSteps.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { changed, type ExecutionFailed, failedAs } from "./ExecutionFailed.ts"
import type { Job } from "./executionRows.ts"

/** How long an agent that is coming up anyway is waited for before it is started anew with its new image. */
const PROPOSAL_AGENT_MS_MAX = 90_000
/** Between two looks at it. */
const PROPOSAL_AGENT_LOOK_MS = 100

/** The defaults of config.json that an agent's next start is to take, whatever it was bound to. */
export type Rebound = ReadonlySet<string>

export class AgentSteps extends Context.Service<
  AgentSteps,
  {
    /** Builds the image of the commit that was approved; `CHANGED` where the agent's ref has moved on to another (R54). */
    build(approved: Approved, job: Pick<Job, "commit">): Effect.Effect<ImageVersion, ExecutionFailed>
    /** What the agent is bound to if it runs, or would if choird had not died under it. */
    running(agent_id: AgentId): Effect.Effect<Option.Option<RunBindings>>
    /** Starts it anew with these bindings, unless it runs with the image and the defaults of `rebound` already. */
    update(approved: Approved, job: Job, rebound: Rebound): Effect.Effect<void, ExecutionFailed>
  }
>()("choir/choird/AgentSteps") {
  static readonly layer = Layer.effect(
    AgentSteps,
    Effect.suspend(() => make())
  )
}

const isDown = ({ status }: AgentView) => status === "stopped" || status === "crashed"
const isSettled = (view: AgentView) => view.status === "running" || isDown(view)
const AGENT_LOOKS_MAX = Math.ceil(PROPOSAL_AGENT_MS_MAX / PROPOSAL_AGENT_LOOK_MS)
const agent = failedAs("AGENT")
const notBuilt = (error: BuildError) =>
  error._tag === "OtherCommit" && error.warning === null ? changed(error.message) : failedAs("BUILD")(error)

/** What a start has to be told so that it binds the same again. */
const optionsOf = (bindings: RunBindings, rebound: Rebound): StartOptions =>
  // A core_llm that the start did not name is the default's.
  Object.fromEntries(
    Object.entries(bindings).filter(
      ([key]) => !rebound.has(key) && (key !== "core_llm" || bindings.explicit?.includes(key) === true)
    )
  )

const make = Effect.fnUntraced(function* () {
  const config = yield* ConfigStore
  const images = yield* Images
  const lifecycle = yield* Lifecycle
  const sessions = yield* SessionStore

  const defaultsOf = Effect.fnUntraced(function* (agent_id: AgentId) {
    const { config: running } = yield* config.current
    const known = Object.hasOwn(running.agents, agent_id) ? running.agents[agent_id] : undefined
    return known ?? (yield* changed(`config.json has no agent ${agent_id} any more`))
  })

  /** An agent that is coming up is waited for; one that hangs in between is taken as it is. */
  const settled = (agent_id: AgentId) =>
    Effect.gen(function* () {
      const look = Effect.mapError(lifecycle.view(agent_id), agent)
      let view = yield* look
      for (let looks = 0; looks < AGENT_LOOKS_MAX && !isSettled(view); looks += 1) {
        yield* Effect.sleep(PROPOSAL_AGENT_LOOK_MS)
        view = yield* look
      }
      return view
    })

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
      const sources = { ...(yield* imageSources(config, agent_id, view)), git_identity }
      const built = images.build(agent_id, sources, { in_use, agent_commit: commit })
      return (yield* Effect.mapError(built, notBuilt)).image_version
    }),
    running: Effect.fn("AgentSteps.running")(function* (agent_id) {
      const view = Option.getOrUndefined(yield* Effect.option(lifecycle.view(agent_id)))
      if (view !== undefined && !isDown(view) && view.bindings !== null) return Option.some(view.bindings)
      const latest = Option.getOrUndefined(yield* databaseDefect(sessions.latest(agent_id)))
      return latest?.status === "active" ? Option.some(latest.resource_bindings) : Option.none()
    }),
    update: Effect.fn("AgentSteps.update")(function* ({ row }, job, rebound) {
      const { agent_id } = row
      if (job.bindings === undefined) return
      const view = yield* settled(agent_id)
      if (yield* isUpToDate(view, job, rebound)) return
      if (!isDown(view))
        yield* Effect.catchIf(
          lifecycle.stop(agent_id),
          ({ kind }) => kind === "NOT_RUNNING",
          () => Effect.void
        ).pipe(Effect.mapError(agent))
      const started = yield* Effect.mapError(lifecycle.start(agent_id, optionsOf(job.bindings, rebound)), agent)
      if (job.image_version !== undefined && started.image_version !== job.image_version)
        return yield* agent({ message: started.reason ?? "it runs on another image" })
    })
  })
})
