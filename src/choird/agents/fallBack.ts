/** A new image from which the agent does not come up gives way to the last one from which it did, so that an update takes nobody down. */
import { Effect, Option } from "effect"
import type { Next } from "./afterEpoch.ts"
import { tell, type RunContext } from "./RunContext.ts"
import { earlierImage } from "./startImage.ts"

/** Ends for which no image is to blame. */
const OF_THE_SESSION: ReadonlySet<string> = new Set(["FROZEN", "LOG_FULL", "NEWER_EVENTS"])

/** The run with the image to go back to; nothing where there is none, or the image is not to blame. */
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
  yield* tell(context, `My new version did not start, so I go on with the one before: ${ending.reason}.`)
  return { ...context, remark, prepared: { ...prepared, image: earlier } }
})
