/** The wait that a service asks for. */
import { DateTime, Duration, Result } from "effect"
import { Headers } from "effect/http"

/** The header retry-after-ms of OpenAI and Azure, which no standard has. */
const millis = (value: string | undefined): number | undefined =>
  /^\d{1,12}(?:\.\d+)?$/u.test(value ?? "") ? Math.ceil(Number(value)) : undefined

/**
 * Milliseconds to wait by the header Retry-After, which has seconds or a date, and else by retry-after-ms; undefined where neither says it. A date counts from the Date
 * of the same answer, since it is by the service's clock, whatever the host's says (RFC 9110, 10.2.3); by `now_ms` where the answer has
 * none. Pure.
 */
export const retryAfterMs = (
  headers: Readonly<Record<string, string | undefined>>,
  now_ms: number
): number | undefined => {
  const parsed = Headers.parseRetryAfter(headers["retry-after"] ?? "")
  if (Result.isFailure(parsed)) return millis(headers["retry-after-ms"])
  const sent = Result.map(Headers.parseHttpDate(headers["date"] ?? ""), DateTime.toEpochMillis)
  const wait = Headers.retryAfterDelay(
    parsed.success,
    Result.getOrElse(sent, () => now_ms)
  )
  return Math.min(Math.ceil(Duration.toMillis(wait)), Number.MAX_SAFE_INTEGER)
}
