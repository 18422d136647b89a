import { assert, describe, it } from "@effect/vitest"
import { AgentId } from "#schema/Ids.ts"
import { callsRow, networkRow } from "#src/choird/api/operator/systemStatus.ts"
import { agentView } from "../../../support/agentView.ts"

describe("callsRow", () => {
  it("says what holds for all agents that said it, and nothing before one has", () => {
    const [one, two] = ["one", "two"].map((name) => agentView(AgentId.make(name)))
    if (one === undefined || two === undefined) return assert.fail("no views")
    assert.deepStrictEqual(callsRow([one]), {})
    assert.isTrue(callsRow([one, { ...two, calls_apart: "full" }]).calls?.enforced)
    const { calls } = callsRow([
      { ...one, calls_apart: "full" },
      { ...two, calls_apart: "none" }
    ])
    assert.isFalse(calls?.enforced)
    assert.match(calls?.detail ?? "", /^there is no Landlock here, so a tool gets secrets only while no other command/u)
    const { calls: older } = callsRow([
      { ...one, calls_apart: "full" },
      { ...two, calls_apart: "memory" }
    ])
    assert.deepInclude(older, { enforced: false, partly: true })
    assert.match(
      older?.detail ?? "",
      /this kernel does not keep signals and abstract sockets apart; Linux 6\.12 does$/u
    )
  })
})

describe("networkRow", () => {
  it("says whether commands are cut off from the network, and when a person is asked", () => {
    const rows = (["never", "tainted", "always"] as const).map((confirm) => [
      networkRow(confirm, true),
      networkRow(confirm, false)
    ])
    assert.deepStrictEqual(
      rows.map((row) => row.map(({ enforced }) => enforced)),
      [
        [false, false],
        [true, false],
        [true, false]
      ]
    )
    const [never, tainted, always] = rows.map((row) => row.map(({ detail }) => detail))
    for (const detail of never ?? []) assert.match(detail, /^open to commands of every lane/u)
    assert.match(
      tainted?.[0] ?? "",
      /none unless they ask for it; then .* once their lane has read text from outside$/u
    )
    assert.match(always?.[0] ?? "", /none unless they ask for it; then a person is asked$/u)
    for (const detail of [tainted?.[1], always?.[1]])
      assert.match(detail ?? "", /^cannot be cut off here: each command counts as acting outside/u)
  })
})
