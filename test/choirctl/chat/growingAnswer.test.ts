import { assert, describe, it } from "@effect/vitest"
import { InboxId } from "#schema/Ids.ts"
import { finish, fitted, grow, growing, type GrowingAnswer } from "#src/choirctl/chat/growingAnswer.ts"

const one = InboxId.make("1")
const draft = (text: string, reporting = false) => ({ type: "draft", in_reply_to: one, text, reporting }) as const
const message = (text: string, kind: "reply" | "report" = "reply") =>
  ({ type: "message", outbox_id: "1", source: "event:1", part: 0, kind, text, in_reply_to: one }) as const

/** All that is printed of drafts and of the messages behind them. */
const printed = (drafts: ReadonlyArray<string>, messages: ReadonlyArray<string>, reporting = false) => {
  let writing: GrowingAnswer | undefined
  const lines: Array<string> = []
  for (const text of drafts) {
    const shown = grow(writing, draft(text, reporting), false)
    writing = shown.writing
    if (shown.lines !== undefined) lines.push(shown.lines)
  }
  for (const text of messages) {
    const shown = finish(writing, message(text, reporting ? "report" : "reply"))
    writing = shown?.writing
    const left = shown === undefined ? `${reporting ? "report: " : ""}${text}` : shown.lines
    if (left !== undefined) lines.push(left)
  }
  return lines.join("\n")
}

describe("an answer that is being written", () => {
  const answer = "A list:\n\n- one\n- two\n\nThat is all."

  it("reads like the answer, wherever the drafts end", () => {
    for (let first = 0; first <= answer.length; first++)
      for (let second = first; second <= answer.length; second++)
        assert.strictEqual(printed([answer.slice(0, first), answer.slice(0, second)], [answer]), answer)
  })

  it("reads like the report where it is one, with the word in front of it once", () => {
    const report = `${answer}\n\ndig is done: 2 files`
    for (let end = 0; end <= answer.length; end++)
      assert.strictEqual(printed([answer.slice(0, end), answer], [report], true), `report: ${report}`)
  })

  it("is not a report's where the answer to the same message is written, and the reverse", () => {
    const { writing } = grow(undefined, draft("On it.\n"), false)
    assert.isUndefined(finish(writing, message("On it.\n", "report")))
    const next = grow(writing, draft("On it.\nDone", true), false)
    assert.strictEqual(next.lines, "report: On it.")
    assert.isUndefined(finish(next.writing, message("On it.\nDone")))
  })

  it("prints a part of it once when it comes in several messages", () => {
    const long = `${"word ".repeat(20)}\n${"more ".repeat(20)}\n`
    assert.strictEqual(printed([long], [long.slice(0, 50), long.slice(50)]), long.slice(0, -1))
  })

  it("is printed again where the answer is another text than the draft", () => {
    assert.strictEqual(printed(["Perhaps so.\nYes"], ["No."]), "Perhaps so.\nNo.")
  })

  it("leaves words beside tool calls in front of the words that follow", () => {
    const looked = grow(undefined, draft("Let me look."), false)
    assert.isUndefined(looked.lines)
    const { lines, writing } = grow(looked.writing, draft("It is"), false)
    assert.strictEqual(lines, "Let me look.")
    assert.strictEqual(writing === undefined ? "" : growing(writing, false), "It is")
  })

  it("obeys no character that a terminal obeys", () => {
    const { lines = "", writing } = grow(undefined, draft("a\u001b[2J\nb\u001b[2J"), false)
    assert.notInclude(lines, "\u001b")
    assert.notInclude(writing === undefined ? "" : growing(writing, false), "\u001b")
  })

  it("takes few rows, also in the widest script", () => {
    for (const line of ["", "word", "word ".repeat(500), "\u5b57".repeat(500)]) {
      const { rows, text } = fitted(line, 40)
      assert.isAtMost(rows, 5)
      assert.strictEqual(rows === 0, text === "")
    }
  })
})
