/** An agent that keeps choird looking at its proposals, each of which starts programs of git. */
import { rmSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { AgentId } from "#schema/Ids.ts"
import {
  APPROVALS_PENDING_MAX,
  makeLookBudget,
  PROPOSAL_LOOK_MS,
  PROPOSAL_LOOKS_BURST
} from "#src/choird/approvals/askApproval.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { describeStores } from "../support/engines.ts"
import { openProposals, TOOL } from "../support/proposals.ts"

const edit = (value: number) => ({
  change: [{ op: "set", path: "/budgets/turn_max_steps", value }],
  reason: "I need fewer"
})

describe("the budget of looks at proposals", () => {
  it("is an agent's own, allows a few in a row, and comes back with time", () => {
    const budget = makeLookBudget()
    const [hostile, honest] = [AgentId.make("hostile"), AgentId.make("honest")]
    for (let look = 0; look < PROPOSAL_LOOKS_BURST; look++) assert.strictEqual(budget(hostile, 0), 0)
    assert.strictEqual(budget(hostile, 0), PROPOSAL_LOOK_MS)
    assert.strictEqual(budget(hostile, PROPOSAL_LOOK_MS - 1), 1)
    assert.strictEqual(budget(hostile, PROPOSAL_LOOK_MS), 0)
    assert.strictEqual(budget(honest, 0), 0)
  })
})

/** Proposals of the flood below; each is refused, with a look or without one. */
const REFUSED = 50

describeStores("proposals that are refused", (it) => {
  it.effect("cost no more looks at a repository than the agent's budget allows", () =>
    Effect.gen(function* () {
      const { call, home, request } = yield* openProposals()
      const call_id = yield* call("tool", TOOL)
      // A look finds no repository, and only a look can say so.
      rmSync(home.agent.path, { recursive: true })
      const began_ms = yield* monotonicMs
      const kinds = new Map<string, number>()
      let retry_after_ms: number | undefined
      for (let sent = 0; sent < REFUSED; sent++) {
        const refused = yield* Effect.flip(request("tool", call_id, TOOL))
        kinds.set(refused.kind, (kinds.get(refused.kind) ?? 0) + 1)
        retry_after_ms ??= refused.retry_after_ms
      }
      const refilled = Math.ceil(((yield* monotonicMs) - began_ms) / PROPOSAL_LOOK_MS)
      const looks = kinds.get("REPOSITORY") ?? 0
      assert.isAtLeast(looks, PROPOSAL_LOOKS_BURST)
      assert.isAtMost(looks, PROPOSAL_LOOKS_BURST + refilled)
      assert.strictEqual(kinds.get("RATE_LIMITED"), REFUSED - looks)
      assert.isAtMost(retry_after_ms ?? Number.POSITIVE_INFINITY, PROPOSAL_LOOK_MS)
    }).pipe(Effect.scoped)
  )
})

describeStores("a proposal that is one too many for a person", (it) => {
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
