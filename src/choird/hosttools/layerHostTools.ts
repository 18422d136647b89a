/** What agents may have choird do for them, over its stores. */
import { Effect, Layer, Schedule } from "effect"
import { CALL_RESULTS_LOOK_MS } from "#src/shared/limits.ts"
import { CallResults } from "./CallResults.ts"
import { HostTools } from "./HostTools.ts"
import { memoryQuery } from "./memoryQuery.ts"
import { layerRunEndings } from "./runEndings.ts"

/** Forgets outcomes that nobody can ask for any more. What a database that is away keeps from it is done an hour later. */
const layerPruning = Layer.effectDiscard(
  Effect.gen(function* () {
    const { prune } = yield* CallResults
    yield* prune.pipe(
      Effect.tap((count) =>
        count === 0 ? Effect.void : Effect.logInfo(`${count} old outcomes of host tools are gone`)
      ),
      Effect.catchDefect((defect) => Effect.logWarning("old outcomes of host tools stay for now", defect)),
      Effect.repeat(Schedule.spaced(CALL_RESULTS_LOOK_MS)),
      Effect.forkScoped
    )
  })
)

export const layerHostTools = Layer.merge(layerRunEndings, layerPruning).pipe(
  Layer.provideMerge(Layer.unwrap(Effect.map(memoryQuery, (query) => HostTools.layer([query])))),
  Layer.provide(CallResults.layer)
)
