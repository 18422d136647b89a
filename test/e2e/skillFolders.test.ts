/** A folder in the shape of the best known public skills: fonts and schemas of megabytes, and no word about tools. */
import { createHash } from "node:crypto"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SkillName } from "#schema/Skill.ts"
import { agreedSkill } from "../support/addSkill.ts"
import { choirctl, document } from "../support/choirctl.ts"
import { temporaryFolder } from "../support/engines.ts"
import { AGENT } from "../support/installation.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"

/** Bytes of a font that no compression makes small. */
const font = (): Buffer =>
  Buffer.concat(Array.from({ length: 100_000 }, (_, index) => createHash("sha256").update(`${index}`).digest()))

describe("a public folder of megabytes", { timeout: 300_000 }, () => {
  it.live("is added from this host, built into the image, handed out with the same bytes, and may only read", () =>
    Effect.gen(function* () {
      const choir = yield* makeTestInstallation({ endpoint: "http://127.0.0.1:1/v1" })
      yield* choir.start
      const run = (...args: ReadonlyArray<string>) => choirctl(choir.home, args)
      const folder = join(yield* temporaryFolder, "posters")
      mkdirSync(join(folder, "assets"), { recursive: true })
      const text =
        "---\nname: posters\ndescription: Makes posters. Use when somebody asks for one.\n---\n\nRead the font.\n"
      writeFileSync(join(folder, "SKILL.md"), text)
      writeFileSync(join(folder, "assets/font.ttf"), font())
      const added = yield* run(...(yield* agreedSkill(choir.home, [folder, "--agent", AGENT])))
      assert.strictEqual(added.code, 0, added.err)
      yield* choir.build
      const shown = document(yield* run("skill", "show", AGENT, "posters", "--json"))
      assert.include(JSON.stringify(shown), '"allowed_tools":["choir.fs.read","choir.fs.find","choir.fs.search"]')
      const files = yield* choir.api.skills.files({ params: { ...choir.params, name: SkillName.make("posters") } })
      const found = files.find(({ path }) => path === "assets/font.ttf")
      assert.isTrue(Buffer.from(found?.base64 ?? "", "base64").equals(font()))
    })
  )
})
