/** The part of config.json about collectors and scrapers. */
import { Schema } from "effect"
import { SecretName } from "./Ids.ts"
import { Url } from "./Url.ts"
import { withDefault } from "./withDefault.ts"

/** A port of this host, for its own programs alone. */
const LoopbackListen = Schema.String.check(
  Schema.isPattern(
    /^(?:127\.0\.0\.1|localhost|\[::1\]):(?:[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5])$/u,
    { message: "must be a loopback address and a port, such as 127.0.0.1:9464" }
  )
)

/**
 * Where telemetry goes besides the log files. A collector's secret is sent to it as a bearer token; a scraper sends that of
 * Prometheus, or the token that choird makes.
 */
export const Telemetry = Schema.Struct({
  otlp: Schema.optionalKey(
    Schema.Struct({
      endpoint: Url,
      secret: Schema.optionalKey(SecretName),
      interval_ms: withDefault(Schema.Int.check(Schema.isBetween({ minimum: 1000, maximum: 600_000 })), 10_000)
    })
  ),
  prometheus: Schema.optionalKey(Schema.Struct({ listen: LoopbackListen, secret: Schema.optionalKey(SecretName) }))
})
