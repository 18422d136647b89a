/** Pages and files that comments and other pages cite: each is in the repository, with the section, the anchor and the constant that is named. */
import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { ROOT } from "../support/installation.ts"

const ROOMS = ["bench", "demo", "schema", "src", "test", "tools"]
const SOURCES = globSync(`{${ROOMS.join(",")}}/**/*.{js,ts}`, { cwd: ROOT }).sort()
const PAGES = globSync("{*,docs/**/*}.md", { cwd: ROOT }).sort()

/** Files of a skill or an image, which are not pages of the repository. */
const IMAGE_FILES: ReadonlySet<string> = new Set(["SKILL.md", "SOUL-CORE.md", "SOUL.md", "USER.md"])

const read = (path: string) => readFileSync(join(ROOT, path), "utf8")

/** The text of a comment, in which a citation may continue in the next line. */
interface Comment {
  readonly line: number
  readonly text: string
}

const LINE = /^\s*(?:\/\*\*?|\*\/|\*(?=\s|$)|\/\/)\s?(?<text>.*)$/u
const TRAILING = /\s\/\/ (?<text>.*)$/u

/** Lines that follow each other are one comment. Code that begins with a comment's mark, in a template for example, counts as one. */
const commentsOf = (source: string): ReadonlyArray<Comment> => {
  const found: Array<{ readonly line: number; text: string }> = []
  let isOpen = false
  for (const [index, line] of source.split("\n").entries()) {
    const whole = LINE.exec(line)?.groups?.["text"]
    const text = whole ?? TRAILING.exec(line)?.groups?.["text"]
    const before = found.at(-1)
    if (whole !== undefined && isOpen && before !== undefined) before.text += ` ${whole}`
    else if (text !== undefined) found.push({ line: index + 1, text })
    isOpen = whole !== undefined
  }
  return found.map(({ line, text }) => ({ line, text: text.replaceAll(/\s*\*\/|\s+/gu, " ").trim() }))
}

const withoutBlocks = (page: string) => page.replaceAll(/^```[\s\S]*?^```/gmu, "")

const headingsOf = (page: string): ReadonlyArray<string> =>
  [...withoutBlocks(page).matchAll(/^#{1,6} (.+)$/gmu)].map(([, heading = ""]) => heading.replaceAll("`", ""))

/** The anchors that GitHub gives to headings. */
const anchorsOf = (page: string): ReadonlySet<string> => {
  const seen = new Map<string, number>()
  return new Set(
    headingsOf(page).map((heading) => {
      const slug = heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
        .replaceAll(" ", "-")
      const times = seen.get(slug) ?? 0
      seen.set(slug, times + 1)
      return times === 0 ? slug : `${slug}-${times}`
    })
  )
}

const CITED = /(?<page>[\w./-]*[\w-]\.md)\b(?:, (?<section>[A-Z][^\n]*))?/gu

/** Whether a citation's words are a heading, alone or before a punctuation mark. */
const isHeading = (words: string, headings: ReadonlyArray<string>) =>
  headings.some((heading) => words.startsWith(heading) && /^(?:$|[).,;:])/u.test(words.slice(heading.length)))

/** The citations of a text that do not resolve. */
const problemsOf = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(CITED)].flatMap(({ groups }) => {
    const { page = "", section } = groups ?? {}
    const problems = section === undefined ? [] : problemsOf(section)
    if (IMAGE_FILES.has(page.split("/").at(-1) ?? "")) return problems
    if (!existsSync(join(ROOT, page))) return [`there is no ${page}`, ...problems]
    if (section === undefined || isHeading(section, headingsOf(read(page)))) return problems
    return [`${page} has no section as in "${section.slice(0, 40)}"`, ...problems]
  })

/** Any file of the repository but the installed ones. */
const FILES = globSync("{*,{bin,docker,third-party," + ROOMS.join(",") + "}/**/*}", { cwd: ROOT }).map(
  (path) => `/${path}`
)

/** Files of code in a text, by their name or the end of their path, that are not in the repository. */
const missingFiles = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/(?<![\w@*{}./-])(?<file>[\w-][\w./-]*\.(?:js|sh|ts))\b/gu)]
    .map(({ groups }) => groups?.["file"] ?? "")
    // The build makes what is in dist.
    .filter((file) => !file.startsWith("dist/") && !FILES.some((path) => path.endsWith(`/${file}`)))

