import { assert, describe, it } from "@effect/vitest"
import { hasTable } from "#src/choird/telegram/markdownBlocks.ts"
import { type Entity, markedText, splitMarked, trimmed } from "#src/choird/telegram/markedText.ts"
import { seeded } from "../../support/seeded.ts"

const shown = (markdown: string) => {
  const { entities, text } = markedText(markdown)
  return [
    text,
    entities.map(({ length, offset, type, ...more }) => [
      type,
      text.slice(offset, offset + length),
      ...Object.values(more)
    ])
  ]
}

const TEXTS = 10_000

/** Words, marks and hostile pieces, of which a model's answer may consist. */
const PIECES = [
  ..."* ** _ __ ~~ || ` `` ``` ~~~ \\ [ ]( ) > # - + | |-|-| :-: 1. <b> & ◆ é 🙂 👨‍👩‍👧 \u0000 \ud800 snake_case_name".split(
    " "
  ),
  "\n",
  "\n\n",
  " ",
  "  ",
  "\n```ts\n",
  "\n```\n",
  "\n> ",
  "\n- ",
  "\n# ",
  "[here](https://example.org/a_b)",
  "word",
  "wörter",
  "x".repeat(60)
]

const problemOf = (text: string, { length, offset }: Entity): string | undefined => {
  if (length <= 0 || offset < 0 || offset + length > text.length) return "is outside of its text"
  const splits = (at: number) => /^[\uD800-\uDBFF][\uDC00-\uDFFF]$/u.test(text.slice(at - 1, at + 1))
  return splits(offset) || splits(offset + length) ? "cuts a character" : undefined
}

/** Two entities that cross, or of which one is in code. */
const cross = (a: Entity, b: Entity) => {
  const [first, second] = a.offset <= b.offset ? [a, b] : [b, a]
  const overlap = second.offset < first.offset + first.length
  if (!overlap) return false
  const crosses = second.offset > first.offset && second.offset + second.length > first.offset + first.length
  const isCode = ({ type }: Entity) => type === "code" || type === "pre"
  return crosses || ((isCode(a) || isCode(b)) && a.type !== "blockquote" && b.type !== "blockquote")
}

/** The letters and digits of a text, in order. */
const letters = (text: string) => text.replaceAll(/[^\p{L}\p{N}]/gu, "")

const LONG_CHARS = 60_000
/** Hostile text may cost this many times what plain words do: there is one walk for each kind of mark and depth of nesting. */
const COST_MAX = 30

/** The least processor time of several readings, in microseconds, which other work on the machine does not count in. */
const costOf = (piece: string): number => {
  const text = piece.repeat(LONG_CHARS / piece.length)
  const costs = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage()
    markedText(text)
    const { system, user } = process.cpuUsage(before)
    return system + user
  })
  return Math.min(...costs)
}

