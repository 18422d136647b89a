/** Pages as real sites write them, each with the Markdown that a person would keep. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { pageMarkdown } from "#src/choird/workers/pageMarkdown.ts"
import { matchesGolden } from "../../support/corpusText.ts"

const FOLDER = join(import.meta.dirname, "../../corpus/web")
const names = readdirSync(FOLDER)
  .filter((name) => name.endsWith(".html"))
  .map((name) => name.slice(0, -5))

describe("a page of the corpus", () => {
  it("is one of at least 14", () => assert.isAtLeast(names.length, 14))

  for (const name of names)
    it(`is read as a person would keep it: ${name}`, () => {
      const html = readFileSync(join(FOLDER, `${name}.html`), "utf8")
      const { text, title } = pageMarkdown(html, `https://site.example/${name}`)
      matchesGolden(join(FOLDER, `${name}.md`), `title: ${title}\n\n${text}`)
    })
})
