/** The skills and tools of an agent's newest image, as operators see them, with real repositories and a real build. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { imageSkills, imageTools } from "#src/choird/images/ImageFolder.ts"
import { makeImageHome } from "../../support/images.ts"

describe("what an image offers", () => {
  it.live("is its skills, and its tools by their origin", () =>
    Effect.gen(function* () {
      const { build } = yield* makeImageHome
      const { path } = yield* build()
      assert.deepStrictEqual(
        (yield* imageSkills(path)).map(({ name, states }) => [name, Object.keys(states)]),
        [["think", ["look", "write", "done"]]]
      )
      assert.deepStrictEqual(yield* imageTools(path), [
        {
          name: "echo",
          source: "global",
          effect: "external",
          exposure: "both",
          description: "says it again",
          version: "1.0"
        }
      ])
      writeFileSync(join(path, "choir/skills/think.json"), "{}")
      assert.match((yield* Effect.flip(imageSkills(path))).message, /not as it was built: .*\["name"\]/su)
      rmSync(join(path, "choir/skills"), { recursive: true })
      assert.deepStrictEqual(yield* imageSkills(path), [])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
