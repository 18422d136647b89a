import { assert, describe, it } from "@effect/vitest"
import { retryAfterMs, waitInWords } from "#src/shared/wire/retryAfterMs.ts"

const NOW = Date.UTC(2026, 0, 1, 12)
const dateAfter = (ms: number) => new Date(NOW + ms).toUTCString()

describe("retryAfterMs", () => {
  it("counts a date from the date of the answer, whatever the host's clock says, and without one from that", () => {
    const date = dateAfter(0)
    for (const skew of [-3_600_000, 0, 3_600_000])
      assert.strictEqual(retryAfterMs({ "retry-after": dateAfter(4000), date }, NOW + skew), 4000)
    assert.strictEqual(retryAfterMs({ "retry-after": dateAfter(4000) }, NOW + 1000), 3000)
    assert.strictEqual(retryAfterMs({ "retry-after": dateAfter(4000), date: "tomorrow" }, NOW), 4000)
    assert.strictEqual(retryAfterMs({ "retry-after": dateAfter(-4000), date }, NOW), 0)
  })

  it("takes seconds as they are, at most what a number holds, and nothing else", () => {
    assert.strictEqual(retryAfterMs({ "retry-after": "7", date: dateAfter(60_000) }, NOW), 7000)
    assert.strictEqual(retryAfterMs({ "retry-after": "9".repeat(30) }, NOW), Number.MAX_SAFE_INTEGER)
    for (const header of [undefined, "", "soon", "-1", "1.5"])
      assert.isUndefined(retryAfterMs({ "retry-after": header }, NOW))
  })
})

describe("the wait in a service's words", () => {
  it.each<readonly [words: string, ms: number]>([
    ["Please retry in 58.821668433s.", 58_822],
    ["Rate limit reached. Please try again in 7m12.5s. Visit the page.", 432_500],
    ["try again in 850ms", 850],
    ["Please retry after 20 seconds.", 20_000],
    ["try again in 1h2m", 3_720_000],
    ['{"error":{"details":[{"@type":"RetryInfo","retryDelay": "5s"}]}}', 5000]
  ])("is read: %s", (words, ms) => assert.strictEqual(waitInWords(words), ms))

  it.each([
    "slow down",
    "try again in a while",
    "Limit 20 per 10s",
    "entry in 5s",
    "retry in",
    "try again in 3 attempts"
  ])("is not made up: %s", (words) => assert.isUndefined(waitInWords(words)))
})
