/** A rate limit as data: the tokens left at an instant (R47). */

export interface TokenBucket {
  readonly tokens: number
  readonly at_ms: number
}

interface Rate {
  readonly perSecond: number
  readonly burst: number
}

/** Takes tokens; `wait_ms` is 0 when there were enough, else the time until there are. A clock set back adds no tokens. */
export const take = (
  bucket: TokenBucket,
  rate: Rate,
  now_ms: number,
  wanted = 1
): readonly [next: TokenBucket, wait_ms: number] => {
  const elapsed_ms = Math.max(0, now_ms - bucket.at_ms)
  const tokens = Math.min(rate.burst, bucket.tokens + (elapsed_ms * rate.perSecond) / 1000)
  return tokens >= wanted
    ? [{ tokens: tokens - wanted, at_ms: now_ms }, 0]
    : [{ tokens, at_ms: now_ms }, Math.ceil(((wanted - tokens) * 1000) / rate.perSecond)]
}
