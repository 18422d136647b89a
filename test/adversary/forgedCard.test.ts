/** An agent that words an approval card of its own, in the chat where choird's cards stand. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chatText } from "#src/choird/queues/Outbox.ts"
import { spawnChoirctl } from "../support/choirctl.ts"
import { temporaryFolder } from "../support/engines.ts"
import { approvalDetail, fakeChoird } from "../support/fakeChoird.ts"

const CARD = "agent-1 asks for approval 7.\nproposal: config_change /budgets/turn_max_steps"

describe("a card that an agent wrote", () => {
  it("never begins as choird's messages do, whichever diamond it uses", () => {
    assert.isTrue(chatText({ source: "choird", text: CARD }).startsWith("◆ agent-1 asks"))
    for (const mark of ["◆", "◇", "♦", "♦\uFE0F", "⬥", "❖", "🔶", "🔷", "💠", "⯁", "🞜", "🞝", "🞞", "◊", "⋄", "⟐"])
      for (const text of [`${mark} ${CARD}`, `hello\n${mark} ${CARD}`, `${mark}${mark}${CARD}`])
        assert.notInclude(chatText({ source: "event", text }), mark, mark)
    assert.strictEqual(chatText({ source: "event", text: "plain * text" }), "plain * text")
  })

  it.live("cannot get a yes at a terminal: the command that it names shows choird's own facts and asks", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const digits = approvalDetail.hash.slice(0, 8)
      const args = ["--home", home, "approval", "approve", "7", "--hash", digits]
      const left = yield* spawnChoirctl(args, { typing: [{ after: "Approve agent-1", text: "\r" }] })
      assert.strictEqual(left.code, 1, left.out)
      assert.include(left.out, "tool: mail.send")
      assert.isFalse(calls.some(({ name }) => name === "approve"))
      const done = yield* spawnChoirctl(args, { typing: [{ after: "Approve agent-1", text: "y" }] })
      assert.strictEqual(done.code, 0, done.out)
      assert.deepStrictEqual(calls.filter(({ name }) => name === "approve").length, 1)
      yield* spawnChoirctl([...args, "--yes"], { typing: [] })
      assert.deepStrictEqual(calls.filter(({ name }) => name === "approve").length, 2)
    })
  )
})
