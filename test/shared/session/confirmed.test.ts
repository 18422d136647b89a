import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { SessionId } from "#schema/Ids.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { decodeState, encodeState, FOLD_VERSION } from "#src/shared/session/snapshot.ts"
import { committed, ended, proposed, requested } from "../../support/confirmations.ts"
import { newAgent, Talk, userMsg } from "../../support/stores.ts"

const talk = () =>
  new Talk(SessionId.make("0123456789abcdef"), newAgent()).commit(
    userMsg(1),
    proposed("a-1"),
    requested("a-1", "tainted")
  )

describe("a call that needs a person's approval (D31)", () => {
  it("says so in the state and in its snapshot, since a recovery must still ask", () => {
    const state = Result.getOrThrow(foldAll(initialState, talk().events))
    const text = Result.getOrThrow(encodeState(state))
    const again = Result.getOrThrow(decodeState(state.rev, FOLD_VERSION, JSON.parse(text)))
    for (const { edge } of [state, again]) assert.strictEqual(edge.calls[0]?.confirm, "tainted")
  })

  it("continues with an approval and is refused without one, no matter who sends the events (R55)", () => {
    const approved = talk().commit(committed("a-1", "7"), ended("a-1", "success"))
    assert.isTrue(Result.isSuccess(foldAll(initialState, approved.events)))
    const { approval_id: _, ...payload } = committed("a-1", "7").payload as { readonly approval_id: string }
    const without = talk().commit({ ...committed("a-1", "7"), payload } as never)
    const folded = foldAll(initialState, without.events)
    assert.include(Result.isFailure(folded) ? folded.failure.reason : "", "needs a person's approval")
  })

  it("may end without having run", () => {
    for (const status of ["rejected", "cancelled", "timeout"] as const)
      assert.isTrue(Result.isSuccess(foldAll(initialState, talk().commit(ended("a-1", status)).events)))
    assert.isTrue(Result.isFailure(foldAll(initialState, talk().commit(ended("a-1", "success")).events)))
  })
})
