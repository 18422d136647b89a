/** Where telemetry goes beyond the log files, as config.json says; nowhere by default. */
import { Effect, Layer, Redacted, Result, Schema } from "effect"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { metricsPage, type MetricsPage } from "#src/shared/wire/metricsPage.ts"
import { layerCollector } from "./Collector.ts"
import { layerPrometheus } from "./Prometheus.ts"
import { randomBytes } from "node:crypto"
import { readFileSync } from "node:fs"
import { SecretName } from "#schema/Ids.ts"
import { writeWhole } from "#src/shared/files/writeWhole.ts"

class TokenMissing extends Schema.TaggedError<TokenMissing>()("TokenMissing", { problem: Schema.String }) {
  override get message() {
    return `the metrics are not served: ${this.problem}`
  }
}

const TOKEN = /^[0-9a-f]{64}\n?$/u

/** The token of the file, which scrapers keep reading after a restart; one that is missing or damaged is made. */
const ownToken = (file: string) =>
  Effect.try({
    try: () => {
      const kept = Result.getOrElse(
        Result.try(() => readFileSync(file, "utf8")),
        () => ""
      )
      if (TOKEN.test(kept)) return Redacted.make(kept.trim())
      const token = randomBytes(32).toString("hex")
      writeWhole(file, `${token}\n`)
      return Redacted.make(token)
    },
    catch: (error) => new TokenMissing({ problem: `${file} cannot be written: ${String(error)}` })
  })

const metricsToken = (store: ConfigStore["Service"], { token }: MetricsPage) =>
  "file" in token
    ? ownToken(token.file)
    : Effect.mapError(
        store.secret(SecretName.make(token.secret)),
        ({ hint, message }) => new TokenMissing({ problem: `${message}: ${hint}` })
      )

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
