import { assert, describe, it } from "@effect/vitest"
import { ApprovalStatus } from "#schema/Approval.ts"
import { type ApprovalRow } from "#src/choird/approvals/approvalRows.ts"
import { type ApprovalStep, mayFollow, resolutionOf, verdict } from "#src/choird/approvals/approvalStatus.ts"
import { ProofOfApproval, type beginExecution } from "#src/choird/approvals/ProofOfApproval.ts"
import type { AgentSteps } from "#src/choird/proposals/AgentSteps.ts"
import type { Proposals } from "#src/choird/approvals/Proposals.ts"
import type { advance, begin } from "#src/choird/proposals/Executions.ts"
import type { RepoSteps } from "#src/choird/proposals/RepoSteps.ts"

const HASH = "3fa9c012".padEnd(64, "0")
const facts = { status: "pending", now_ms: 10, expires_ms: 20, hash: HASH, isOver: false } as const
const yes = { resolution: "approved", hash8: "3fa9c012" } as const

describe("an approval's way (R52)", () => {
  it("has one decision, and only a yes is executed, once", () => {
    const steps: ReadonlyArray<ApprovalStep> = ["approved", "rejected", "expired", "executing", "done", "failed"]
    const legal = ApprovalStatus.literals.flatMap((status) =>
      steps.filter((step) => mayFollow(status, step)).map((step) => `${status} ${step}`)
    )
    assert.deepStrictEqual(legal, [
      "pending approved",
      "pending rejected",
      "pending expired",
      "approved executing",
      "executing done",
      "executing failed"
    ])
  })

  it("is decided by what the person saw, in time, while somebody is left to do it (R54)", () => {
    assert.deepStrictEqual(verdict(facts, yes), { resolution: "approved" })
    assert.deepStrictEqual(verdict(facts, { ...yes, resolution: "rejected" }), { resolution: "rejected" })
    assert.deepStrictEqual(verdict(facts, { ...yes, hash8: "3fa9c013" }), { refusal: "CHANGED" })
    assert.deepStrictEqual(verdict({ ...facts, now_ms: 20 }, yes), { resolution: "expired", refusal: "EXPIRED" })
    assert.deepStrictEqual(verdict({ ...facts, isOver: true }, yes), {
      resolution: "expired",
      refusal: "SESSION_ENDED"
    })
    for (const status of ApprovalStatus.literals)
      if (status !== "pending")
        assert.deepStrictEqual(verdict({ ...facts, status }, yes), {
          refusal: status === "expired" ? "EXPIRED" : "ALREADY_DECIDED"
        })
  })

  it("tells an agent the decision and not the execution", () => {
    assert.deepStrictEqual(
      ApprovalStatus.literals.map((status) => resolutionOf(status)),
      [undefined, "approved", "rejected", "expired", "approved", "approved", "approved"]
    )
  })
})

describe("the proof of an approval (R55)", () => {
  const row = (status: ApprovalStatus) => ({ status }) as ApprovalRow

  it("is made by a row in `approved` and by no other", () => {
    const made = ApprovalStatus.literals.filter((status) => ProofOfApproval.of(row(status)) !== undefined)
    assert.deepStrictEqual(made, ["approved"])
  })

  it("of what was begun is made by a row in `executing` and by no other", () => {
    const made = ApprovalStatus.literals.filter((status) => ProofOfApproval.begun(row(status)) !== undefined)
    assert.deepStrictEqual(made, ["executing"])
  })

  it("is what every step of an execution asks for first", () => {
    type First<F> = F extends (first: infer A, ...rest: never) => unknown ? A : never
    type IsProof<A> = [A] extends [ProofOfApproval] ? ([ProofOfApproval] extends [A] ? true : false) : false
    // Each of these stops compiling when a step takes anything else.
    const asked: {
      readonly execute: IsProof<First<Proposals["Service"]["execute"]>["approved"]>
      readonly take: IsProof<First<RepoSteps["Service"]["take"]>["approved"]>
      readonly build: IsProof<First<AgentSteps["Service"]["build"]>>
      readonly afterChange: IsProof<First<AgentSteps["Service"]["afterChange"]>>
      readonly update: IsProof<First<AgentSteps["Service"]["update"]>>
      readonly begin: IsProof<First<typeof begin>>
      readonly advance: IsProof<First<typeof advance>>
    } = { execute: true, take: true, build: true, afterChange: true, update: true, begin: true, advance: true }
    assert.lengthOf(Object.keys(asked), 7)
  })

  it("cannot be made up", () => {
    type Needed = Parameters<typeof beginExecution>[0]
    const lookAlike = { row: row("approved") }
    // @ts-expect-error a look-alike has no private field
    const forged: Needed = lookAlike
    // @ts-expect-error the constructor is private
    const built = () => new ProofOfApproval(row("pending"))
    assert.isFunction(built)
    assert.isFalse(forged instanceof ProofOfApproval)
  })
})
