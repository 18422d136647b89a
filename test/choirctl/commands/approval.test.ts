import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Conflict, NotFound } from "#schema/ApiError.ts"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { approvalDetail, approvalSummary, fakeChoird } from "../../support/fakeChoird.ts"

describe("choirctl approval", () => {
  it.effect("lists what waits as a table and as the pinned document", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const people = yield* choirctl(home, ["approval", "list", "agent-1"])
      assert.match(
        people.out,
        /^APPROVAL +AGENT +TYPE +STATUS +ASKED +LEFT +SUMMARY\n7 +agent-1 +confirm_tool +pending /u
      )
      const programs = yield* choirctl(home, ["approval", "list", "--all", "--json"])
      assert.deepStrictEqual(document(programs), [approvalSummary])
      assert.deepStrictEqual(
        calls.map(({ input }) => input),
        [{ agent_id: "agent-1" }, { all: "true" }]
      )
      yield* fakeChoird(yield* temporaryFolder)
    })
  )

  it.effect("says that nothing waits", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home, { approvals: Effect.succeed([]) })
      assert.strictEqual((yield* choirctl(home, ["approval", "list"])).out, "no pending approvals\n")
    })
  )

  it.effect("shows one with its facts, its hash and how to decide", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home)
      const people = yield* choirctl(home, ["approval", "show", "7"])
      for (const text of [
        "tool: mail.send",
        "3fa9c012",
        `choirctl --home ${home} approval approve 7 --hash 3fa9c012`,
        "pending"
      ])
        assert.include(people.out, text)
      assert.deepStrictEqual(document(yield* choirctl(home, ["approval", "show", "7", "--json"])), approvalDetail)
    })
  )

  it.effect("decides on the payload that was shown, or on the one that choird holds (R54)", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      yield* choirctl(home, ["approval", "approve", "7", "--hash", "deadbeef"])
      yield* choirctl(home, ["approval", "approve", "7"])
      yield* choirctl(home, ["approval", "reject", "7", "--reason", "wrong account"])
      assert.deepStrictEqual(calls, [
        { name: "approve", id: "7", input: { hash: "deadbeef" } },
        { name: "approval", id: "7" },
        { name: "approve", id: "7", input: { hash: "3fa9c012" } },
        { name: "approval", id: "7" },
        { name: "reject", id: "7", input: { hash: "3fa9c012", reason: "wrong account" } }
      ])
    })
  )

  it.effect("tells what hinders a decision, and exits as it should", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const error = { type: "ALREADY_DECIDED", message: "approval 7 was approved", hint: "choirctl approval show 7" }
      yield* fakeChoird(home, { approval: Effect.fail(new Conflict({ error })) })
      const decided = yield* choirctl(home, ["approval", "approve", "7", "--hash", "3fa9c012", "--json"])
      assert.strictEqual(decided.code, 1)
      assert.deepStrictEqual(document(decided), { ok: false, error })
      const other = yield* temporaryFolder
      const unknown = { type: "UNKNOWN_APPROVAL", message: "there is no approval 8" }
      yield* fakeChoird(other, { approval: Effect.fail(new NotFound({ error: unknown })) })
      assert.strictEqual((yield* choirctl(other, ["approval", "show", "8"])).code, 1)
      assert.strictEqual((yield* choirctl(other, ["approval", "approve", "7", "--hash", "nonsense"])).code, 2)
      assert.strictEqual((yield* choirctl(other, ["approval", "approve", "seven"])).code, 2)
    })
  )
})
