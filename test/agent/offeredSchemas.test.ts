/** What models are shown of the built-in tools: schemas that providers take, and texts that speak of tools by the names models see. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { EmailAccount } from "#schema/EmailAccount.ts"
import { EDGE, LaneId, SecretName } from "#schema/Ids.ts"
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
import { summaryTool } from "#src/agent/memory/summary.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { schemaRefusal } from "#demo/dialects/schemaRules.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { bookOf } from "../support/skills.ts"
import { layerRegistry } from "../support/toolRegistry.ts"
import { temporaryWorkspace } from "../support/workspace.ts"
import { EVERY_TOOL } from "../support/offered.ts"

const secret = SecretName.make("s")
/** Everything that brings tools of its own. */
const BOUND = {
  email: Schema.decodeSync(EmailAccount)({
    smtp_host: "mail",
    smtp_port: 465,
    imap_host: "mail",
    imap_port: 993,
    secret
  }),
  notion: { secret },
  search: { secret }
}

const offered = Effect.gen(function* () {
  const { outside, root } = yield* temporaryWorkspace
  for (const scope of ["global", "agent"]) mkdirSync(join(outside, "tools", scope), { recursive: true })
  const skills = Layer.succeed(SkillRegistry, bookOf(...BUILT_IN_SKILLS))
  const own = Layer.merge(Layer.mock(ControlPlane, {}), skills)
  const registry = yield* Effect.provide(ToolRegistry, layerRegistry({ choir: outside, root, ...BOUND }, own))
  const tools = [...registry.offered(EDGE), ...registry.offered(LaneId.make("core:a")), deltaTool, summaryTool]
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
      assert.isAbove(tools.length, 15)
      const names = tools.map((tool) => tool.name)
      assert.includeMembers(names, ["choir-skill-start", "choir-email-send", "choir-notion-query", "choir-web-search"])
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
