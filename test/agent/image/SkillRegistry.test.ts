/** The skills of an image, as an agent takes them over at its start. */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { EDGE, LaneId } from "#schema/Ids.ts"
import { PROPOSE } from "#schema/Tool.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { layerSkills, loadSkills, SkillBroken } from "#src/agent/image/SkillRegistry.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { TOOLS_OF_ALL } from "#src/shared/image/builtInTools.ts"
import { IMAGE_SKILLS_MAX } from "#src/shared/limits.ts"
import { skillDraft, skillText } from "../../support/skills.ts"
import { temporaryWorkspace } from "../../support/workspace.ts"
import { layerRegistry } from "../../support/toolRegistry.ts"
import { MANIFEST_BYTES_MAX } from "#src/shared/image/toolManifest.ts"

const CORE = LaneId.make("core:a")
type Files = Readonly<Record<string, string>>

/** The folder of an image with these skills; a text that begins with an arrow is a link. */
const imageOf = Effect.fnUntraced(function* (files: Files) {
  const { outside, root } = yield* temporaryWorkspace
  mkdirSync(join(outside, "skills"))
  for (const [name, text] of Object.entries(files))
    if (text.startsWith("-> ")) symlinkSync(text.slice(3), join(outside, "skills", name))
    else writeFileSync(join(outside, "skills", name), text)
  return { choir: outside, root }
})

const load = (files: Files) =>
  Effect.flatMap(imageOf(files), ({ choir }) => loadSkills(choir)).pipe(Effect.provide(NodeServices.layer))

const registryOf = Effect.fnUntraced(function* (files: Files) {
  const image = yield* imageOf(files)
  const own = Layer.merge(layerSkills(image.choir), Layer.mock(ControlPlane, {}))
  return yield* Effect.provide(ToolRegistry, layerRegistry(image, own))
})

const broken = (files: Files) =>
  Effect.map(Effect.flip(registryOf(files)), (error) => {
    assert.instanceOf(error, SkillBroken)
    return error.message
  })

describe("loadSkills", () => {
  it.live("takes the skills of the image beside the built-in ones, and no other file", () =>
    Effect.gen(function* () {
      const book = yield* load({ "tidy.json": skillText("tidy"), "README.md": "{", "guide.txt": "" })
      assert.sameMembers([...book.keys()], ["tool-builder", "skill-builder", "tidy"])
      const none = yield* loadSkills("/nowhere").pipe(Effect.provide(NodeServices.layer))
      assert.sameMembers(
        [...none.keys()],
        BUILT_IN_SKILLS.map(({ name }) => name)
      )
    })
  )

  const large = JSON.stringify(skillDraft({ name: "x", description: "d" })).padEnd(MANIFEST_BYTES_MAX + 1)
  const many = Object.fromEntries(Array.from({ length: IMAGE_SKILLS_MAX + 1 }, (_, index) => [`s${index}.json`, "{}"]))
  const BROKEN: ReadonlyArray<readonly [string, Files, RegExp]> = [
    ["is no JSON", { "x.json": "{" }, /x\.json cannot be used: .*JSON/u],
    ["has a key that nobody knows", { "x.json": JSON.stringify({ ...skillDraft({ name: "x" }), sudo: 1 }) }, /sudo/u],
    ["has another name than its file", { "x.json": skillText("y") }, /name the file y\.json/u],
    ["has the name of a built-in one", { "tool-builder.json": skillText("tool-builder") }, /choose another/u],
    ["is too large", { "x.json": large }, /larger than/u],
    ["is no file", { "x.json": "-> /dev" }, /not a regular file/u],
    ["is a link to a file", { "x.json": "-> /etc/hostname" }, /not a regular file/u],
    ["is one too many", many, /more than 64 skills/u],
    ["allows a tool that is not there", { "tidy.json": JSON.stringify(skillDraft()) }, /no tool mem\.read.*ws\.write/u]
  ]
  for (const [what, files, message] of BROKEN)
    it.live(`keeps the agent from starting with a skill that ${what}`, () =>
      Effect.map(broken(files), (text) => assert.match(text, message))
    )
})

describe("the tools of an agent with skills", () => {
  it.live("are those that a skill is checked against before there is an agent", () =>
    Effect.gen(function* () {
      const registry = yield* registryOf({})
      const names = new Set([...registry.names(EDGE), ...registry.names(CORE)].map((name) => registryName(name)))
      // Models call all kinds of proposals by one name.
      const offered = [...TOOLS_OF_ALL].map((name) => (name.startsWith(`${PROPOSE}.`) ? PROPOSE : name))
      assert.sameMembers([...names], [...new Set(offered)])
    })
  )

  it.live("are offered with those that begin and move a skill, the same in each of its steps", () =>
    Effect.gen(function* () {
      const registry = yield* registryOf({ "tidy.json": skillText("tidy") })
      const offered = (allowed?: ReadonlyArray<string>) => registry.offered(CORE, allowed).map((tool) => tool.name)
      assert.includeMembers(offered(), ["choir-skill-start", "choir-skill-transition"])
      assert.includeMembers(offered(["choir.exec"]), ["choir-exec", "choir-skill-transition"])
      assert.notInclude(offered(["choir.exec"]), "choir-skill-start")
      const start = registry.offered(EDGE).find((tool) => tool.name === "choir-skill-start")
      assert.include(JSON.stringify(start), "tool-builder: none")
    })
  )
})

const registryName = (wire: string) => wire.replaceAll("-", ".")
