import { assert, describe, it } from "@effect/vitest"
import { boundsText } from "#src/shared/image/skillReportText.ts"

describe("boundsText", () => {
  it("names the most that a run can take, and says of a run that asks no model just that", () => {
    const bounds = { model_calls: 12, tokens: 4000, usd: 0.5, locks: ["file:S"] }
    assert.strictEqual(boundsText(bounds), "at most 12 model calls, 4000 tokens, $0.500, locks file:S")
    assert.strictEqual(
      boundsText({ model_calls: 0, tokens: 0, usd: 0, locks: ["file:S"] }),
      "asks no model, locks file:S"
    )
  })
})
