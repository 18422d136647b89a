import { mkdirSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { EDGE, LaneId } from "#schema/Ids.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { COMPACTION_INSTRUCTIONS } from "#src/agent/model/prompt/instructions.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { toWireName, ToolName } from "#schema/Tool.ts"
import { isControl } from "#src/agent/tools/Tool.ts"
import { BUILT_IN_ROWS, BUILT_IN_TOOLS, TOOLS_OF_ALL } from "#src/shared/image/builtInTools.ts"
import { AGENT_KINDS, fixedPrompts } from "../support/fixedPrompts.ts"
import { bookOf } from "../support/skills.ts"
import { layerRegistry } from "../support/toolRegistry.ts"
import { temporaryWorkspace } from "../support/workspace.ts"

const CORE = LaneId.make("core:a")

/**
 * Tokens of o200k_base that a lane's tools and instructions take in every prompt, by what the agent is bound to. Each service adds its tools, and the
 * most that they come to is held here as well (docs/decisions/tools.md, Services keep their own schemas).
 */
const FIXED_TOKENS_MAX = { bare: 3000, initialized: 3450, "bound to everything": 4450 } as const

const skills = bookOf(...BUILT_IN_SKILLS)

describe("what choird tells of the tools of every agent", () => {
  it.effect("is true of the agent's own", () =>
    Effect.gen(function* () {
      const { outside, root } = yield* temporaryWorkspace
      for (const scope of ["global", "agent"]) mkdirSync(`${outside}/tools/${scope}`, { recursive: true })
      const own = Layer.merge(Layer.mock(ControlPlane, {}), Layer.succeed(SkillRegistry, skills))
      const registry = yield* Effect.provide(ToolRegistry, layerRegistry({ choir: outside, root }, own))
      for (const name of TOOLS_OF_ALL) {
        const [edge, core] = [EDGE, CORE].map((lane) => registry.find(lane, toWireName(ToolName.make(name))))
        const tool = edge ?? core
        const lanes = edge === undefined ? "core" : core === undefined ? "edge" : "both"
        const effect = tool === undefined || isControl(tool) ? "none" : tool.effect
        assert.deepInclude(BUILT_IN_ROWS.get(name), { effect, lanes }, name)
      }
      assert.sameMembers([...BUILT_IN_ROWS.keys()], [...BUILT_IN_TOOLS])
    })
  )
})

describe("the tools that a lane is offered", () => {
  const tokensOf = Effect.fnUntraced(function* (kind: (typeof AGENT_KINDS)[number]) {
    const { count } = yield* TokenCount
    return yield* Effect.forEach(yield* fixedPrompts(kind), ({ name, system, tools }) =>
      Effect.gen(function* () {
        const each = yield* Effect.forEach(tools, (tool) =>
          Effect.map(count([JSON.stringify(tool)]), (tokens) => [tool.name, tokens] as const)
        )
        const all = each.reduce((sum, [, tokens]) => sum + tokens, 0)
        const instructions = yield* count([system])
        yield* Effect.logInfo(`tokens of ${name}`, { ...Object.fromEntries(each), all, instructions })
        return { name, tokens: all + instructions }
      })
    )
  }, Effect.provide(TokenCount.layer))

  it.live.each(AGENT_KINDS)("take few tokens of a prompt, with the instructions, in an agent that is %s", (kind) =>
    Effect.gen(function* () {
      for (const { name, tokens } of yield* tokensOf(kind)) assert.isAtMost(tokens, FIXED_TOKENS_MAX[kind], name)
    })
  )

  it.effect("and the instructions name tools as models see them, without a dot", () =>
    Effect.gen(function* () {
      const dotted = new RegExp(BUILT_IN_TOOLS.map((name) => name.replaceAll(".", "\\.")).join("|"), "u")
      const texts = (yield* Effect.forEach(AGENT_KINDS, fixedPrompts))
        .flat()
        .flatMap(({ system, tools }) => [system, ...tools.map((tool) => JSON.stringify(tool))])
      const objectives = BUILT_IN_SKILLS.flatMap(({ states }) =>
        Object.values(states).map((state) => JSON.stringify(state?.objective ?? ""))
      )
      for (const text of [...texts, ...objectives, COMPACTION_INSTRUCTIONS]) {
        assert.notMatch(text, dotted)
        assert.notMatch(text, /\bchoir\.[a-z]/u)
      }
    })
  )
})
