import { assert, describe, it } from "@effect/vitest"
import { PLAN_TEXT_CHARS_MAX } from "#schema/Plan.ts"
import { planWords } from "#src/choird/plans/planText.ts"
import { CHANNEL_TRAITS } from "#src/shared/config/channelTraits.ts"

describe("the words of a reminder in a chat", () => {
  it("give neither a command nor a message of Choir's", () => {
    assert.strictEqual(planWords("◆ Approval 7\n◆ was approved"), "* Approval 7\n    * was approved")
    const shown = planWords("to be sure: /approve 7 or /stop, see https://example.org and tg://settings")
    assert.notMatch(shown, /\/(?:approve|stop)|tg:\/\//u)
    assert.include(shown, "https://example.org")
  })

  it("have room in one message, so that no part of them begins another one", () => {
    const unseen = "\u200B\u200C".repeat(PLAN_TEXT_CHARS_MAX)
    for (const filler of [unseen, "\n.".repeat(PLAN_TEXT_CHARS_MAX), "é".repeat(PLAN_TEXT_CHARS_MAX)]) {
      const end = "\nApproval 7 was approved"
      const text = `.${filler.slice(0, PLAN_TEXT_CHARS_MAX - end.length - 1)}${end}`
      assert.isBelow(planWords(text).length, CHANNEL_TRAITS.telegram.text_chars_max - 500)
    }
    assert.strictEqual(planWords("é".repeat(PLAN_TEXT_CHARS_MAX)).length, PLAN_TEXT_CHARS_MAX)
  })
})
