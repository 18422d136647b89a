/** Edits whose quotation differs from the file in signs that models do not see or copy otherwise. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fsEdit } from "#src/agent/tools/fsEdit.ts"
import { LIKE_TEXT_CHARS_MAX, likeTexts } from "#src/agent/tools/likeText.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { laneThatSaw, temporaryWorkspace, toolServices } from "../../support/workspace.ts"

/** What a file is after an edit, or why it was refused. */
const edited = Effect.fnUntraced(function* (content: string, old_text: string, new_text: string, more: object = {}) {
  const { root } = yield* temporaryWorkspace
  const tool = yield* Effect.provideContext(fsEdit, yield* toolServices(root))
  writeFileSync(join(root, "file"), content)
  const seen = { file: sha256(Buffer.from(content)) }
  const { status, summary } = yield* (yield* tool.prepare({ path: "file", old_text, new_text, ...more })).run(
    laneThatSaw(seen)
  )
  return status === "success" ? readFileSync(join(root, "file"), "utf8") : summary
})

const CASES: ReadonlyArray<readonly [name: string, file: string, old: string, text: string, after: string]> = [
  [
    "blanks at the ends of lines",
    "def a():   \n    return 1\t\nend\n",
    "def a():\n    return 1\nend",
    "def a():\n    return 2\nend",
    "def a():\n    return 2\nend\n"
  ],
  ["line ends of both kinds", "one\r\ntwo\nthree\r\nfour\n", "two\nthree\nfour", "2\n3\n4", "one\r\n2\n3\n4\n"],
  [
    "typographic quotes, dashes and spaces",
    "He said \u{201c}hello\u{201d} \u{2014} it\u{2019}s\u{a0}fine\n",
    'He said "hello" - it\'s fine',
    "bye",
    "bye\n"
  ],
  ["Vietnamese in two spellings", "x Tiếng Việt y\n".normalize("NFD"), "Tiếng Việt", "Anh", "x Anh y\n"],
  [
    "Korean in two spellings",
    "앞 학점인정 뒤\n".normalize("NFD"),
    "학점인정",
    "x",
    `${"앞".normalize("NFD")} x ${"뒤".normalize("NFD")}\n`
  ],
  ["a wide blank", "東京の天気\u{3000}は晴れ\n", "天気 は", "天気は", "東京の天気は晴れ\n"]
]

describe("choir.fs.edit", () => {
  for (const [name, file, old, text, after] of CASES)
    it.effect(`replaces a text that differs in ${name}`, () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* edited(file, old, text), after)
      })
    )

  it.effect("changes nothing where such a text is there twice, and all of them on request", () =>
    Effect.gen(function* () {
      const file = "it\u{2019}s\nit\u{2019}s\n"
      assert.match(yield* edited(file, "it's", "x"), /does not hold old_text/u)
      assert.strictEqual(yield* edited(file, "it's", "x", { replace_all: true }), "x\nx\n")
    })
  )

  it.effect("takes no letter from its marks, and prefers what is exactly so", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(likeTexts("q\u{307}\u{323}\n", "q\u{307}"), [])
      assert.strictEqual(yield* edited("it's \u{2018}it\u{2019}s\n", "it's", "x"), "x \u{2018}it\u{2019}s\n")
      assert.deepStrictEqual(likeTexts("a".repeat(LIKE_TEXT_CHARS_MAX + 1), "a"), [])
      assert.deepStrictEqual(likeTexts("a", " \n"), [])
    })
  )
})
