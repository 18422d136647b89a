import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { auditRow } from "../../support/fakeAudit.ts"
import { fakeChoird } from "../../support/fakeChoird.ts"

describe("choirctl audit", () => {
  it.effect("lists who was refused what and how often, for people and as JSON (R77)", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const shown = yield* choirctl(home, ["audit", "--last", "20", "--agent", "agent-1"])
      assert.match(
        shown.out,
        /2026-01-02T03:04:05\.678Z {2}agent:agent-1 {2}rpc\.GET_SECRETS {2}UNBOUND x3 {2}0k8v3w9m2p1n4q7r {2}names=\["other-key"\]\n/u
      )
      assert.deepStrictEqual(document(yield* choirctl(home, ["audit", "--json"])), [auditRow])
      assert.deepStrictEqual(
        calls.map(({ input }) => input),
        [{ last: 20, agent_id: "agent-1" }, { last: 100 }]
      )
    })
  )

  it.effect("tells an order and a call that was broken off from what was done, and how often it was", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const row = (outcome?: string, count = 1) => ({
        ...auditRow,
        count,
        detail: outcome === undefined ? {} : { outcome }
      })
      const rows = [row("begun"), row("interrupted"), row("ordered"), row(), row("error", 7), row(undefined, 2)]
      yield* fakeChoird(home, { audit: Effect.succeed(rows) })
      const lines = (yield* choirctl(home, ["audit"])).out.trim().split("\n").slice(1)
      assert.deepStrictEqual(
        lines.map((line) => line.split(/ {2,}/u)[3]),
        ["begun", "interrupted", "ordered", "done", "error x7", "done x2"]
      )
      assert.notInclude(lines.join(""), "outcome=")
    })
  )

  it.effect("says when there is nothing, and refuses a count that is none", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home, { audit: Effect.succeed([]) })
      assert.strictEqual((yield* choirctl(home, ["audit"])).out, "no entries\n")
      assert.strictEqual((yield* choirctl(home, ["audit", "--last", "-1"])).code, 2)
      assert.strictEqual((yield* choirctl(home, ["audit", "--agent", "NO"])).code, 2)
    })
  )
})
