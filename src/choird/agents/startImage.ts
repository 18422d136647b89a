/** The image that an agent is started with: whole on disk, known to the runtime, and built again if the runtime lost it. */
import { Effect, Option } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import type { ManifestHashes } from "#schema/Image.ts"
import type { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import type { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import type { AgentViews } from "./AgentViews.ts"
import type { Image, Images } from "#src/choird/images/Images.ts"
import type { AgentRefused } from "./Lifecycle.ts"
import type { Next } from "./afterEpoch.ts"
import { type RunContext, tell } from "./RunContext.ts"

/** Kinds of ends that are not an image's fault. */
const OF_THE_SESSION: ReadonlySet<string> = new Set(["FROZEN", "LOG_FULL", "NEWER_EVENTS"])

/** The run with the image to go back to; undefined if there is none, or if the image is not at fault. */
export const fallBack = Effect.fn("Run.fallBack")(function* (
  context: RunContext,
  ending: Extract<Next, { readonly type: "end" }>
) {
  if (ending.status === "stopped" || OF_THE_SESSION.has(ending.kind)) return undefined
  const { agent_id, prepared, services } = context
  const { image_version: failed } = prepared.image
  const earlier = Option.getOrUndefined(yield* earlierImage(services, agent_id, prepared.image))
  if (earlier === undefined) return undefined
  const { image_version } = earlier
  // The next start of choird takes it, too; an update tries the new one again.
  yield* Effect.ignore(services.images.goBack(agent_id, image_version), { log: "Error" })
  const remark = `the image ${failed} did not start: ${ending.reason}. It runs on ${image_version} again`
  yield* Effect.logError(remark)
  const detail = { refused: "START_FAILED", image_version: failed, reason: ending.reason, back_to: image_version }
  yield* services.audit.record({ who: "choird", action: "agent.image", agent_id, detail })
  yield* tell(context, `My new version did not start, so I am back on the previous one: ${ending.reason}.`)
  return { ...context, remark, prepared: { ...prepared, image: earlier } }
})

/** The fields of {@link AgentRefused}. */
export type Refusal = Pick<AgentRefused, "kind" | "reason" | "hint"> & {
  /** There is no image: the agent was never built on this home, as after a restore, and nothing is broken. */
  readonly unbuilt?: true
}

export interface ImageServices {
  readonly config: ConfigStore["Service"]
  readonly images: Images["Service"]
  readonly runtime: ContainerRuntime["Service"]
  readonly views: AgentViews
}

/** An image that was verified against its build, with its tools and skills. */
export interface StartImage extends Image {
  readonly manifests: ManifestHashes
}

export const notReady = (reason: string, hint: string): Refusal => ({ kind: "NOT_READY", reason, hint })

const verified = ({ images }: ImageServices, image: Image) =>
  Effect.map(images.verify(image.path), ({ skill_manifest_hash, tool_manifest_hash }): StartImage => ({
    ...image,
    manifests: { skill_manifest_hash, tool_manifest_hash }
  }))

/**
 * Builds the image again if the runtime lost it, from the commits that it was built from; otherwise returns what to run. An engine
 * that is away says nothing about its images: the start itself waits for it.
 */
export const requireInRuntime = Effect.fn("requireInRuntime")(function* (
  { config, images, runtime, views }: ImageServices,
  agent_id: AgentId,
  image: Image
): Effect.fn.Return<void, Refusal> {
  const { image_version } = image
  if (yield* Effect.orElseSucceed(runtime.hasImage(agent_id, image_version), () => true)) return
  const lost = `the Docker engine lost image ${image_version}`
  yield* Effect.logWarning(`${lost}; it is built again`)
  const { bindings, status } = views.of(agent_id)
  yield* views.change(agent_id, { status: "building", reason: `${lost}, which is built again` })
  const { config: running } = yield* config.current
  const repo = running.agents[agent_id]?.repo
  if (repo === undefined)
    return yield* Effect.fail(notReady(`config.json has no agent ${agent_id}`, "choirctl agent list"))
  const sources = { global: running.global_repo, agent: repo, git_identity: bindings?.git_identity }
  yield* images
    .remake(agent_id, sources, image, (line) => Effect.logInfo(line))
    .pipe(
      Effect.mapError(({ message }) =>
        notReady(`${lost}, and it cannot be built again: ${message}`, `choirctl agent build ${agent_id}`)
      )
    )
  yield* views.change(agent_id, { status, reason: null })
})

/** The image of the last build. */
export const newestImage = Effect.fnUntraced(function* (services: ImageServices, agent_id: AgentId) {
  const hint = `choirctl agent build ${agent_id}`
  const image = yield* services.images.current(agent_id).pipe(
    Effect.flatMap((newest) => verified(services, newest)),
    Effect.mapError((error): Refusal => ({
      ...notReady(error.message, hint),
      ...(error._tag === "NoImage" ? { unbuilt: true } : {})
    }))
  )
  yield* requireInRuntime(services, agent_id, image)
  return image
})

/** The image from which the agent last came up, if it never came up from this one. */
export const earlierImage = Effect.fnUntraced(function* (services: ImageServices, agent_id: AgentId, image: Image) {
  const earlier = yield* services.images.lastWorking(agent_id, image.image_version)
  if (Option.isNone(earlier)) return Option.none<StartImage>()
  return yield* verified(services, earlier.value).pipe(
    Effect.tap((found) => requireInRuntime(services, agent_id, found)),
    Effect.option
  )
})
