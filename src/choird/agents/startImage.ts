/** The image that an agent is started with: whole on disk, known to the runtime, and built again if the runtime lost it. */
import { Effect, Option } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import type { ManifestHashes } from "#schema/Image.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { AgentViews } from "./AgentViews.ts"
import { type Image, Images } from "#src/choird/images/Images.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { AgentRefused, notReady } from "./AgentRefused.ts"
import type { Ending } from "./decideRestart.ts"
import { type Notified, tell } from "./runNotices.ts"

/** Kinds of ends that are not an image's fault. */
const OF_THE_SESSION: ReadonlySet<string> = new Set(["FROZEN", "LOG_FULL", "NEWER_EVENTS"])

/** The image to go back to, with a remark for the operator; undefined if there is none, or if the image is not at fault. */
export const fallBack = Effect.fn("Run.fallBack")(function* (notified: Notified, tried: StartImage, ending: Ending) {
  if (ending.status === "stopped" || OF_THE_SESSION.has(ending.kind)) return undefined
  const { agent_id } = notified
  const { image_version: failed } = tried
  const earlier = Option.getOrUndefined(yield* earlierImage(agent_id, tried))
  if (earlier === undefined) return undefined
  const { image_version } = earlier
  // The next start of choird takes it, too; an update tries the new one again.
  yield* Effect.ignore((yield* Images).goBack(agent_id, image_version), { log: "Error" })
  const remark = `the image ${failed} did not start: ${ending.reason}. The agent is running on ${image_version} again`
  yield* Effect.logError(remark)
  const detail = { refused: "START_FAILED", image_version: failed, reason: ending.reason, back_to: image_version }
  const audit = yield* Audit
  yield* audit.record({ who: "choird", action: "agent.image", agent_id, detail })
  yield* tell(notified, `My new version did not start, so I am back on the previous one: ${ending.reason}.`)
  return { image: earlier, remark }
})

/** An image that was verified against its build, with its tools and skills. */
export interface StartImage extends Image {
  readonly manifests: ManifestHashes
}

const verified = Effect.fnUntraced(function* (image: Image) {
  const images = yield* Images
  const { skill_manifest_hash, tool_manifest_hash } = yield* images.verify(image.path)
  return { ...image, manifests: { skill_manifest_hash, tool_manifest_hash } } satisfies StartImage
})

/**
 * Builds the image again if the runtime lost it, from the commits that it was built from; otherwise returns what to run. An engine
 * that is away says nothing about its images: the start itself waits for it.
 */
export const requireInRuntime = Effect.fn("requireInRuntime")(function* (
  agent_id: AgentId,
  image: Image
): Effect.fn.Return<void, AgentRefused, AgentViews | ConfigStore | ContainerRuntime | Images> {
  const config = yield* ConfigStore
  const images = yield* Images
  const runtime = yield* ContainerRuntime
  const views = yield* AgentViews
  const { image_version } = image
  if (yield* Effect.orElseSucceed(runtime.hasImage(agent_id, image_version), () => true)) return
  const lost = `the Docker engine lost image ${image_version}`
  yield* Effect.logWarning(`${lost}; it is built again`)
  const { bindings, status } = views.of(agent_id)
  yield* views.change(agent_id, { status: "building", reason: `${lost}, which is built again` })
  const { config: running } = yield* config.current
  const repo = running.agents[agent_id]?.repo
  if (repo === undefined)
    return yield* notReady(agent_id, `config.json has no agent ${agent_id}`, "choirctl agent list")
  const sources = { global: running.global_repo, agent: repo, git_identity: bindings?.git_identity }
  yield* images
    .remake(agent_id, sources, image, (line) => Effect.logInfo(line))
    .pipe(
      Effect.mapError(({ message }) =>
        notReady(agent_id, `${lost}, and it cannot be built again: ${message}`, `choirctl agent build ${agent_id}`)
      )
    )
  yield* views.change(agent_id, { status, reason: null })
})

/** The image of the last build. */
export const newestImage = Effect.fnUntraced(function* (agent_id: AgentId) {
  const images = yield* Images
  const hint = `choirctl agent build ${agent_id}`
  const image = yield* images.current(agent_id).pipe(
    Effect.flatMap(verified),
    Effect.mapError(
      ({ _tag, message }) =>
        new AgentRefused({ kind: "NOT_READY", agent_id, reason: message, hint, unbuilt: _tag === "NoImage" })
    )
  )
  yield* requireInRuntime(agent_id, image)
  return image
})

/** The image from which the agent last came up, if it never came up from this one. */
const earlierImage = Effect.fnUntraced(function* (agent_id: AgentId, image: Image) {
  const images = yield* Images
  const earlier = yield* images.lastWorking(agent_id, image.image_version)
  if (Option.isNone(earlier)) return Option.none<StartImage>()
  return yield* verified(earlier.value).pipe(
    Effect.tap((found) => requireInRuntime(agent_id, found)),
    Effect.option
  )
})
