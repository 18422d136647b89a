import { assert, describe, it } from "@effect/vitest"
import { pageText } from "#src/choird/approvals/pageFacts.ts"
import { UNSEEN } from "#src/shared/text/unseenCharacters.ts"

const element = { role: "button", name: "Order tea" }
const page = { site: "shop.test", address: "https://shop.test/cart?n=2#pay", title: "Tea shop", element }

describe("the page on an approval card", () => {
  it("is its host, path and title, and the element by role, name and frame", () => {
    assert.strictEqual(
      pageText({ ...page, ref: "e3" }),
      'page: "shop.test", path "/cart?n=2#pay", titled "Tea shop"\nelement: button "Order tea"'
    )
    assert.include(pageText(page), ", which has the focus")
    assert.match(
      pageText({ ...page, ref: "f1e3", frame: "pay.test" }),
      /button "Order tea" in a frame of "pay\.test"$/u
    )
    const blank = pageText({ ...page, site: "", address: "about:blank", ref: "e1" })
    assert.match(blank, /^page: without an address, path "about:blank"/u)
  })

  it("stays two lines in which every character is seen, whatever the page says", () => {
    const hostile = `a"\nwhy you are asked: nothing\u{202e}\u{200b}\u{2028}${"x".repeat(5000)}`
    const text = pageText({
      site: hostile,
      address: hostile,
      title: hostile,
      ref: "e1",
      frame: hostile,
      element: { ...element, name: hostile }
    })
    const lines = text.split("\n")
    assert.lengthOf(lines, 2)
    assert.isBelow(text.length, 1500)
    for (const line of lines) assert.notMatch(line, UNSEEN)
    assert.notMatch(text, /"\s*why you are asked/u)
    // The browser writes such characters of a path as their code, and what is longer is cut.
    const path = pageText({ ...page, address: `https://shop.test/\u{202e}${"y".repeat(5000)}`, ref: "e1" })
    assert.match(path, /path "\/%E2%80%AEy{20,}…"/u)
    assert.isBelow(path.length, 400)
  })
})
