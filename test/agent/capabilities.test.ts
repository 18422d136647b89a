/** What each built-in and starter tool can do, and which grants let a skill with it begin. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { CAPABILITIES, type Capability, GRANTS_DEFAULT } from "#schema/Capability.ts"
import { capabilitiesOf } from "#schema/Tool.ts"
import type { SkillSpec } from "#schema/Skill.ts"
import { capabilityRefusal } from "#src/agent/arbiter/decideSkills.ts"
import { ungranted } from "#src/agent/arbiter/startSkill.ts"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { BUILT_IN_CAPABILITIES, BUILT_IN_TOOLS } from "#src/shared/image/builtInTools.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"
import { readToolManifest } from "#src/shared/image/toolManifest.ts"
import type { LaneMemory } from "#src/shared/session/State.ts"
import { contractSpec, summarize } from "../support/contracts.ts"
import { bookOf } from "../support/skills.ts"

const EXPECTED: Readonly<Record<string, ReadonlyArray<Capability>>> = {
  "choir.exec": ["fs:read", "fs:write", "net", "exec"],
  "choir.web.fetch": ["net"],
  "choir.web.browse": ["net"],
  "choir.fs.read": ["fs:read"],
  "choir.fs.write": ["fs:write"],
  "choir.fs.edit": ["fs:read", "fs:write"],
  "choir.fs.search": ["fs:read"],
  "choir.fs.find": ["fs:read"],
  "choir.fs.send": ["fs:read"],
  "choir.core.spawn": ["agent:spawn"],
  "choir.core.inject": ["agent:spawn"],
  "choir.core.cancel": ["agent:spawn"],
  "choir.propose.tool": ["human"],
  "choir.propose.skill": ["human"],
  "choir.propose.config_change": ["human"],
  "choir.propose.repo_change": ["human"],
  "choir.email.send": ["fs:read", "net", "env:read"],
  "choir.email.receive": ["fs:write", "net", "env:read"],
  "choir.email.check": ["net", "env:read"],
  "choir.web.search": ["net", "env:read"],
  "choir.notion.query": ["net", "env:read"],
  "choir.tts.speak": ["net", "env:read"],
  "clock.now": ["fs:read"]
}

const manifestOf = (text: string) =>
  Result.getOrThrowWith(readToolManifest("global", text), (problems) => new Error(problems.join("; "))).manifest
const STARTER = join(packageFolder, "docker/starter/tools")
const starter = readdirSync(STARTER)
  .filter((name) => name.endsWith(".json"))
  .map((name) => manifestOf(readFileSync(join(STARTER, name), "utf8")))

/** Every tool that an agent of the starter has. */
const tools = new Map([
  ...BUILT_IN_CAPABILITIES,
  ...starter.map((manifest) => [manifest.llm.name as string, capabilitiesOf(manifest)] as const)
])

/** Every set of grants. */
const GRANTS = Array.from({ length: 2 ** CAPABILITIES.length }, (_, bits) =>
  CAPABILITIES.filter((_, index) => (bits >> index) % 2 === 1)
)

describe("capabilities", () => {
  it("of every built-in and starter tool are in the table, and all others are none", () => {
    assert.sameMembers([...tools.keys()], [...BUILT_IN_TOOLS, ...starter.map(({ llm }) => llm.name as string)])
    for (const [name, capabilities] of tools)
      assert.deepStrictEqual(capabilities, EXPECTED[name] ?? [], `${name}: name it in this table`)
  })

  it("let a skill with a tool begin under exactly the grants that cover it, for every tool and all grants", () => {
    assert.lengthOf(GRANTS, 128)
    for (const [name, capabilities] of tools) {
      const skill = contractSpec({ ...summarize, contract: { ...summarize.contract, capabilities: [...capabilities] } })
      for (const grants of GRANTS) {
        const covers = capabilities.every((capability) => grants.includes(capability))
        assert.strictEqual(ungranted(skill, grants) === undefined, covers, `${name} with ${grants.join(", ")}`)
      }
    }
  })

  it("let a skill make a call under exactly the grants that cover the tool, and none of a tool that it does not declare", () => {
    const memory = { skill: { name: "summarize" } } as LaneMemory
    for (const [name, capabilities] of tools) {
      const skill = contractSpec({ ...summarize, contract: { ...summarize.contract, capabilities: [...capabilities] } })
      for (const grants of GRANTS) {
        const covers = capabilities.every((capability) => grants.includes(capability))
        const of = (spec: SkillSpec) =>
          capabilityRefusal(memory, { grants, skills: bookOf(spec) }, name, capabilities) === undefined
        assert.strictEqual(of(skill), covers, `${name} with ${grants.join(", ")}`)
        if (capabilities.length > 0) assert.isFalse(of(contractSpec(summarize)), `${name}, which is not declared`)
      }
    }
  })

  it("keep a skill that declares less than a tool can do out of every image, for every tool", () => {
    for (const [name, capabilities] of tools) {
      if (name.startsWith("choir.skill.")) continue
      const using = (declared: ReadonlyArray<Capability>) => {
        const draft = { ...summarize, contract: { ...summarize.contract, capabilities: declared } }
        const states = { ...summarize.states, do: { ...summarize.states.do, allowed_tools: [name] } }
        return readSkill("summarize", JSON.stringify({ ...draft, states }), { tools })
      }
      assert.isTrue(Result.isSuccess(using(capabilities)), name)
      for (const left of capabilities)
        assert.isTrue(Result.isFailure(using(capabilities.filter((each) => each !== left))), `${name} without ${left}`)
    }
  })

  it("are granted by default for the workspace and questions to people, and for nothing else", () => {
    const granted = [...tools].filter(([, capabilities]) => capabilities.every((each) => GRANTS_DEFAULT.includes(each)))
    const names = granted.map(([name]) => name)
    assert.notIncludeMembers(names, ["choir.exec", "choir.core.spawn"])
    assert.includeMembers(names, ["choir.fs.edit", "choir.propose.skill", "clock.now"])
  })

  it("of a manifest follow from its effect, and never lack what its other keys show", () => {
    const of = (runtime: object) =>
      capabilitiesOf(
        manifestOf(
          JSON.stringify({
            llm: { name: "a", description: "d", input_schema: { type: "object" } },
            runtime: { exec_path: "a", ...runtime }
          })
        )
      )
    assert.deepStrictEqual(of({}), ["fs:read", "fs:write", "net"])
    assert.deepStrictEqual(of({ effect: "none" }), ["fs:read"])
    assert.deepStrictEqual(of({ side_effect: "write" }), ["fs:read", "fs:write"])
    assert.deepStrictEqual(of({ effect: "none", capabilities: [] }), [])
    assert.deepStrictEqual(of({ effect: "none", capabilities: [], network: true, secret_resources: ["key"] }), [
      "net",
      "env:read"
    ])
    assert.deepStrictEqual(of({ effect: "workspace", capabilities: ["exec"] }), ["fs:write", "exec"])
  })
})
