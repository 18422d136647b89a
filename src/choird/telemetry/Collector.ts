/** The client of an OTLP collector, which costs only a few requests even if it is slow, away or hostile. */
import { ConfigProvider, Effect, Layer, Logger, Redacted, References, Schema, Stream } from "effect"
import { HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import { OtlpExporter, OtlpLogger, OtlpMetrics, OtlpSerialization, OtlpTracer } from "effect/observability"
import { SessionTracer } from "./Telemetry.ts"
import { layerOutsideClient } from "#src/shared/wire/undiciClient.ts"
import { inTheClearText, isInTheClear } from "#src/shared/config/clearText.ts"

/** Requests to a telemetry collector that run at once; further ones are dropped. */
export const OTLP_REQUESTS_MAX = 6
/** One request to a telemetry collector, answer included. */
const OTLP_MS_MAX = 5000
/** Records of one request to a telemetry collector. */
const OTLP_BATCH_MAX = 1000
/** Chunks of a collector's answer that are read before it is discarded. */
const OTLP_ANSWER_CHUNKS_MAX = 16
/** The longest wait of choird's stop for the last records of each kind to be sent. */
const OTLP_STOP_MS_MAX = 1000

class CollectorAway extends Schema.TaggedError<CollectorAway>()("CollectorAway", { problem: Schema.String }) {
  override get message() {
    return `the telemetry collector ${this.problem}: unsent telemetry is dropped, and choird tries again in a minute`
  }
}

/**
 * The client of the exporters. They keep unsent batches while they may retry, so every failure becomes one that they do not retry: they
 * drop the batch and pause for a minute. An answer is read up to a limit and discarded.
 */
const bounded = (client: HttpClient.HttpClient, hasSecret: boolean) => {
  let running = 0
  let isAway = false
  return HttpClient.transform(client, (sending, request) => {
    const sent = Effect.gen(function* () {
      if (hasSecret && isInTheClear(request.url))
        return yield* new CollectorAway({ problem: inTheClearText(request.url) })
      if (running >= OTLP_REQUESTS_MAX) return yield* new CollectorAway({ problem: "is too slow" })
      running += 1
      const response = yield* Effect.ensuring(
        sending,
        Effect.sync(() => void (running -= 1))
      )
      yield* Stream.runDrain(Stream.take(response.stream, OTLP_ANSWER_CHUNKS_MAX))
      if (response.status < 200 || response.status > 299)
        return yield* new CollectorAway({ problem: `answered ${response.status}` })
      isAway = false
      return HttpClientResponse.fromWeb(request, new Response(null, { status: 200 }))
    })
    return sent.pipe(
      Effect.timeoutOrElse({
        duration: OTLP_MS_MAX,
        orElse: () => new CollectorAway({ problem: `did not answer within ${OTLP_MS_MAX} ms` })
      }),
      Effect.catch((error) => {
        const away = error._tag === "CollectorAway" ? error : new CollectorAway({ problem: "cannot be reached" })
        const warning = isAway ? Effect.void : Effect.logWarning(away.message)
        isAway = true
        return Effect.andThen(warning, Effect.die(away))
      })
    )
  })
}

export interface CollectorOptions {
  readonly endpoint: string
  /** Sent as a bearer token. */
  readonly secret: Redacted.Redacted | undefined
  readonly interval_ms: number
  readonly version: string
}

/** Sends choird's log lines, the spans of sessions and all metrics to a collector, and provides what they are made with. */
export const layerCollector = ({ endpoint, interval_ms, secret, version }: CollectorOptions) => {
  const common = (signal: string) => ({
    url: HttpClientRequest.appendUrl(HttpClientRequest.post(endpoint), `/v1/${signal}`).url,
    resource: { serviceName: "choird", serviceVersion: version },
    headers: secret === undefined ? {} : { authorization: `Bearer ${Redacted.value(secret)}` },
    exportInterval: interval_ms,
    shutdownTimeout: OTLP_STOP_MS_MAX
  })
  return Layer.mergeAll(
    Logger.layer([OtlpLogger.make({ ...common("logs"), maxBatchSize: OTLP_BATCH_MAX, excludeLogSpans: true })], {
      mergeWithExisting: true
    }),
    // A log line names the span that it was written in.
    Layer.succeed(References.TracerEnabled, true),
    Layer.effect(SessionTracer, OtlpTracer.make({ ...common("traces"), maxBatchSize: OTLP_BATCH_MAX })),
    Layer.effectDiscard(OtlpMetrics.make(common("metrics")))
  ).pipe(
    Layer.provide([
      OtlpExporter.layerFlusher,
      OtlpSerialization.layerJson,
      Layer.effect(
        HttpClient.HttpClient,
        Effect.map(HttpClient.HttpClient, (client) => bounded(client, secret !== undefined))
      ).pipe(Layer.provide(layerOutsideClient({}))),
      // Its name comes from config.json, not from the environment in which choird was started.
      ConfigProvider.layer(ConfigProvider.fromUnknown({}))
    ])
  )
}
