import { assert, describe, it } from "@effect/vitest"
import { localMinute, localSecond } from "#src/shared/text/localTime.ts"

const AT = "2027-03-04T23:40:59.999Z"

describe("localMinute", () => {
  it("is the minute of the time zone, also where that is another day, and names the zone", () => {
    assert.strictEqual(localMinute(AT, "Europe/Berlin"), "2027-03-05 00:40 (Europe/Berlin)")
    assert.strictEqual(localMinute(Date.parse(AT), "UTC"), "2027-03-04 23:40 UTC")
  })
})

describe("localSecond", () => {
  it("is the time of the day in the time zone", () => {
    assert.strictEqual(localSecond(AT, "Europe/Berlin"), "00:40:59")
    assert.strictEqual(localSecond(AT, "UTC"), "23:40:59")
  })
})
