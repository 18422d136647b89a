import { assert, describe, it } from "@effect/vitest"
import { makePastedLines, PASTE_CHARS_MAX } from "#src/choirctl/chat/pastedLines.ts"

describe("lines that are pasted into the chat", () => {
  it("are one message, with what is typed behind them", () => {
    const pasted = makePastedLines()
    pasted.mark(true)
    assert.isUndefined(pasted.entered("First"))
    assert.isUndefined(pasted.entered(""))
    pasted.mark(false)
    assert.strictEqual(pasted.entered("third, and more"), "First\n\nthird, and more")
    assert.strictEqual(pasted.entered("typed"), "typed")
  })

  it("go with Ctrl-C, and are refused where they are too long", () => {
    const pasted = makePastedLines()
    pasted.mark(true)
    pasted.entered("First")
    pasted.clear()
    pasted.mark(false)
    assert.strictEqual(pasted.entered("Second"), "Second")
    pasted.mark(true)
    pasted.entered("x")
    for (let at = 0; at < 9; at++) pasted.entered("x".repeat(PASTE_CHARS_MAX / 8))
    pasted.mark(false)
    assert.isNull(pasted.entered("end"))
    assert.strictEqual(pasted.entered("typed"), "typed")
  })
})
