/** Pages of shops, documentation, forums, wikis, news, tables and forms, each with the Markdown that a person would keep. */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { pageBody } from "#src/choird/workers/pageBody.ts"
import { pageMarkdown } from "#src/choird/workers/pageMarkdown.ts"
import { matchesGolden } from "../../support/corpusText.ts"
import { marked } from "../../support/mailbox/mailbox.ts"
import { HIDDEN } from "../../support/mailbox/Shape.ts"
import { savedPages } from "../../support/pages/savedPages.ts"

const FOLDER = join(import.meta.dirname, "../../corpus/pages")

describe("a saved page", () => {
  it("is one of 60", () => assert.lengthOf(savedPages, 60))

  for (const { body, order, pack, shape, way } of savedPages)
    it(`of ${shape.name} is read as a person would keep it, in ${pack.language}, around it site ${way}`, () => {
      const { text, title } = pageMarkdown(pageBody(body, order), order.url)
      const whole = marked(`title: ${title}\n\n${text}`, pack)
      assert.notInclude(whole, HIDDEN)
      matchesGolden(join(FOLDER, `${shape.name}.md`), whole)
    })
})
