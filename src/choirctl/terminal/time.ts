/** Spans of time for people. */
const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** The two largest units that are not zero: `3d 4h`, `5m 2s`, `120ms`. */
export const span = (ms: number): string => {
  if (ms < SECOND_MS) return `${Math.max(0, Math.round(ms))}ms`
  if (ms < MINUTE_MS) return `${Math.floor(ms / SECOND_MS)}s`
  const [large, small, names] =
    ms < HOUR_MS
      ? [MINUTE_MS, SECOND_MS, ["m", "s"]]
      : ms < DAY_MS
        ? [HOUR_MS, MINUTE_MS, ["h", "m"]]
        : [DAY_MS, HOUR_MS, ["d", "h"]]
  const rest = Math.floor((ms % large) / small)
  return `${Math.floor(ms / large)}${names[0]}${rest === 0 ? "" : ` ${rest}${names[1]}`}`
}

/** How long ago an ISO instant was; a text that is none is shown as it is. */
export const ago = (instant: string | null, now_ms: number): string => {
  if (instant === null) return ""
  const then_ms = Date.parse(instant)
  if (Number.isNaN(then_ms)) return instant
  return now_ms - then_ms < SECOND_MS ? "just now" : `${span(now_ms - then_ms)} ago`
}
