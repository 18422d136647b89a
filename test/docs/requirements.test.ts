/** docs/evidence/requirements.md: each cited id has an entry there, and each entry names tests and headings that exist. */
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"

const ROOT = join(import.meta.dirname, "../..")
const CITING = ["src", "schema", "test", "demo", "tools", "bench", "docs"]
const NUMBERLESS = ["src", "schema", "test", "demo", "tools", "bench", "docs"]
const REQUIREMENTS = 110

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8")
const page = read("docs/evidence/requirements.md")

/** The text of each entry by its id: `- <a id="r12"></a>**R12** …` and the list below it. */
const entries = new Map(
  page
    .split(/^(?=- <a id=)/mu)
    .slice(1)
    .map((text) => {
      const [, anchor, id = ""] = /^- <a id="(r\d+)"><\/a>\*\*(R\d+)\*\* /u.exec(text) ?? []
      assert.strictEqual(anchor, id.toLowerCase(), text.slice(0, 80))
      return [id, (text.split(/^## /mu)[0] ?? "").replace(/<a[^>]*>/u, "").replaceAll(/\s+/gu, " ")] as const
    })
)

/** The lines of the repository's texts below some folders that match, as `path: match`. */
const matches = (folders: ReadonlyArray<string>, pattern: RegExp): ReadonlyArray<readonly [string, string]> => {
  const listed = spawnSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "--", ...folders], {
    cwd: ROOT,
    encoding: "utf8"
  })
  assert.strictEqual(listed.status, 0, listed.stderr)
  const paths = listed.stdout
    .split("\n")
    .filter((path) => /\.(?:ts|md|sh|json)$/u.test(path) && existsSync(join(ROOT, path)))
  assert.isAbove(paths.length, 10 * folders.length)
  return paths.flatMap((path) => [...read(path).matchAll(pattern)].map(([found]) => [path, found] as const))
}

/** A heading's anchor. */
const slug = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-")

describe("docs/evidence/requirements.md", () => {
  it("has one entry for each requirement", () => {
    assert.deepStrictEqual(
      [...entries.keys()],
      Array.from({ length: REQUIREMENTS }, (_, index) => `R${index + 1}`)
    )
    assert.lengthOf(page.match(/<a id=/gu) ?? [], REQUIREMENTS)
  })

  it("has an entry for each id that code, tests and pages cite", () => {
    const cited = matches(CITING, /\bR[1-9]\d{0,2}\b/gu)
    assert.isAbove(cited.length, 500)
    assert.deepStrictEqual(
      cited.filter(([, id]) => !entries.has(id)).map((place) => place.join(": ")),
      []
    )
  })

  it("says of each entry what holds it, or that nothing does", () => {
    for (const [id, text] of entries) {
      const [, state = "", rest = ""] =
        / - (Held by nothing yet|Not built yet|Held in part by|Held by)\b(.*)/u.exec(text) ?? []
      assert.isNotEmpty(state, id)
      assert.strictEqual(/`test\/|`npm run |the linter|the type/u.test(rest), /^Held (?:in part )?by$/u.test(state), id)
    }
  })

  it("names tests that exist, by words of their names", () => {
    let names = 0
    for (const [id, text] of entries) {
      let source: string | undefined
      for (const [, path, name] of text.matchAll(/`(test\/[\w./-]+)`|"([^"]+)"/gu))
        if (path !== undefined) {
          assert.isTrue(existsSync(join(ROOT, path)), `${id}: ${path}`)
          source = read(path)
        } else if (name !== undefined) {
          names += 1
          assert.include(source ?? "", name, id)
        }
    }
    assert.isAbove(names, 200)
  })

  it("links to headings that exist", () => {
    for (const [, file = "", anchor] of page.matchAll(/\]\(([\w./-]+\.md)(?:#([\w-]+))?\)/gu)) {
      const headings = [...read(join("docs/evidence", file)).matchAll(/^#+ (.+)$/gmu)].map(([, heading = ""]) =>
        slug(heading)
      )
      if (anchor !== undefined) assert.include(headings, anchor, file)
    }
  })
})

describe("a comment or test", () => {
  it("cites no section of a document that the repository does not have", () => {
    assert.deepStrictEqual(
      matches(NUMBERLESS, /\bspec(?:ification)? §? ?\(?\d+(?:\.\d+)*/giu).map((place) => place.join(": ")),
      []
    )
  })
})
