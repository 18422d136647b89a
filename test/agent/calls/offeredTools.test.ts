import { mkdirSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { EDGE, LaneId } from "#schema/Ids.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { coreSystem, edgeSystem } from "#src/agent/model/prompt/Prompt.ts"
import { COMPACTION_INSTRUCTIONS } from "#src/agent/model/prompt/instructions.ts"
import { Tokens } from "#src/agent/model/Tokens.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { toWireName, ToolName } from "#schema/Tool.ts"
import { isControl } from "#src/agent/tools/Tool.ts"
import { BUILT_IN_TOOL_ROWS } from "#src/shared/image/builtInToolRows.ts"
import { BUILT_IN_TOOLS, TOOLS_OF_ALL } from "#src/shared/image/builtInTools.ts"
import { bookOf } from "../../support/skills.ts"
import { layerRegistry } from "../../support/toolRegistry.ts"
import { temporaryWorkspace } from "../../support/workspace.ts"

const CORE = LaneId.make("core:a")
const IDENTITY = { soul: "", soulCore: "", user: "" }
const ENVIRONMENT =
  "workspace: /workspace, a git repository on main\nsystem: Linux, bash\nmodel: m\ntime zone: Europe/Berlin\ndate: 2026-01-01"

/** Tokens of o200k_base that a lane's tools and instructions take in every prompt. */
const FIXED_TOKENS_MAX = 3000

const skills = bookOf(...BUILT_IN_SKILLS)

/** Everything that stands in front of each prompt of a lane. */
const lanes = Effect.gen(function* () {
  const { outside, root } = yield* temporaryWorkspace
  for (const scope of ["global", "agent"]) mkdirSync(`${outside}/tools/${scope}`, { recursive: true })
  const own = Layer.merge(Layer.mock(ControlPlane, {}), Layer.succeed(SkillRegistry, skills))
  const registry = yield* Effect.provide(ToolRegistry, layerRegistry({ choir: outside, root }, own))
  return [
    { name: "edge", tools: registry.offered(EDGE), system: edgeSystem(IDENTITY, skills, ENVIRONMENT).content ?? "" },
    { name: "core", tools: registry.offered(CORE), system: coreSystem(IDENTITY, skills, ENVIRONMENT).content ?? "" }
  ]
})

type Json = Readonly<Record<string, unknown>>

/** Every property of a schema, by its path. */
const propertiesOf = (schema: Json, at: string): ReadonlyArray<readonly [path: string, property: Json]> =>
  Object.entries((schema["properties"] ?? {}) as Record<string, Json>).flatMap(([name, property]) => [
    [`${at}.${name}`, property] as const,
    ...propertiesOf(property, `${at}.${name}`),
    ...propertiesOf((property["items"] ?? {}) as Json, `${at}.${name}`)
  ])

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
        assert.deepInclude(BUILT_IN_TOOL_ROWS.get(name), { effect, lanes }, name)
      }
      assert.sameMembers([...BUILT_IN_TOOL_ROWS.keys()], [...BUILT_IN_TOOLS])
    })
  )
})

describe("the tools that a lane is offered", () => {
  it.live(`take at most ${FIXED_TOKENS_MAX} tokens of a prompt, with the instructions`, () =>
    Effect.gen(function* () {
      const { count } = yield* Effect.provide(Tokens, Tokens.layer)
      for (const { name, system, tools } of yield* lanes) {
        const each = yield* Effect.forEach(tools, (tool) =>
          Effect.map(count([JSON.stringify(tool)]), (tokens) => [tool.name, tokens] as const)
        )
        const all = each.reduce((sum, [, tokens]) => sum + tokens, 0)
        const instructions = yield* count([system])
        yield* Effect.logInfo(`tokens of ${name}`, { ...Object.fromEntries(each), all, instructions })
        assert.isAtMost(all + instructions, FIXED_TOKENS_MAX)
      }
    })
  )

  it.effect("take objects, of which every part is described", () =>
    Effect.gen(function* () {
      for (const { tools } of yield* lanes) {
        assert.isAbove(tools.length, 10)
        for (const { description, name, parameters } of tools) {
          const schema = parameters as Json
          assert.deepInclude(schema, { type: "object", additionalProperties: false }, name)
          assert.isObject(schema["properties"], name)
          assert.isAbove(description.length, 20, name)
          for (const [path, property] of propertiesOf(schema, name))
            assert.match(JSON.stringify(property["description"] ?? ""), /^".{3}/u, path)
        }
      }
    })
  )

  it.effect("and the instructions name tools as models see them, without a dot", () =>
    Effect.gen(function* () {
      const dotted = new RegExp(BUILT_IN_TOOLS.map((name) => name.replaceAll(".", "\\.")).join("|"), "u")
      const texts = (yield* lanes).flatMap(({ system, tools }) => [
        system,
        ...tools.map((tool) => JSON.stringify(tool))
      ])
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
