/** An agent that goes on proposing while as many proposals wait for a person as may: each look at a repository starts programs of git. */
import { rmSync } from "node:fs"
import { assert } from "@effect/vitest"
import { Effect, Result } from "effect"
import { APPROVALS_PENDING_MAX } from "#src/shared/limits.ts"
import { describeEngines } from "../support/engines.ts"
import { openProposals, TOOL } from "../support/proposals.ts"

const edit = (value: number) => ({
  change: [{ op: "set", path: "/budgets/turn_max_steps", value }],
  reason: "I need fewer"
})

describeEngines("a proposal that is one too many for a person", (it) => {
  it.effect("is refused without a look at the agent's repository", () =>
    Effect.gen(function* () {
      const { home, propose } = yield* openProposals()
      for (let value = 1; value <= APPROVALS_PENDING_MAX; value++) yield* propose("config_change", edit(value))
      // A look would find nothing and be refused for that.
      rmSync(home.agent.path, { recursive: true })
      const refused = yield* Effect.result(propose("tool", TOOL))
      const kind =
        Result.isFailure(refused) && refused.failure._tag === "ApprovalRefused" ? refused.failure.kind : "none"
      assert.strictEqual(kind, "APPROVALS_FULL")
    }).pipe(Effect.scoped)
  )
})
