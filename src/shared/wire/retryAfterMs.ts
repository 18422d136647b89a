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

/** "Please try again in 7m12.5s", "retry after 20 seconds", and the `retryDelay` of Google, as they stand in the body of a refusal. */
const SAID =
  /(?:\btry again|\bretry)[\w ]{0,16}? (?:in|after) (?<said>(?:\d{1,3}h)?(?:\d{1,4}m(?!s))?(?:\d{1,6}(?:\.\d{1,12})?\s?(?:ms|s(?:ec(?:ond)?s?)?))?)(?![\w])|"retryDelay"\s*:\s*"(?<delay>\d{1,6}(?:\.\d{1,12})?s)"/iu
const PART = /(?<number>\d+(?:\.\d+)?)\s?(?<unit>ms|h|m|s)/giu
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** Milliseconds to wait by the words of a service that says so nowhere else; undefined where they name no time. Pure. */
export const waitInWords = (words: string): number | undefined => {
  const { delay, said } = SAID.exec(words)?.groups ?? {}
  const parts = [...(delay ?? said ?? "").matchAll(PART)]
  if (parts.length === 0) return undefined
  return Math.ceil(
    parts.reduce((sum, { groups }) => sum + Number(groups?.["number"]) * (UNIT_MS[groups?.["unit"] ?? ""] ?? 0), 0)
  )
}
