/** Everything that stands in front of each prompt of a lane: its tools and its system text, of agents that are bound to more or less. */
import { cpSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { AgentId, EDGE, LaneId } from "#schema/Ids.ts"
import type { SkillSpec } from "#schema/Skill.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { coreSystem, edgeSystem } from "#src/agent/model/prompt/Prompt.ts"
import { offeredOf } from "#src/agent/model/offeredTools.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"
import { initAgent } from "#src/choirctl/home/initAgent.ts"
import { initHome } from "#src/choirctl/home/initHome.ts"
import { presetOf } from "#src/choirctl/home/providers.ts"
import { EVERYTHING_BOUND, layerBranches, layerEverythingBound } from "./everythingBound.ts"
import { bookOf } from "./skills.ts"
import { layerRegistry } from "./toolRegistry.ts"
import { temporaryWorkspace } from "./workspace.ts"

const CORE = LaneId.make("core:a")
const IDENTITY = { soul: "", soulCore: "", user: "" }
const ENVIRONMENT =
  "workspace: /workspace, a git repository on main\nsystem: Linux, bash\nmodel: m\ntime zone: Europe/Berlin\ndate: 2026-01-01"

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
    telegram: undefined,
    timezone: undefined
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

/** Agents by what they have: nothing, the parts that `choirctl init` makes, or beside these everything that brings tools. */
export const AGENT_KINDS = ["bare", "initialized", "bound to everything"] as const

/** The lanes of such an agent, each with the parts of its prompts that never change. */
export const fixedPrompts = Effect.fnUntraced(function* (kind: (typeof AGENT_KINDS)[number]) {
  const { outside, root } = yield* temporaryWorkspace
  for (const scope of ["global", "agent"]) mkdirSync(join(outside, "tools", scope), { recursive: true })
  const made = kind === "bare" ? undefined : yield* initialized
  const book = made === undefined ? bookOf(...BUILT_IN_SKILLS) : yield* imageOf(made.sources, outside)
  const web = made?.agent?.web
  const config = kind === "bound to everything" ? EVERYTHING_BOUND : web === undefined ? {} : { web }
  const parts = kind === "bound to everything" ? layerEverythingBound : kind === "bare" ? Layer.empty : layerBranches
  const own = Layer.mergeAll(Layer.mock(ControlPlane, {}), Layer.succeed(SkillRegistry, book), parts)
  const registry = yield* Effect.provide(ToolRegistry, layerRegistry({ choir: outside, root, ...config }, own))
  const [edge, core] = [registry.offered(EDGE), registry.offered(CORE)]
  return [
    {
      name: "edge" as const,
      tools: edge,
      system: edgeSystem(IDENTITY, book, ENVIRONMENT, offeredOf(edge)).content ?? ""
    },
    {
      name: "core" as const,
      tools: core,
      system: coreSystem(IDENTITY, book, ENVIRONMENT, offeredOf(core)).content ?? ""
    }
  ]
}, Effect.provide(NodeServices.layer))
