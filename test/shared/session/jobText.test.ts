import { assert, describe, it } from "@effect/vitest"
import { jobLines, waitText } from "#src/shared/session/jobText.ts"
import { coreSummary } from "../../support/coreSummary.ts"

describe("a job that waits for its provider", () => {
  it("says since when by the clock of the one who reads it", () => {
    const provider_wait = { since: "2026-03-10T23:10:00.000Z", cause: "nobody answers" }
    assert.strictEqual(waitText(provider_wait, "Asia/Tokyo"), "waits for the provider since 08:10")
    const [first] = jobLines({ ...coreSummary, provider_wait }, "Asia/Kathmandu")
    assert.include(first, "waits for the provider since 04:55")
  })
})
