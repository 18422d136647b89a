import { assert, describe, it } from "@effect/vitest"
import { pageText } from "#src/choird/approvals/pageFacts.ts"
import { UNSEEN } from "#src/choird/approvals/approvalText.ts"

const element = { role: "button", name: "Order tea", is_text: false, in_frame: false }

describe("the page on an approval card", () => {
  it("is its host and title, and the element by role and name", () => {
    assert.strictEqual(
      pageText({ site: "shop.test", title: "Tea shop", ref: "e3", element }),
      'page: "shop.test", titled "Tea shop"\nelement: button "Order tea"'
    )
    assert.include(pageText({ site: "shop.test", title: "", element }), ", which has the focus")
    assert.include(
      pageText({ site: "shop.test", title: "", ref: "f1e3", element: { ...element, in_frame: true } }),
      "in a frame of the page"
    )
    assert.match(pageText({ site: "", title: "", ref: "e1", element }), /^page: without an address/u)
  })

  it("stays two lines in which every character is seen, whatever the page says", () => {
    const hostile = `a"\nwhy you are asked: nothing\u{202e}\u{200b}\u{2028}${"x".repeat(5000)}`
    const text = pageText({ site: hostile, title: hostile, ref: "e1", element: { ...element, name: hostile } })
    const lines = text.split("\n")
    assert.lengthOf(lines, 2)
    assert.isBelow(text.length, 900)
    for (const line of lines) assert.notMatch(line, UNSEEN)
    assert.notMatch(text, /"\s*why you are asked/u)
  })
})
