import { cpSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { EDGE, LaneId } from "#schema/Ids.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { coreSystem, edgeSystem } from "#src/agent/model/prompt/Prompt.ts"
import { offeredOf } from "#src/agent/model/offered.ts"
import { COMPACTION_INSTRUCTIONS } from "#src/agent/model/prompt/instructions.ts"
import { Tokens } from "#src/agent/model/Tokens.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { toWireName, ToolName } from "#schema/Tool.ts"
import { isControl } from "#src/agent/tools/Tool.ts"
import { BUILT_IN_TOOL_ROWS } from "#src/shared/image/builtInToolRows.ts"
import { BUILT_IN_TOOLS, TOOLS_OF_ALL } from "#src/shared/image/builtInTools.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"
import { bookOf } from "../../support/skills.ts"
import { layerRegistry } from "../../support/toolRegistry.ts"
import { temporaryWorkspace } from "../../support/workspace.ts"

const CORE = LaneId.make("core:a")
const IDENTITY = { soul: "", soulCore: "", user: "" }
const ENVIRONMENT =
  "workspace: /workspace, a git repository on main\nsystem: Linux, bash\nmodel: m\ntime zone: Europe/Berlin\ndate: 2026-01-01"

/** Tokens of o200k_base that a lane's tools and instructions take in every prompt. */
const FIXED_TOKENS_MAX = 3000
/** Of an agent with the browser, and the tools and skills of the starter; what its identity files say comes on top. */
const STARTER_TOKENS_MAX = { edge: 3720, core: 3400 } as const

const STARTER = join(import.meta.dirname, "../../../docker/starter")
const STARTER_SKILLS = readdirSync(join(STARTER, "skills")).map((file) =>
  Result.getOrThrow(readSkill(file.replace(/\.json$/u, ""), readFileSync(join(STARTER, "skills", file), "utf8")))
)

const skills = bookOf(...BUILT_IN_SKILLS)

/** Everything that stands in front of each prompt of a lane: of an agent without an image, and of one as `choirctl init` makes it. */
const lanesOf = Effect.fnUntraced(function* (isStarter: boolean) {
  const { outside, root } = yield* temporaryWorkspace
  mkdirSync(`${outside}/tools/agent`, { recursive: true })
  if (isStarter) cpSync(join(STARTER, "tools"), `${outside}/tools/global`, { recursive: true })
  else mkdirSync(`${outside}/tools/global`)
  const book = isStarter ? bookOf(...BUILT_IN_SKILLS, ...STARTER_SKILLS) : skills
  const own = Layer.merge(Layer.mock(ControlPlane, {}), Layer.succeed(SkillRegistry, book))
  const registry = yield* Effect.provide(
    ToolRegistry,
    layerRegistry({ choir: outside, root, ...(isStarter ? { web: "browse" } : {}) }, own)
  )
  return [
    {
      name: "edge" as const,
      tools: registry.offered(EDGE),
      system: edgeSystem(IDENTITY, book, ENVIRONMENT, offeredOf(registry.offered(EDGE))).content ?? ""
    },
    {
      name: "core" as const,
      tools: registry.offered(CORE),
      system: coreSystem(IDENTITY, book, ENVIRONMENT, offeredOf(registry.offered(CORE))).content ?? ""
    }
  ]
})

const lanes = lanesOf(false)

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
  const tokensOf = Effect.fnUntraced(function* (isStarter: boolean) {
    const { count } = yield* Tokens
    return yield* Effect.forEach(yield* lanesOf(isStarter), ({ name, system, tools }) =>
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
  }, Effect.provide(Tokens.layer))

  it.live(`take at most ${FIXED_TOKENS_MAX} tokens of a prompt, with the instructions`, () =>
    Effect.gen(function* () {
      for (const { tokens } of yield* tokensOf(false)) assert.isAtMost(tokens, FIXED_TOKENS_MAX)
    })
  )

  it.live("take more in an agent as choirctl init makes it, by its browser and its skills", () =>
    Effect.gen(function* () {
      for (const { name, tokens } of yield* tokensOf(true)) assert.isAtMost(tokens, STARTER_TOKENS_MAX[name], name)
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
