import { assert, describe, it } from "@effect/vitest"
import { isSameElement, shownElement } from "#src/choird/workers/shownElement.ts"

const TREE = `- generic [active] [ref=e1]:
  - heading "Say [ref=e9]" [level=1] [ref=e2]
  - 'button "Price: 5 € [ref=e10]" [ref=e3] [cursor=pointer]'
  - textbox "Name" [ref=e4]: Ada
  - generic [ref=e5] [cursor=pointer]:
    - generic [ref=e6]: Pay
    - strong [ref=e7]: 5 €
    - link "terms" [ref=e8]:
      - /url: https://shop.test/terms
  - iframe [ref=f1e1]:
    - button "it's \\"quoted\\"" [ref=f1e2]`

const named = (ref: string | undefined) => {
  const found = shownElement(TREE, ref)
  return found === undefined ? undefined : [found.role, found.name]
}

describe("shownElement", () => {
  it("finds the role and the name of a ref, and the text of what has no name", () => {
    assert.deepStrictEqual(named("e2"), ["heading", "Say [ref=e9]"])
    assert.deepStrictEqual(named("e3"), ["button", "Price: 5 € [ref=e10]"])
    assert.deepStrictEqual(named("e4"), ["textbox", "Name"])
    assert.deepStrictEqual(named("e5"), ["generic", "Pay 5 € terms"])
    assert.deepStrictEqual(named("f1e2"), ["button", 'it\'s "quoted"'])
    assert.isTrue(shownElement(TREE, "f1e2")?.in_frame)
    // Refs have such a prefix also where a tab went to another site.
    assert.isFalse(shownElement(`- generic [ref=f2e1]:\n  - button "Pay" [ref=f2e2]`, "f2e2")?.in_frame)
  })

  it("takes no name for a ref, and finds what has the focus", () => {
    assert.isUndefined(named("e9"))
    assert.isUndefined(named("e10"))
    assert.isUndefined(named("e99"))
    assert.strictEqual(shownElement(TREE, undefined)?.role, "generic")
    assert.strictEqual(shownElement(`- button "[active]" [ref=e1]`, undefined)?.role, "page")
  })

  it("reads a tree that is made to be hard to read in one pass", () => {
    const deep = Array.from(
      { length: 20_000 },
      (_, depth) => `${" ".repeat(Math.min(depth, 50))}- generic [ref=e${depth}]:`
    )
    assert.strictEqual(shownElement(deep.join("\n"), "e19999")?.role, "generic")
    const quotes = `- button ${'"\\'.repeat(20_000)} [ref=e1]`
    assert.isUndefined(shownElement(quotes, "e1"))
  })

  it("tells elements apart by role, name and text, and not by the text of a part", () => {
    const one = { role: "generic", name: "Pay 5 €", is_text: true, in_frame: false }
    assert.isTrue(isSameElement(one, { ...one }, false))
    for (const other of [{ role: "button" }, { name: "Pay 9 €" }, { is_text: false }])
      assert.isFalse(isSameElement(one, { ...one, ...other }, false), JSON.stringify(other))
    assert.isTrue(isSameElement(one, { ...one, name: "" }, true))
    assert.isFalse(isSameElement({ ...one, is_text: false }, { ...one, name: "", is_text: false }, true))
  })
})
