/**
 * The words that a person reads: help texts, errors, log lines, comments of sources and launchers, pages, and titles of tests. A phrase that reads like a
 * translation is listed once, with plain words in its place. Quotations are free: code blocks, inline code and quoted text of a page.
 */
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { ROOT } from "../support/installation.ts"

interface Phrase {
  readonly pattern: RegExp
  /** Words to use in its place. */
  readonly better: string
  /** Titles of tests may have it: more than forty do. */
  readonly isFreeInTitles?: true
}

const PHRASES: ReadonlyArray<Phrase> = [
  { pattern: /\banew\b/giu, better: "again, from the start" },
  { pattern: /\bwho(?:m)?ever\b/giu, better: "name the person or program: the agent that, anyone who" },
  { pattern: /\bstands? for\b/giu, better: "is, means, represents, replaces" },
  { pattern: /\b(?:goes|gone|went) on\b/giu, better: "continues, resumes, runs, keeps", isFreeInTitles: true },
  {
    pattern: /\b(?:go|going) on (?:as|from|in|until|where|with|without)\b/giu,
    better: "continue, resume",
    isFreeInTitles: true
  },
  {
    pattern:
      /(?<!\bthere )\b(?:are|is|was|were) (?:no|none)\b(?= \p{L})(?! (?:better|different|earlier|larger|later|less|longer|more|other)\b)/giu,
    better: "is not a, has no, there is no"
  },
  {
    pattern: /\b(?:are|be|been|being|is|was|were) told\b(?! apart)/giu,
    better: "learns, receives, gets a notice, is notified",
    isFreeInTitles: true
  },
  { pattern: /\bin the place of\b/giu, better: "instead of" },
  { pattern: /\bshall\b/giu, better: "must, will" },
  { pattern: /\blies? (?:at|below|beside|in|on|outside|there|within)\b/giu, better: "is in, is at" },
  {
    pattern: /\bstands? (?:before|behind|below|beside|first|in front of)\b/giu,
    better: "is beside, comes before, follows"
  },
  { pattern: /\belse than\b/giu, better: "other than" },
  { pattern: /\bsmall letters\b/giu, better: "lowercase" },
  { pattern: /\bin an unknown way\b/giu, better: "in an unknown format" },
  {
    pattern: /\b(?:are|is|was|were) of (?:an?(?! kind\b)|another|format|that|this|version)\b/giu,
    better: "is from, belongs to, has, is version 1"
  },
  { pattern: /\ban? (?:entry|file|folder|line|row) an? (?!or\b)\p{L}/giu, better: "one row per agent" },
  { pattern: /\bnobody (?:can tell|looked)\b/giu, better: "it is unknown, it was not checked" },
  { pattern: /\btak(?:es?|ing) (?:it|them) along\b/giu, better: "include, kill too" },
  { pattern: /\b(?:became|becomes?) of\b/giu, better: "the outcome of, how it ended" },
  { pattern: /\b(?:looked at again|not looked at)\b/giu, better: "checked again, not checked" },
  { pattern: /\b(?:are|is) not reached\b/giu, better: "cannot be reached" },
  { pattern: /\bdo(?:es)? not run at the moment\b/giu, better: "is not running" },
  {
    pattern: /\b(?:are|had|has|have|is|was|were)(?: [\w'-]+){1,4} already(?=[.,:;`"])/giu,
    better: "already before the verb: is already there"
  },
  { pattern: /\bkeeps? \w+ not apart\b/giu, better: "does not keep commands apart" },
  { pattern: /\bmend(?:ed|ing|s)?\b/giu, better: "fix, repair, correct" },
  {
    pattern: /\/\*\*\s+(?:\*\s+)?(?:What|Who(?:ever|se)?|Which|Those|Nothing|Nobody|Hears) /gu,
    better: "begin with a noun phrase: what the thing is"
  }
]

const ROOMS = [
  "bin",
  "src",
  "schema",
  "demo",
  "tools",
  "bench",
  "docker",
  "docs",
  "AGENTS.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "README.md",
  "SECURITY.md"
]

/** Pages whose tables repeat texts of tests. */
const QUOTED_TABLES: ReadonlySet<string> = new Set(["docs/evidence/invariants.md"])

const blank = (text: string) => text.replaceAll(/[^\n]/gu, " ")

/** A page without its quotations, line by line as it was. */
const withoutQuotations = (page: string) =>
  page
    .replaceAll(/^```[\s\S]*?^```/gmu, blank)
    .replaceAll(/`[^`\n]*`/gu, blank)
    .replaceAll(/"[^"]{0,300}"/gu, blank)

const withoutTables = (page: string) => page.replaceAll(/^\|.*$/gmu, blank)

/** The phrases of a text, as `line: phrase (better)`. */
const found = (text: string, phrases = PHRASES): ReadonlyArray<string> =>
  phrases.flatMap(({ better, pattern }) =>
    [...text.matchAll(pattern)].map(({ 0: phrase, index }) => {
      const line = text.slice(0, index).split("\n").length
      return `${line}: ${phrase.replaceAll(/\s+/gu, " ")} (better: ${better})`
    })
  )

const filesOf = (...rooms: ReadonlyArray<string>): ReadonlyArray<string> => {
  const listed = spawnSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "--", ...rooms], {
    cwd: ROOT,
    encoding: "utf8"
  })
  assert.strictEqual(listed.status, 0, listed.stderr)
  return listed.stdout
    .split("\n")
    .filter((path) => /^bin\/|\.(?:json|md|sh|ts)$/u.test(path) && existsSync(join(ROOT, path)))
}

/** The titles of tests and suites: the text that a call of `it`, `describe` or what a file calls like them begins with. */
const TITLE =
  /\b(?:describe\w*|it|suite|layer\([^\n]*\))(?:\.\w+)*\)?(?:\([^()\n]*(?:\([^()\n]*\))?[^()\n]*\))?\(\s*(?<text>"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`)/gu

/** The titles of a file of tests, each at its place. */
const titlesOf = (source: string): string => {
  let titles = ""
  for (const { 0: call, groups, index } of source.matchAll(TITLE)) {
    const text = groups?.["text"] ?? ""
    titles += blank(source.slice(titles.length, index + call.length - text.length)) + text
  }
  return titles
}

const titleProblems = (source: string) =>
  found(
    titlesOf(source),
    PHRASES.filter(({ isFreeInTitles }) => isFreeInTitles !== true)
  )

const wordsOf = (path: string) => {
  const text = readFileSync(join(ROOT, path), "utf8")
  if (!path.endsWith(".md")) return text
  return withoutQuotations(QUOTED_TABLES.has(path) ? withoutTables(text) : text)
}

describe("the words of texts and comments", () => {
  it("are plain", () => {
    const paths = filesOf(...ROOMS)
    assert.isAbove(paths.length, 500)
    const problems = paths.flatMap((path) => found(wordsOf(path)).map((problem) => `${path}:${problem}`))
    assert.deepStrictEqual(problems, [])
  })
})

describe("the titles of tests", () => {
  it("are plain", () => {
    const sources = filesOf("test", ":!test/docs/words.test.ts").map(
      (path) => [path, readFileSync(join(ROOT, path), "utf8")] as const
    )
    const count = sources.reduce((sum, [, source]) => sum + [...source.matchAll(TITLE)].length, 0)
    assert.isAbove(count, 3500)
    const problems = sources.flatMap(([path, source]) => titleProblems(source).map((problem) => `${path}:${problem}`))
    assert.deepStrictEqual(problems, [])
  })

  it.each([
    'it("begins anew", () => {})',
    'it.live.skipIf(leaveOut(here) !== undefined)(\n  "begins anew",\n  () => {}\n)',
    'it.each(["a", "b"])("begins anew with %s", () => {})',
    "describeStores(`begins anew ${often} times`, (it) => {})",
    'layer(database, { timeout: LAYER_MS_MAX })("begins anew", (it) => {})',
    'atFull(it.live)("begins anew", () => {})'
  ])("are found in %j", (source) => {
    assert.lengthOf(titleProblems(source), 1)
  })

  it("are the first text alone, at their own line", () => {
    assert.deepStrictEqual(titleProblems('it("a", () => {\n  say("anew")\n})\nit("anew", () => {})'), [
      "4: anew (better: again, from the start)"
    ])
  })
})

describe("the search for phrases", () => {
  it.each([
    "/** What a hello answers. */",
    "/**\n * Whoever asks first is answered first.\n */",
    "It begins anew.",
    "The session goes on, and the job went on.",
    "Go on with the next one.",
    "A name that stands for an agent.",
    "It is no file, and these are none of ours.",
    "The agent is told, and shall mend it.",
    "It lies in a folder of something else than an agent.",
    "Its name has small letters, and is sealed in an unknown way.",
    "The numbers are of an older version, a row an agent.",
    "Nobody can tell what became of it.",
    "It takes them along, and is looked at again.",
    "The bot is not reached: the agent does not run at the moment.",
    "The file is there already.",
    "The number stands beside it."
  ])("finds one in %j", (text) => {
    assert.isNotEmpty(found(text))
  })

  it.each([
    "There is no file, and there are none left.",
    "It is no longer there, and is no larger than before.",
    "They can be told apart.",
    "Where it goes only once. What is this?",
    "/** The answer to a hello. What it holds is checked. */",
    "The answer is no.",
    "It recommends an amendment.",
    "Move on; log on; depends on.",
    "It is already there, and already has one.",
    "It is of no use; it is one of a kind, a line or a row."
  ])("takes %j for plain English", (text) => {
    assert.deepStrictEqual(found(text), [])
  })

  it("leaves out what a page quotes", () => {
    assert.deepStrictEqual(found(withoutQuotations('`goes on` and "is told\nagain"\n\n```\nanew\n```\n')), [])
  })
})