describe("a model's Markdown", () => {
  it("becomes a text with entities", () => {
    assert.deepStrictEqual(shown("plain *it* **bo** ~~no~~ ||shh|| `a*b*`"), [
      "plain it bo no shh a*b*",
      [
        ["italic", "it"],
        ["bold", "bo"],
        ["strikethrough", "no"],
        ["spoiler", "shh"],
        ["code", "a*b*"]
      ]
    ])
    assert.deepStrictEqual(shown("# Title **x**\n- one\n  * two\n1. three"), [
      "Title x\n• one\n  • two\n1. three",
      [["bold", "Title x"]]
    ])
    assert.deepStrictEqual(shown("a\n```ts\nconst a = `b`\n```\nz"), [
      "a\nconst a = `b`\nz",
      [["pre", "const a = `b`", "ts"]]
    ])
    assert.deepStrictEqual(shown("> one\n> **two**\nthree"), [
      "one\ntwo\nthree",
      [
        ["blockquote", "one\ntwo"],
        ["bold", "two"]
      ]
    ])
    assert.deepStrictEqual(shown("see [the *docs*](https://example.org/a_(b)) now"), [
      "see the docs now",
      [
        ["text_link", "the docs", "https://example.org/a_(b)"],
        ["italic", "docs"]
      ]
    ])
    assert.deepStrictEqual(shown("***both***"), [
      "both",
      [
        ["bold", "both"],
        ["italic", "both"]
      ]
    ])
    assert.deepStrictEqual(shown("**a `c` b**"), [
      "a c b",
      [
        ["bold", "a "],
        ["bold", " b"],
        ["code", "c"]
      ]
    ])
  })

  it("stays as it was written where it is not a mark", () => {
    for (const text of [
      "2 * 3 * 4",
      "snake_case_name",
      "a ** b",
      "5 || 6",
      "[x](javascript:alert)",
      "[x](tg://resolve?domain=choir)",
      "[x](tel:+491234)",
      "[x](ton://transfer/a)",
      "`",
      "**open",
      "C:\\dir",
      "#5"
    ])
      assert.deepStrictEqual(shown(text), [text, []], text)
    assert.deepStrictEqual(shown("\\*not\\* \\_it\\_"), ["*not* _it_", []])
    assert.deepStrictEqual(shown("```\nopen"), ["open", [["pre", "open"]]])
  })

  it("shows a table as columns of one width", () => {
    const table = "| name | b |\n|---|:-:|\n| **1** | `zwei` |\n| x |"
    const columns = "name  b\n────  ────\n1     zwei\nx"
    assert.deepStrictEqual(shown(`x\n${table}\ny`), [`x\n${columns}\ny`, [["pre", columns]]])
    const wide = `|${"a|".repeat(13)}\n|${"-|".repeat(13)}\n|1|`
    assert.deepStrictEqual(shown(wide), [wide, [["pre", wide]]])
    assert.isTrue(hasTable(table))
    assert.isFalse(hasTable("a | b\nc | d"))
  })

  it(`has valid entities in ${TEXTS} random texts, loses no letter, and is the same when its parts are joined`, () => {
    const random = seeded(20_261_125)
    const pick = random
    for (let round = 0; round < TEXTS; round += 1) {
      const markdown = Array.from({ length: 1 + pick(40) }, () => PIECES[pick(PIECES.length)] ?? "").join("")
      const whole = markedText(markdown)
      const about = JSON.stringify(markdown)
      for (const entity of whole.entities) assert.isUndefined(problemOf(whole.text, entity), about)
      const crossed = whole.entities.some((a, at) => whole.entities.slice(at + 1).some((b) => cross(a, b)))
      assert.isFalse(crossed, about)
      const gone = letters(
        markdown.replaceAll("(https://example.org/a_b)", "").replaceAll(/(`{3,}|~{3,})\s*[\w+#.-]*/gu, "")
      )
      const kept = letters(whole.text.replaceAll("(https://example.org/a_b)", ""))
      assert.isTrue(isWithin(gone, kept), about)
      const units_max = 2 + pick(60)
      const parts = splitMarked(whole, units_max)
      assert.strictEqual(parts.map(({ text }) => text).join(""), whole.text, about)
      for (const part of parts) {
        assert.isAtMost(part.text.length, units_max)
        for (const entity of part.entities) assert.isUndefined(problemOf(part.text, entity), about)
        const sent = trimmed(part)
        assert.strictEqual(sent.text, part.text.trim(), about)
        for (const entity of sent.entities) assert.isUndefined(problemOf(sent.text, entity), about)
      }
      for (const { length, offset } of whole.entities)
        if (length <= units_max) assert.isTrue(isWhole(parts, offset, offset + length, whole.entities), about)
    }
  })

  it("costs no more than some readings of plain words, whatever it holds", () => {
    const plain = costOf("word ")
    for (const hostile of ["*b* `a` ", "[", "[a](tg:", `[${"a".repeat(500)}`, `${"`".repeat(17)}a`, "*a `b` c* "])
      assert.isAtMost(costOf(hostile) / plain, COST_MAX, hostile.slice(0, 20))
  })

  it("keeps links with brackets before them, in marks and over the ends of these", () => {
    const url = "https://example.org/a_(b)"
    const link = { type: "text_link", url }
    const linksOf = (markdown: string) => {
      const { entities, text } = markedText(markdown)
      const found = entities.filter(({ type }) => type === "text_link")
      return found.map((one) => [text.slice(one.offset, one.offset + one.length), { type: one.type, url: one.url }])
    }
    assert.deepStrictEqual<unknown>(linksOf(`[a](${url}) [b](${url})`), [
      ["a", link],
      ["b", link]
    ])
    assert.deepStrictEqual<unknown>(linksOf(`[x] [ [a](${url})`), [[" [a", link]])
    assert.deepStrictEqual<unknown>(linksOf(`**[a](${url})** [b`), [["a", link]])
    assert.deepStrictEqual<unknown>(linksOf(`**[a**](${url})`), [])
    assert.deepStrictEqual<unknown>(linksOf(`[a\nb](${url})`), [])
    assert.deepStrictEqual<unknown>(linksOf(`[](${url})`), [])
  })

  it("takes time in proportion to its length, whatever it holds", () => {
    for (const hostile of ["*a ", "**a ", "_a ", "[a](", "`a ``b ", "~~", "> ", "|", "***", "||a"]) {
      const { text } = markedText(hostile.repeat(100_000 / hostile.length))
      assert.isAtMost(text.length, 200_000)
    }
  })
})

/** Whether a text has all letters of another in their order. */
const isWithin = (inner: string, outer: string) => {
  let at = 0
  for (const letter of outer) if (inner.startsWith(letter, at)) at += letter.length
  return at >= inner.length
}

/** Whether a range of the joined text lies in one part, or in an outer mark that had to be cut. */
const isWhole = (
  parts: ReadonlyArray<{ readonly text: string }>,
  from: number,
  to: number,
  entities: ReadonlyArray<Entity>
) => {
  let start = 0
  for (const { text } of parts) {
    if (from >= start && to <= start + text.length) return true
    start += text.length
  }
  return entities.some((outer) => outer.offset <= from && outer.offset + outer.length >= to && outer.length > to - from)
}
