import { cpSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { AgentId, EDGE, LaneId } from "#schema/Ids.ts"
import type { SkillSpec } from "#schema/Skill.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { Worktrees } from "#src/agent/git/Worktrees.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { coreSystem, edgeSystem } from "#src/agent/model/prompt/Prompt.ts"
import { offeredOf } from "#src/agent/model/offeredTools.ts"
import { COMPACTION_INSTRUCTIONS } from "#src/agent/model/prompt/instructions.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { toWireName, ToolName } from "#schema/Tool.ts"
import { isControl } from "#src/agent/tools/Tool.ts"
import { BUILT_IN_TOOL_ROWS } from "#src/choird/api/operator/builtInToolRows.ts"
import { BUILT_IN_TOOLS, TOOLS_OF_ALL } from "#src/shared/image/builtInTools.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"
import { bookOf } from "../../support/skills.ts"
import { initAgent } from "#src/choirctl/home/initAgent.ts"
import { initHome } from "#src/choirctl/home/initHome.ts"
import { presetOf } from "#src/choirctl/home/providers.ts"
import { layerRegistry } from "../../support/toolRegistry.ts"
import { temporaryWorkspace } from "../../support/workspace.ts"

const CORE = LaneId.make("core:a")
const IDENTITY = { soul: "", soulCore: "", user: "" }
const ENVIRONMENT =
  "workspace: /workspace, a git repository on main\nsystem: Linux, bash\nmodel: m\ntime zone: Europe/Berlin\ndate: 2026-01-01"

/** Tokens of o200k_base that a lane's tools and instructions take in every prompt. */
const FIXED_TOKENS_MAX = 3000

const skills = bookOf(...BUILT_IN_SKILLS)

const AGENT = AgentId.make("ada")

/** A home as `choirctl init` makes it, with an agent by `choirctl agent init`. */
const initialized = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const home = join(yield* fs.makeTempDirectoryScoped(), "home")
  const { api, endpoint = "", model: name } = presetOf("openai")
  yield* initHome(home, {
    model: { provider: "openai", endpoint, api, name, secret: undefined, key: undefined, price: undefined },
    runtime: "sandbox",
    allow_unmapped_root: false,
    telegram: undefined
  })
  yield* initAgent(home, AGENT, {})
  const config = yield* Schema.decodeEffect(Schema.fromJsonString(Config))(
    readFileSync(join(home, "config.json"), "utf8")
  )
  return { agent: config.agents[AGENT], sources: join(home, "sources") }
})

/** An agent's tools and skills of its two repositories, as a build bakes them. */
const imageOf = Effect.fnUntraced(function* (sources: string, choir: string) {
  const specs: Array<SkillSpec> = []
  for (const [scope, repo] of [
    ["global", join(sources, "global")],
    ["agent", join(sources, "agents", AGENT)]
  ] as const) {
    cpSync(join(repo, "tools"), join(choir, "tools", scope), {
      recursive: true,
      filter: (path) => !path.endsWith(".gitkeep")
    })
    for (const file of readdirSync(join(repo, "skills")).filter((name) => name.endsWith(".json")))
      specs.push(
        yield* Effect.fromResult(
          readSkill(file.slice(0, -".json".length), readFileSync(join(repo, "skills", file), "utf8"))
        )
      )
  }
  return bookOf(...BUILT_IN_SKILLS, ...specs)
})

/** Everything that stands in front of each prompt of a lane: of an agent without an image, and of one as `choirctl init` makes it. */
const lanesOf = Effect.fnUntraced(function* (kind: "bare" | "initialized") {
  const { outside, root } = yield* temporaryWorkspace
  for (const scope of ["global", "agent"]) mkdirSync(join(outside, "tools", scope), { recursive: true })
  const made = kind === "bare" ? undefined : yield* initialized
  const book = made === undefined ? skills : yield* imageOf(made.sources, outside)
  // The agent works in a repository, so that its jobs are offered a branch.
  const worktrees = Layer.effect(
    Worktrees,
    Effect.map(Worktrees, (none) => ({ ...none, offered: made !== undefined }))
  )
  const own = Layer.mergeAll(Layer.mock(ControlPlane, {}), Layer.succeed(SkillRegistry, book), worktrees)
  const web = made?.agent?.web
  const registry = yield* Effect.provide(
    ToolRegistry,
    layerRegistry({ choir: outside, root, ...(web === undefined ? {} : { web }) }, own)
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
}, Effect.provide(NodeServices.layer))

const lanes = Effect.map(Effect.all([lanesOf("bare"), lanesOf("initialized")]), (all) => all.flat())

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
  const tokensOf = Effect.fnUntraced(function* (kind: "bare" | "initialized") {
    const { count } = yield* TokenCount
    return yield* Effect.forEach(yield* lanesOf(kind), ({ name, system, tools }) =>
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

  it.live.each(["bare", "initialized"] as const)(
    `take at most ${FIXED_TOKENS_MAX} tokens of a prompt, with the instructions, in an agent that is %s`,
    (kind) =>
      Effect.gen(function* () {
        for (const { name, tokens } of yield* tokensOf(kind)) assert.isAtMost(tokens, FIXED_TOKENS_MAX, name)
      })
  )

  it.effect("take objects, of which every part is described", () =>
    Effect.gen(function* () {
      for (const { tools } of yield* lanes) {
        assert.isAbove(tools.length, 10)
        for (const { description, name, parameters } of tools) {
          const schema = parameters as Json
          assert.strictEqual(schema["type"], "object", name)
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