describe("a page that is cited", () => {
  it("by a comment is there, with the section that is named", () => {
    assert.isAbove(SOURCES.length, 1000)
    const cited = SOURCES.flatMap((path) => commentsOf(read(path)).map((comment) => ({ path, ...comment })))
    assert.isAbove(cited.filter(({ text }) => text.includes("docs/protocol.md")).length, 20)
    const broken = cited.flatMap(({ line, path, text }) =>
      problemsOf(text).map((problem) => `${path}:${line}: ${problem}`)
    )
    assert.deepStrictEqual(broken, [])
  })

  it("by a comment is there, if it is a file of code", () => {
    const broken = SOURCES.flatMap((path) =>
      commentsOf(read(path)).flatMap(({ line, text }) =>
        missingFiles(text).map((file) => `${path}:${line}: there is no ${file}`)
      )
    )
    assert.deepStrictEqual(broken, [])
  })

  it("by the name of a test is there, with the section that is named", () => {
    const broken = SOURCES.flatMap((path) =>
      [...read(path).matchAll(/\b(?:describe|it(?:\.\w+)*)\(\s*"(?<title>[^"\n]*)"/gu)].flatMap(({ groups }) =>
        problemsOf(groups?.["title"] ?? "").map((problem) => `${path}: ${problem}`)
      )
    )
    assert.deepStrictEqual(broken, [])
  })

  it("by a link of another page is there, with the anchor that is named", () => {
    const broken = PAGES.flatMap((path) =>
      [...withoutBlocks(read(path)).matchAll(/\]\((?<target>[^)\s:#]*)(?:#(?<anchor>[^)\s]+))?\)/gu)].flatMap(
        ({ groups }) => {
          const { anchor, target = "" } = groups ?? {}
          const page = target === "" ? path : normalize(join(dirname(path), target))
          if (!existsSync(join(ROOT, page))) return [`${path}: there is no ${page}`]
          return anchor === undefined || anchorsOf(read(page)).has(anchor) ? [] : [`${path}: ${page} has no #${anchor}`]
        }
      )
    )
    assert.deepStrictEqual(broken, [])
  })

  it("names limits that are constants of schema/ or src/", () => {
    const constants = new Set(
      SOURCES.filter((path) => /^(?:schema|src)\//u.test(path)).flatMap((path) =>
        [...read(path).matchAll(/^(?:export )?const (?<name>[A-Z][A-Z0-9_]+)\b/gmu)].map(
          ({ groups }) => groups?.["name"]
        )
      )
    )
    const named = [...read("docs/protocol.md").matchAll(/`(?<name>[A-Z][A-Z0-9_]*_(?:BURST|MAX|MS|SECOND|VERSION))`/gu)]
    assert.isAbove(named.length, 40)
    assert.deepStrictEqual(
      named.flatMap(({ groups }) => (constants.has(groups?.["name"]) ? [] : [groups?.["name"]])),
      []
    )
  })
})

describe("the search for citations", () => {
  const cases: ReadonlyArray<readonly [source: string, problems: number]> = [
    ["/** Sent again (docs/protocol.md, Push stream). */", 0],
    ["/**\n * Sent again (docs/protocol.md,\n * Push stream): at once.\n */", 0],
    ["const a = 1 // sent again (docs/protocol.md, Ids)", 0],
    ["// One of docs/log.md and docs/protocol.md.", 0],
    ["/** SOUL.md of the image. */", 0],
    ['const page = "nowhere.md"', 0],
    ["/** Sent again (nowhere.md). */", 1],
    ["/** Sent again (docs/nowhere.md, Push stream). */", 1],
    ["/** Sent again (docs/protocol.md, Push streams). */", 1],
    ["/** Sent again (docs/protocol.md, Pull stream; docs/nowhere.md). */", 2]
  ]
  it.each(cases)("looks through %j", (source, problems) => {
    assert.lengthOf(
      commentsOf(source).flatMap(({ text }) => problemsOf(text)),
      problems
    )
  })

  it("knows a file of code by its name or the end of its path", () => {
    const text = "As Event.ts, schema/Event.ts and dist/choird.js, unlike Nowhere.ts, schema/Nowhere.ts and vent.ts."
    assert.deepStrictEqual(missingFiles(text), ["Nowhere.ts", "schema/Nowhere.ts", "vent.ts"])
  })
})
