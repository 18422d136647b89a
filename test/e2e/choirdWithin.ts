/** choird in the test's own process, so that the test can put another network in the place of the Internet; agents are processes as ever. */
import { Effect, Layer, Logger, References } from "effect"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import { PageWaitFactor } from "#src/choird/workers/PageWaitFactor.ts"
import { startup } from "#src/choird/Startup.ts"
import { layerInternet, type Web } from "../support/web.ts"

/** How much longer than a person's machine one that runs many tests may take for a page. */
const WAIT_FACTOR = 20

/** Starts choird in a home, with this as its Internet, until the scope closes. */
export const startWithin = (home: string, web: Web) =>
  startup({ home, version: "0.0.0-test", last_good: false, transport: {} }).pipe(
    Effect.provide(
      Layer.mergeAll(
        Layer.unwrap(Effect.map(LogFiles, ({ logger }) => Logger.layer([logger]))),
        Layer.succeed(References.MinimumLogLevel, "Info"),
        layerInternet(web),
        Layer.succeed(PageWaitFactor, WAIT_FACTOR)
      ).pipe(Layer.provideMerge(LogFiles.layer(home, undefined)))
    )
  )
