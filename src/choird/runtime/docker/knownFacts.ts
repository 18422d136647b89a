/** What the engine says of itself, without asking it before each container. */
import { Effect } from "effect"
import type { EngineFacts } from "#src/shared/docker/dockerInfo.ts"
import type { ContainerWatch } from "./ContainerWatch.ts"
import type { DockerEngine } from "./DockerEngine.ts"
import type { DockerError } from "./DockerError.ts"

/**
 * Asks once for each connection to the engine's events. They break off when the engine ends, and the next one may map users in another
 * way (R38): while they are not heard the engine is asked each time.
 */
export const makeKnownFacts = (
  engine: Pick<DockerEngine["Service"], "info">,
  watch: Pick<ContainerWatch, "connection">
): Effect.Effect<EngineFacts, DockerError> => {
  let known: { readonly connection: number; readonly facts: EngineFacts } | undefined
  return Effect.gen(function* () {
    const connection = yield* watch.connection
    if (known !== undefined && known.connection === connection) return known.facts
    const facts = yield* engine.info
    known = connection !== undefined && connection === (yield* watch.connection) ? { connection, facts } : undefined
    return facts
  })
}
