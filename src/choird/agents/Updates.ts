/** Brings agents to the newest commits of their repositories: build, then stop and start those that run. */
import { Context, Effect, Layer, Option, Result } from "effect"
import { AgentId } from "#schema/Ids.ts"
import { ImageVersion } from "#schema/Image.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { makeImageSources } from "./imageSources.ts"
import { type BuildError, Images } from "#src/choird/images/Images.ts"
import { AgentRefused } from "./AgentRefused.ts"
import type { AgentView } from "./AgentViews.ts"
import { Lifecycle } from "./Lifecycle.ts"

/** The result for one agent; see UpdateOutcome of the operator's API. */
export interface Updated {
  readonly agent_id: AgentId
  readonly outcome: "built" | "redeployed" | "skipped" | "failed"
  readonly image_version: ImageVersion | null
  readonly warnings: ReadonlyArray<string>
  readonly error?: BuildError | AgentRefused
}

type Progress = (line: string) => Effect.Effect<void>

/** The image that a running or starting agent has mounted. */
export const mounted = (view: AgentView): ReadonlyArray<ImageVersion> =>
  view.image_version === null || view.status === "stopped" || view.status === "crashed"
    ? []
    : Option.toArray(ImageVersion.makeOption(view.image_version))

export class Updates extends Context.Service<
  Updates,
  {
    /**
     * Builds if the commits differ from the image's, and restarts an agent that runs on another image; its session resumes. An agent
     * that does not come up from its new image is started from the last one that worked, and counts as failed. An agent that does not
     * run is not started. Call it again after an interruption: finished work is skipped.
     */
    one(agent_id: AgentId, progress: Progress): Effect.Effect<Updated, AgentRefused>
    /** All agents of config.json, one after the other. One that fails does not stop the others. */
    all(progress: Progress): Effect.Effect<ReadonlyArray<Updated>>
  }
>()("choir/choird/Updates") {
  static readonly layer = Layer.effect(
    Updates,
    Effect.gen(function* () {
      const config = yield* ConfigStore
      const imageSources = yield* makeImageSources
      const images = yield* Images
      const lifecycle = yield* Lifecycle

      const one = Effect.fnUntraced(function* (agent_id: AgentId, progress: Progress) {
        const view = yield* lifecycle.view(agent_id)
        const in_use = mounted(view)
        const sources = yield* imageSources(agent_id, view)
        const built = yield* Effect.result(images.build(agent_id, sources, { in_use, progress }))
        if (Result.isFailure(built)) return failed(agent_id, built.failure)
        const { image_version, warnings } = built.success
        const about = { agent_id, image_version, warnings }
        // Checked again: the agent may have been started or stopped while its image was built.
        const now = yield* lifecycle.view(agent_id)
        const isStale = built.success.built || now.image_version !== image_version
        if (now.status !== "running" || !isStale)
          return { ...about, outcome: built.success.built ? ("built" as const) : ("skipped" as const) }
        yield* progress(`restart on ${image_version}`)
        const restarted = yield* Effect.result(lifecycle.restart(agent_id))
        if (Result.isFailure(restarted)) return { ...failed(agent_id, restarted.failure), warnings }
        const { image_version: runs, reason } = restarted.success
        return runs === image_version
          ? { ...about, outcome: "redeployed" as const }
          : { ...failed(agent_id, fellBack(agent_id, reason)), warnings }
      })

      return Updates.of({
        one: Effect.fn("Updates.one")(one),
        all: Effect.fn("Updates.all")(function* (progress) {
          const { config: running } = yield* config.current
          return yield* Effect.forEach(Object.keys(running.agents), (key) => {
            const agent_id = AgentId.make(key)
            return one(agent_id, (line) => progress(`${agent_id}: ${line}`)).pipe(
              Effect.catch((error) => Effect.succeed(failed(agent_id, error)))
            )
          })
        })
      })
    })
  )
}

const fellBack = (agent_id: AgentId, reason: string | null) =>
  new AgentRefused({
    kind: "START_FAILED",
    agent_id,
    reason: reason ?? "it runs on another image",
    hint: `choirctl logs ${agent_id}, then correct the repository and update again`
  })

const failed = (agent_id: AgentId, error: BuildError | AgentRefused): Updated => ({
  agent_id,
  outcome: "failed",
  image_version: null,
  warnings: [],
  error
})
