import { assert, describe, it } from "@effect/vitest"
import { pageMarkdown } from "#src/choird/workers/pageMarkdown.ts"
import { HIDDEN_WORD, HIDING, SEEN_WORD, SHOWING } from "../../support/hiddenWords.ts"

/** Enough words that the page counts as an article. */
const ARTICLE = `<p>${"A sentence about gardens and what grows in them. ".repeat(20)}</p>`
const pages = (html: string) => [
  `<html><head><title>t</title></head><body>${html}</body></html>`,
  `<html><head><title>t</title></head><body><article>${ARTICLE}${html}${ARTICLE}</article></body></html>`
]

describe("a page as Markdown", () => {
  for (const [what, html] of Object.entries(HIDING))
    it(`is without words behind: ${what}`, () => {
      for (const page of pages(html)) assert.notInclude(pageMarkdown(page, "https://a.example/").text, HIDDEN_WORD)
    })

  for (const [what, html] of Object.entries(SHOWING))
    it(`holds words that are seen: ${what}`, () => {
      for (const page of pages(html)) assert.include(pageMarkdown(page, "https://a.example/").text, SEEN_WORD)
    })

  it("holds no character that nobody sees", () => {
    const hidden = "\u{E0049}\u{E0067}\u200B\u202E\u2060\u3164\u2800"
    const { text, title } = pageMarkdown(
      `<html><head><title>new${hidden}s</title></head><body><p>gar${hidden}den</p><p>two</p></body></html>`,
      "https://a.example/"
    )
    assert.deepStrictEqual([title, text], ["news", "garden\n\ntwo"])
  })
})
