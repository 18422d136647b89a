/** The pages at the top of the repository, in docs/ and in docs/decisions/ give guidance. Evidence is in docs/evidence, which the package leaves out. */
import { existsSync, globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { ROOT } from "../support/installation.ts"

const GUIDANCE = ["README.md", "AGENTS.md", "CONTRIBUTING.md", ...globSync("docs/{*,decisions/*}.md", { cwd: ROOT })]

/** Words of all of it, as wc counts them. Only ever lower it: figures, runs and defects found belong into docs/evidence. */
const WORDS_MAX = 107_100

/** Features that a page says are missing: the words around the claim, and the path that must not exist as long as the claim is made. */
const MISSING: ReadonlyArray<{ readonly page: string; readonly words: string; readonly path: string }> = [
  { page: "docs/decisions/protocol.md", words: "A web console is not built", path: "src/choird/console" }
]

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8")

/** The sentences of a page that say that something is missing, each on one line. */
const missingIn = (page: string): ReadonlyArray<string> =>
  Array.from(
    page
      .replaceAll(/\s+/gu, " ")
      .matchAll(/[^.!?|]*\b(?:(?:are|is) not (?:yet )?(?:built|implemented)|not (?:built|implemented) yet)\b/giu),
    ([claim]) => claim.trim()
  )

/** The claims of a page that no entry allows. */
const unallowed = (page: string, text: string): ReadonlyArray<string> =>
  missingIn(text).filter((claim) => !MISSING.some((entry) => entry.page === page && `${claim} `.includes(entry.words)))

describe("the guidance", () => {
  it("has no more words than its bound", () => {
    const words = GUIDANCE.reduce((sum, page) => sum + read(page).split(/\s+/u).filter(Boolean).length, 0)
    assert.isAbove(GUIDANCE.length, 30)
    assert.isAtMost(words, WORDS_MAX)
  })

  it("is packed without the evidence", () => {
    const { files } = JSON.parse(read("package.json")) as { readonly files: ReadonlyArray<string> }
    assert.isAbove(globSync("docs/evidence/*.md", { cwd: ROOT }).length, 10)
    assert.isAbove(files.indexOf("!docs/evidence"), files.indexOf("docs"))
  })

  it("says of nothing that exists that it is missing", () => {
    const claims = GUIDANCE.flatMap((page) => unallowed(page, read(page)).map((claim) => `${page}: ${claim}`))
    assert.deepStrictEqual(claims, [])
    for (const { page, path, words } of MISSING) {
      assert.include(read(page).replaceAll(/\s+/gu, " "), words, page)
      assert.isFalse(existsSync(join(ROOT, path)), `${page} says "${words}", and ${path} exists`)
    }
  })

  it.each([
    "E-mail tools are not\nbuilt.",
    "Ageing of sessions is not built: chunks stay.",
    "| plans | not built yet |",
    "Watches are not yet implemented."
  ])("may not say %j", (text) => {
    assert.lengthOf(unallowed("docs/agent.md", text), 1)
  })
})
