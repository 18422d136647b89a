/** Where telemetry goes beyond the log files, as config.json says; nowhere by default. */
import { Effect, Layer, Result } from "effect"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { metricsPage } from "#src/shared/wire/metricsPage.ts"
import { layerCollector } from "./Collector.ts"
import { metricsToken } from "./metricsToken.ts"
import { layerPrometheus } from "./Prometheus.ts"

const layerPage = (store: ConfigStore["Service"]) =>
  Effect.gen(function* () {
    const { config } = yield* store.current
    const page = metricsPage(store.home, config)
    const listen = config.telemetry.prometheus?.listen
    if (page === undefined || listen === undefined) return Layer.empty
    return layerPrometheus(listen, yield* metricsToken(store, page))
  }).pipe(Effect.catch(({ message }) => Effect.as(Effect.logWarning(message), Layer.empty)))

/** @param version of choird, as its package says. */
export const layerExporters = (version: string) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const store = yield* ConfigStore
      const { otlp } = (yield* store.current).config.telemetry
      const page = yield* layerPage(store)
      if (otlp === undefined) return page
      const secret =
        otlp.secret === undefined ? Result.succeed(undefined) : yield* Effect.result(store.secret(otlp.secret))
      if (Result.isFailure(secret)) {
        yield* Effect.logWarning(`no telemetry is sent: ${secret.failure.message}: ${secret.failure.hint}`)
        return page
      }
      const { endpoint, interval_ms } = otlp
      return Layer.merge(page, layerCollector({ endpoint, interval_ms, secret: secret.success, version }))
    })
  )
