/** The exporters of telemetry beyond the log files, by config.json; none by default. */
import { Effect, FileSystem, Layer, Redacted, Result, Schema } from "effect"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { metricsPage, type MetricsPage } from "#src/shared/wire/metricsPage.ts"
import { layerCollector } from "./Collector.ts"
import { layerPrometheus } from "./Prometheus.ts"
import { randomBytes } from "node:crypto"
import { SecretName } from "#schema/Ids.ts"
import { systemWords, writeWhole } from "#src/shared/files/writeWhole.ts"

class TokenMissing extends Schema.TaggedError<TokenMissing>()("TokenMissing", { problem: Schema.String }) {
  override get message() {
    return `the metrics are not served: ${this.problem}`
  }
}

const TOKEN = /^[0-9a-f]{64}\n?$/u

/** The token in the file, which stays valid for scrapers across restarts; a missing or damaged one is replaced. */
const ownToken = (file: string) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const kept = yield* Effect.orElseSucceed(fs.readFileString(file), () => "")
    if (TOKEN.test(kept)) return Redacted.make(kept.trim())
    const token = randomBytes(32).toString("hex")
    yield* Effect.mapError(
      writeWhole(file, `${token}\n`),
      (error) => new TokenMissing({ problem: `${file} cannot be written: ${systemWords(error)}` })
    )
    return Redacted.make(token)
  })

const metricsToken = Effect.fnUntraced(function* ({ token }: MetricsPage) {
  if ("file" in token) return yield* ownToken(token.file)
  const store = yield* ConfigStore
  return yield* Effect.mapError(
    store.secret(SecretName.make(token.secret)),
    ({ hint, message }) => new TokenMissing({ problem: `${message}: ${hint}` })
  )
})

const page = Effect.gen(function* () {
  const store = yield* ConfigStore
  const { config } = yield* store.current
  const page = metricsPage(store.home, config)
  const listen = config.telemetry.prometheus?.listen
  if (page === undefined || listen === undefined) return Layer.empty
  return layerPrometheus(listen, yield* metricsToken(page))
}).pipe(Effect.catch(({ message }) => Effect.as(Effect.logWarning(message), Layer.empty)))

/** @param version of choird, as its package says. */
export const layerExporters = (version: string) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const store = yield* ConfigStore
      const { otlp } = (yield* store.current).config.telemetry
      const metrics = yield* page
      if (otlp === undefined) return metrics
      const secret =
        otlp.secret === undefined ? Result.succeed(undefined) : yield* Effect.result(store.secret(otlp.secret))
      if (Result.isFailure(secret)) {
        yield* Effect.logWarning(`no telemetry is sent: ${secret.failure.message}: ${secret.failure.hint}`)
        return metrics
      }
      const { endpoint, interval_ms } = otlp
      return Layer.merge(metrics, layerCollector({ endpoint, interval_ms, secret: secret.success, version }))
    })
  )
