/** The ids of decisions: each one that a comment, a test or a page cites has one entry in docs/decisions/, and the index leads to it. */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"

const ROOT = join(import.meta.dirname, "../..")
const INDEX = "docs/decisions.md"
const FOLDERS = ["bench", "demo", "docker", "docs", "schema", "src", "test", "tools"]

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8")

const filesBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(?:md|sh|ts)$/u.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1))

const pages = readdirSync(join(ROOT, "docs/decisions")).map((name) => `docs/decisions/${name}`)
const headings = (page: string) => read(page).matchAll(/^#{2,3} (?<title>.+)$/gmu)

/** The anchor that a viewer of Markdown gives a heading. */
const anchorOf = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-")

/** Where each id has an entry: `### D12: Tokens are swapped at the hello`. */
const entries = new Map<string, ReadonlyArray<string>>()
for (const page of [INDEX, ...pages])
  for (const [, id = ""] of read(page).matchAll(/^#+ (?<id>[DE]\d{1,2}):/gmu))
    entries.set(id, [...(entries.get(id) ?? []), page])

/** Comments and quoted texts; type parameters and variables of the same form are neither. */
const WORDS = /\/\*.*?\*\/|\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/gsu

/** Ids in a text, but not bytes of a percent-encoding such as %E0. */
const idsIn = (text: string) => Array.from(text.matchAll(/(?<!%)\b[DE]\d{1,2}\b/gu), ([id]) => id)

const cited = new Map<string, ReadonlyArray<string>>()
for (const path of [...FOLDERS.flatMap(filesBelow), ...readdirSync(ROOT).filter((name) => name.endsWith(".md"))]) {
  // The index and the entries themselves do not cite.
  if (path === INDEX) continue
  const text = read(path).replaceAll(/^#.*$/gmu, "")
  const words = path.endsWith(".ts") ? Array.from(text.matchAll(WORDS), ([word]) => word).join("\n") : text
  for (const id of idsIn(words)) cited.set(id, [...(cited.get(id) ?? []), path])
}

describe("an id of a decision", () => {
  it("has an entry wherever it is cited", () => {
    assert.isAbove(cited.size, 45)
    for (const [id, paths] of cited) assert.isTrue(entries.has(id), `${id}, cited in ${paths.join(", ")}`)
  })

  it("has one entry", () => {
    for (const [id, found] of entries) assert.lengthOf(found, 1, `${id} has entries in ${found.join(", ")}`)
  })

  it("is in the index", () => {
    const listed = Array.from(read(INDEX).matchAll(/^- \[(?<id>[DE]\d{1,2}): /gmu), ([, id = ""]) => id)
    assert.sameMembers(listed, [...entries.keys()])
  })
})

describe("a link of the decisions", () => {
  it("leads to a page and to one of its headings", () => {
    for (const page of [INDEX, ...pages])
      for (const [, target = "", anchor] of read(page).matchAll(
        /\]\((?<target>[^)#:]+\.md)(?:#(?<anchor>[^)]+))?\)/gu
      )) {
        const path = join(dirname(page), target)
        const anchors = Array.from(headings(path), ([, title = ""]) => anchorOf(title))
        if (anchor !== undefined) assert.include(anchors, anchor, `${page} links to ${target}#${anchor}`)
      }
  })
})
