import { assert, describe, it } from "@effect/vitest"
import { focusedElement, isSameElement, type ShownElement, shownElement } from "#src/choird/workers/shownElement.ts"

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

const named = (ref: string) => {
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
    for (const ref of ["e1", "f1e1"]) assert.isTrue(shownElement(TREE, ref)?.has_frame, ref)
    for (const ref of ["e5", "f1e2"]) assert.isFalse(shownElement(TREE, ref)?.has_frame, ref)
  })

  it("knows where a name may be too long for a tree", () => {
    for (const ref of ["e5", "f1e1"]) assert.isTrue(shownElement(TREE, ref)?.has_nameless, ref)
    for (const ref of ["e2", "e3", "e8", "f1e2"]) assert.isFalse(shownElement(TREE, ref)?.has_nameless, ref)
  })

  it("takes no name for a ref, and finds what has the focus", () => {
    assert.isUndefined(named("e9"))
    assert.isUndefined(named("e10"))
    assert.isUndefined(named("e99"))
    assert.strictEqual(focusedElement(TREE)?.role, "generic")
    assert.isUndefined(focusedElement(`- button "[active]" [ref=e1]`))
    // The document of each frame has a focus of its own, which takes no key while the page has it.
    const framed = `- generic [ref=e1]:\n  - iframe [ref=e2]:\n    - generic [active] [ref=f1e1]\n`
    assert.isUndefined(focusedElement(framed))
    assert.strictEqual(focusedElement(`${framed}  - button "Pay" [active] [ref=e3]`)?.name, "Pay")
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

  it("tells elements apart by all that is in them, however deep or long, and not by refs, focus or pointer", () => {
    const of = (text: string): ShownElement => shownElement(text, "e1") ?? assert.fail(text)
    const one = of(`- generic [ref=e1]:\n  - generic [ref=e2]: Pay\n  - strong [ref=e3]: 5 €\n- text: end`)
    assert.isTrue(
      isSameElement(
        one,
        of(`  - generic [active] [ref=e1] [cursor=pointer]:\n    - generic [ref=e8]: Pay\n    - strong [ref=e9]: 5 €`)
      )
    )
    for (const other of [
      `- button [ref=e1]:\n  - generic [ref=e2]: Pay\n  - strong [ref=e3]: 5 €`,
      `- generic [ref=e1]:\n  - generic [ref=e2]: Pay\n  - strong [ref=e3]: 9 €`,
      `- generic [ref=e1]:\n  - generic [ref=e2]: Pay`,
      `- generic "Pay 5 €" [ref=e1]`
    ])
      assert.isFalse(isSameElement(one, of(other)), other)
    const [first, second] = ["1", "2"].map((end) => of(`- button "${"x".repeat(800)}${end}" [ref=e1]`))
    assert.strictEqual(first?.name, second?.name)
    assert.isFalse(isSameElement(first ?? one, second ?? one))
    assert.isFalse(isSameElement(of(`- checkbox "All" [ref=e1]`), of(`- checkbox "All" [checked] [ref=e1]`)))
  })
})
