import { assert, describe, it } from "@effect/vitest"
import { Result, type Schema } from "effect"
import { understandProposal } from "#src/choird/approvals/Proposal.ts"
import { summarize, todoFlagger } from "../../support/contracts.ts"

const understood = (spec: unknown) =>
  understandProposal("skill", { spec: spec as Schema.Json, reason: "the user asks every day" })

describe("a proposed skill", () => {
  it("is read as its file would be: a script leaves its states out", () => {
    const proposal = Result.getOrThrow(understood(todoFlagger))
    assert.deepInclude(proposal, { kind: "skill", name: "todo-flagger" })
    assert.deepInclude(Result.getOrThrow(understood(summarize)), { kind: "skill", name: "summarize" })
  })

  it.each([
    ["a contract that cannot hold", { ...todoFlagger, contract: { ...todoFlagger.contract, state_write: ["lost"] } }],
    ["a script with states of its own", { ...summarize, ...todoFlagger, name: "summarize" }],
    ["no name", { ...todoFlagger, name: undefined }],
    ["a key that there is not", { ...todoFlagger, code: "rm" }]
  ])("is refused with %s", (_, spec) => {
    const read = understood(JSON.parse(JSON.stringify(spec)))
    assert.match(Result.isFailure(read) ? read.failure : "", /^the payload is not a valid skill: /u)
  })
})
