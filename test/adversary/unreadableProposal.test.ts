/** A stored proposal that this version cannot read, as an upgrade may leave it, beside others that it can. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { shownText } from "#src/choird/approvals/requestTypes.ts"
import { describeStores } from "../support/engines.ts"
import { openProposals } from "../support/proposals.ts"

const edit = (value: number) => ({
  change: [{ op: "set", path: "/budgets/turn_max_steps", value }],
  reason: "I need fewer"
})

/** What an earlier version may have stored, by what of the row it is. */
const BROKEN: ReadonlyArray<
  readonly [string, (sql: SqlClient.SqlClient, id: bigint) => Effect.Effect<unknown, unknown>]
> = [
  ["payload", (sql, id) => sql`UPDATE choir_control.pending_approvals SET canonical = '{"old":1}' WHERE id = ${id}`],
  ["text", (sql, id) => sql`UPDATE choir_control.pending_approvals SET canonical = '{' WHERE id = ${id}`],
  ["facts", (sql, id) => sql`UPDATE choir_control.pending_approvals SET facts = '[]'::jsonb WHERE id = ${id}`],
  ["kind", (sql, id) => sql`UPDATE choir_control.pending_approvals SET request_type = 'dance' WHERE id = ${id}`]
]

describeStores("a stored proposal that cannot be read", (it) => {
  it.effect(
    `in its ${BROKEN.map(([what]) => what).join(", ")} fails with a reason once approved, and lets the next ones be carried out`,
    () =>
      Effect.gen(function* () {
        const { home, life, propose } = yield* openProposals()
        const broken = []
        for (const [index, [, damage]] of BROKEN.entries()) {
          const { approval_id } = yield* propose("config_change", edit(10 + index))
          yield* life.decide(approval_id, "approved")
          yield* life.within(Effect.flatMap(SqlClient.SqlClient, (sql) => damage(sql, BigInt(approval_id))))
          broken.push(approval_id)
        }
        const good = yield* propose("config_change", edit(7))
        yield* life.decide(good.approval_id, "approved")
        yield* life.execute
        assert.strictEqual((yield* life.ended(good.approval_id)).status, "done")
        for (const approval_id of broken) {
          const { outcome, status } = yield* life.ended(approval_id)
          assert.deepStrictEqual([status, outcome?.split(":")[0]], ["failed", "UNREADABLE"], outcome ?? "")
        }
        assert.deepNestedPropertyVal(home.config(), "budgets.turn_max_steps", 7)
      })
  )

  it.effect("is shown with its stored payload, and can be rejected", () =>
    Effect.gen(function* () {
      const { life, propose } = yield* openProposals()
      const { approval_id } = yield* propose("config_change", edit(10))
      const damage = BROKEN[0]?.[1] ?? (() => Effect.void)
      yield* life.within(Effect.flatMap(SqlClient.SqlClient, (sql) => damage(sql, BigInt(approval_id))))
      const row = yield* life.get(approval_id)
      assert.match(shownText(row), /This version of Choir cannot read or carry out.*stored payload: \{"old":1\}/su)
      yield* life.decide(approval_id, "rejected")
      assert.strictEqual((yield* life.get(approval_id)).status, "rejected")
    })
  )
})
