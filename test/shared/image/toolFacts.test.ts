/** What the gate knows of each built-in tool, and which of them it lets stand in one state. */
import { assert, describe, it } from "@effect/vitest"
import { readToolManifest } from "#src/shared/image/toolManifest.ts"
import { Result } from "effect"
import { BUILT_IN_CAPABILITIES, BUILT_IN_TOOLS } from "#src/shared/image/builtInTools.ts"
import { gateReport } from "#src/shared/image/skillGate.ts"
import { BUILT_IN_FACTS, manifestFacts } from "#src/shared/image/toolFacts.ts"
import { contractSpec, summarize } from "../../support/contracts.ts"

const gradeOf = (tools: ReadonlyArray<string>) => {
  const capabilities = [...new Set(tools.flatMap((tool) => BUILT_IN_CAPABILITIES.get(tool) ?? []))]
  const anchor = { input: { text: "It rained." }, output: { summary: "Rain." } }
  return gateReport(
    contractSpec({
      ...summarize,
      contract: { ...summarize.contract, capabilities, golden_anchors: [anchor] },
      states: { ...summarize.states, do: { ...summarize.states.do, allowed_tools: tools } }
    })
  ).grade
}

describe("the facts of a built-in tool", () => {
  it("are a row for every one of them", () => {
    assert.sameMembers([...BUILT_IN_FACTS.keys()], [...BUILT_IN_TOOLS], "give each a row in toolFacts.ts")
  })

  it("never make a tool a leak by itself", () => {
    for (const tool of BUILT_IN_TOOLS.filter((name) => !name.startsWith("choir.skill.")))
      assert.strictEqual(gradeOf([tool]), "verified", tool)
  })

  it.each([
    ["choir.web.search", "choir.web.fetch"],
    ["choir.email.check", "choir.email.receive", "choir.fs.read"],
    ["choir.memory.query", "choir.fs.read"],
    ["choir.email.send", "choir.fs.read"]
  ])("let %s stand with %s", (...tools) => {
    assert.strictEqual(gradeOf(tools), "verified")
  })

  it.each([
    ["choir.notion.query", "choir.fs.read", "choir.memory.query"],
    ["choir.notion.query", "choir.fs.read"],
    ["choir.notion.query", "choir.web.fetch"],
    ["choir.memory.query", "choir.web.search"],
    ["choir.memory.query", "choir.email.send"],
    ["choir.email.check", "choir.web.fetch"],
    ["choir.email.receive", "choir.email.send"],
    ["choir.email.check", "choir.exec"],
    ["choir.fs.read", "choir.web.search"]
  ])("refuse %s with %s", (...tools) => {
    assert.strictEqual(gradeOf(tools), "rejected")
  })

  it("do not count the key of a tool of a repository as the user's data", () => {
    const manifest = (runtime: object) =>
      manifestFacts(
        Result.getOrThrowWith(
          readToolManifest(
            "agent",
            JSON.stringify({
              llm: { name: "weather", description: "d", input_schema: { type: "object" } },
              runtime: { exec_path: "weather", untrusted: true, secret_resources: ["key"], ...runtime }
            })
          ),
          (problems) => new Error(problems.join("; "))
        ).manifest
      )
    assert.deepInclude(manifest({ effect: "none", network: true, capabilities: ["net"] }), { sees: false, acts: true })
    assert.deepInclude(manifest({ effect: "none" }), { sees: true, untrusted: true })
  })
})
