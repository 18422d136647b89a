/** What models are shown of the built-in tools: schemas that providers take, and texts that speak of tools by the names models see. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { EDGE, LaneId } from "#schema/Ids.ts"
import { SkillName } from "#schema/Skill.ts"
import { offeredName } from "#schema/Tool.ts"
import type { Tool } from "#src/shared/model/Conversation.ts"
import { deltaTool } from "#src/agent/memory/compaction.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import {
  COMPACTION_INSTRUCTIONS,
  coreInstructions,
  EDGE_INSTRUCTIONS,
  SUMMARY_INSTRUCTIONS
} from "#src/agent/model/prompt/instructions.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { summaryTool } from "#src/agent/session/shutdownNotice.ts"
import { verdictTool } from "#src/agent/calls/SkillJudge.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { schemaRefusal } from "#demo/dialects/schemaRules.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { BUILT_IN_TOOLS } from "#src/shared/image/builtInTools.ts"
import { SKILLS_DESCRIBED_MAX } from "#src/agent/model/prompt/skillPrompt.ts"
import { EVERYTHING_BOUND, layerEverythingBound } from "../support/everythingBound.ts"
import { AGENT_KINDS, fixedPrompts } from "../support/fixedPrompts.ts"
import { bookOf, carefulChange } from "../support/skills.ts"
import { layerRegistry } from "../support/toolRegistry.ts"
import { temporaryWorkspace } from "../support/workspace.ts"
import { EVERY_TOOL } from "../support/offered.ts"

/** So many that their list is a tool. */
const MANY_SKILLS = bookOf(
  ...BUILT_IN_SKILLS,
  ...Array.from({ length: SKILLS_DESCRIBED_MAX }, (_, at) => ({
    ...carefulChange,
    name: SkillName.make(`skill_${at}`)
  }))
)

/** Every tool that some lane of some agent is offered, and those that exist in one call. */
const offered = Effect.gen(function* () {
  const { outside, root } = yield* temporaryWorkspace
  for (const scope of ["global", "agent"]) mkdirSync(join(outside, "tools", scope), { recursive: true })
  const skills = Layer.succeed(SkillRegistry, MANY_SKILLS)
  const own = Layer.mergeAll(Layer.mock(ControlPlane, {}), skills, layerEverythingBound)
  const registry = yield* Effect.provide(
    ToolRegistry,
    layerRegistry({ choir: outside, root, ...EVERYTHING_BOUND }, own)
  )
  const lanes = [...registry.offered(EDGE), ...registry.offered(LaneId.make("core:a"))]
  const usual = (yield* Effect.forEach(AGENT_KINDS, fixedPrompts)).flat().flatMap(({ tools }) => tools)
  const tools = [...usual, ...lanes, deltaTool, summaryTool, verdictTool]
  return [...new Map(tools.map((tool) => [tool.name, tool])).values()]
})

type Node = Readonly<Record<string, unknown>>

/** The places of the parameters without a description, however deep they stand. */
const bare = (node: unknown, place: string): ReadonlyArray<string> => {
  if (typeof node !== "object" || node === null) return []
  if (Array.isArray(node)) return node.flatMap((part, index) => bare(part, `${place}[${index}]`))
  const { properties = {}, ...rest } = node as Node
  return [
    ...Object.entries(properties as Node).flatMap(([name, part]) => [
      ...(typeof (part as Node)["description"] === "string" ? [] : [`${place}.${name}`]),
      ...bare(part, `${place}.${name}`)
    ]),
    ...Object.entries(rest).flatMap(([key, part]) => bare(part, `${place}.${key}`))
  ]
}

const dotted = (text: string): ReadonlyArray<string> => text.match(/choir\.[a-z]+(?:\.[a-z_]+)*/gu) ?? []

describe("the tools as models see them", () => {
  it.effect("have parameters that providers take, each with a description", () =>
    Effect.gen(function* () {
      const tools = yield* offered
      assert.includeMembers(
        tools.map(({ name }) => name),
        BUILT_IN_TOOLS.map(offeredName)
      )
      for (const { description, name } of tools) assert.isAbove(description.length, 20, name)
      const schemaOf = ({ parameters }: Tool) => parameters
      assert.deepStrictEqual(
        tools.flatMap((tool) => schemaRefusal(schemaOf(tool)) ?? []),
        []
      )
      assert.deepStrictEqual(
        tools.flatMap((tool) => bare(schemaOf(tool), tool.name)),
        []
      )
    })
  )

  it.effect("are named in every text as models call them", () =>
    Effect.gen(function* () {
      const texts = [EDGE_INSTRUCTIONS, coreInstructions(EVERY_TOOL), COMPACTION_INSTRUCTIONS, SUMMARY_INSTRUCTIONS]
      const tools = (yield* offered).map((tool) => JSON.stringify(tool))
      assert.deepStrictEqual([...texts, ...tools].flatMap(dotted), [])
    })
  )
})
