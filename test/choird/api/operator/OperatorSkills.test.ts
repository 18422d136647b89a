import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ImageVersion } from "#schema/Image.ts"
import { SkillName } from "#schema/Skill.ts"
import { SKILL_BUNDLE_FILES_MAX } from "#schema/SkillOffer.ts"
import { Images } from "#src/choird/images/Images.ts"
import { AGENT } from "../../../support/control.ts"
import { temporaryFolder } from "../../../support/engines.ts"
import { openOperator } from "../../../support/operatorSocket.ts"
import { skillText } from "../../../support/skills.ts"

const params = { id: AGENT }

describe("an agent's skills and tools", () => {
  it.effect("are the built-in ones and those of its newest image", () =>
    Effect.gen(function* () {
      const path = yield* temporaryFolder
      mkdirSync(join(path, "choir/skills"), { recursive: true })
      writeFileSync(join(path, "choir/skills/tidy.json"), skillText("tidy"))
      const image = { image_version: ImageVersion.make("abc1234"), path }
      const { api } = yield* openOperator(Layer.mock(Images, { current: () => Effect.succeed(image) }))
      const rows = yield* api.skills.list({ params })
      assert.deepStrictEqual(
        rows.map(({ max_steps, name, source, states }) => [name, source, states, max_steps]),
        [
          ["tool-builder", "built-in", 5, 15],
          ["skill-builder", "built-in", 5, 15],
          ["tidy", "image", 3, 12]
        ]
      )
      const shown = yield* api.skills.show({ params: { ...params, name: SkillName.make("tidy") } })
      assert.deepStrictEqual([shown.source, shown.spec.initial_state], ["image", "look"])
      const unknown = yield* Effect.flip(api.skills.show({ params: { ...params, name: SkillName.make("no") } }))
      assert.nestedInclude(unknown, { "error.type": "UNKNOWN_SKILL", "error.hint": `choirctl skill list ${AGENT}` })
      const tools = yield* api.skills.tools({ params })
      assert.isTrue(tools.some(({ name, source }) => name === "choir.exec" && source === "built-in"))
    })
  )

  it.effect("have the files of their folder, none where a skill is one file, and never a part of too many", () =>
    Effect.gen(function* () {
      const path = yield* temporaryFolder
      const folder = join(path, "choir/skills/tidy")
      mkdirSync(join(folder, "references"), { recursive: true })
      writeFileSync(join(folder, "SKILL.md"), "Tidy up.\n")
      writeFileSync(join(folder, "references/guide.md"), "First the desk.\n")
      const image = { image_version: ImageVersion.make("abc1234"), path }
      const { api } = yield* openOperator(Layer.mock(Images, { current: () => Effect.succeed(image) }))
      const of = (name: string) => api.skills.files({ params: { ...params, name: SkillName.make(name) } })
      assert.deepStrictEqual(
        (yield* of("tidy")).map(({ base64, path }) => [path, Buffer.from(base64, "base64").toString()]),
        [
          ["SKILL.md", "Tidy up.\n"],
          ["references/guide.md", "First the desk.\n"]
        ]
      )
      assert.deepStrictEqual(yield* of("other"), [])
      for (let count = 0; count <= SKILL_BUNDLE_FILES_MAX; count += 1) writeFileSync(join(folder, `${count}.md`), "x")
      assert.nestedInclude(yield* Effect.flip(of("tidy")), { "error.type": "IMAGE_DRIFT" })
    })
  )

  it.effect("are refused with the command that helps where there is no image, or a broken one", () =>
    Effect.gen(function* () {
      const { api } = yield* openOperator()
      const none = yield* Effect.flip(api.skills.list({ params }))
      assert.nestedInclude(none, { "error.type": "NO_IMAGE", "error.hint": `choirctl agent build ${AGENT}` })
      const path = yield* temporaryFolder
      mkdirSync(join(path, "choir/skills"), { recursive: true })
      writeFileSync(join(path, "choir/skills/tidy.json"), "{}")
      const image = { image_version: ImageVersion.make("abc1234"), path }
      const broken = yield* openOperator(Layer.mock(Images, { current: () => Effect.succeed(image) }))
      const drift = yield* Effect.flip(broken.api.skills.list({ params }))
      assert.nestedInclude(drift, { "error.type": "IMAGE_DRIFT" })
    })
  )
})
