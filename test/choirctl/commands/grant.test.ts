import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { grantSummary } from "../../support/fakeApprovals.ts"
import { fakeChoird } from "../../support/fakeChoird.ts"

describe("choirctl grant", () => {
  it.effect("lists what agents may do without asking, and revokes it", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const people = yield* choirctl(home, ["grant", "list", "agent-1"])
      assert.match(
        people.out,
        /^GRANT +AGENT +FOR +USED +UNTIL \(UTC\) +COVERS\n3 +agent-1 +mailing +2 of 20 +2030-01-02 03:04 +calls to mail\.send/u
      )
      assert.deepStrictEqual(document(yield* choirctl(home, ["grant", "list", "--all", "--json"])), [grantSummary])
      const revoked = yield* choirctl(home, ["grant", "revoke", "3"])
      assert.match(revoked.out, /^revoked grant 3 of agent-1: calls to mail\.send/u)
      assert.deepStrictEqual(
        calls.map(({ id, input, name }) => [name, id ?? input]),
        [
          ["grants", { agent_id: "agent-1" }],
          ["grants", { all: "true" }],
          ["revoke", "3"]
        ]
      )
      assert.strictEqual((yield* choirctl(home, ["grant", "revoke", "x"])).code, 2)
    })
  )

  it.effect("says that there are none", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home, { grants: Effect.succeed([]) })
      assert.strictEqual((yield* choirctl(home, ["grant", "list"])).out, "no standing grants\n")
    })
  )

  it.effect("is given with an approval", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      yield* choirctl(home, ["approval", "approve", "7", "--hash", "3fa9c012", "--grant", "agent", "--yes"])
      assert.deepInclude(calls.at(-1), { name: "approve", input: { hash: "3fa9c012", grant: "agent" } })
    })
  )
})
