/** Event streams of both APIs: a comment at once, so that the head is sent, and another after each long silence. */
import { Effect, Schedule, Stream } from "effect"
import { Sse } from "effect/encoding"
import { HttpServerResponse } from "effect/http"
import { SSE_KEEP_ALIVE_MS } from "#src/shared/limits.ts"

const COMMENT = ": choir\n\n"

interface ServerSentEvent {
  /** An event without one leaves the client's last id as it is. */
  readonly id: string | undefined
  /** The content of the event, not yet JSON. */
  readonly data: unknown
}

/** A response that ends with the events. */
export const sseResponse = (events: Stream.Stream<ServerSentEvent>) =>
  events.pipe(
    Stream.map(({ data, id }) =>
      Sse.encoder.write({ _tag: "Event", event: "message", id, data: JSON.stringify(data) })
    ),
    Stream.merge(Stream.fromSchedule(Schedule.spaced(SSE_KEEP_ALIVE_MS)).pipe(Stream.map(() => COMMENT)), {
      haltStrategy: "left"
    }),
    (frames) => Stream.concat(Stream.make(COMMENT), frames),
    Stream.encodeText,
    (body) =>
      HttpServerResponse.stream(body, { contentType: "text/event-stream", headers: { "cache-control": "no-store" } }),
    Effect.succeed
  )
