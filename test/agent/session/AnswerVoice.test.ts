import { assert, describe, it } from "@effect/vitest"
import { SPEECH_CHARS_MAX } from "#src/agent/outside/Speech.ts"
import { spokenText } from "#src/agent/session/AnswerVoice.ts"

const WHOLE: ReadonlyArray<readonly [markdown: string, words: string]> = [
  ["It is **done**, _really_.", "It is done, really."],
  ["# Plan\n\n- one\n- ~~two~~\n\n1. three\n> quoted", "Plan\n\none\ntwo\n\nthree\nquoted"],
  ["2 * 3 = 6 and a_b_c", "2 * 3 = 6 and a_b_c"],
  ["ünïcödé 🙂", "ünïcödé 🙂"]
]

const IN_PART: ReadonlyArray<readonly [markdown: string, words: string]> = [
  ["Run this:\n```sh\nrm -rf /\n```\nThen wait.", "Run this:\n\nThen wait."],
  ["```\nnever closed", ""],
  ["See [the page](https://a.example/x) or https://b.example.", "See the page or"],
  ["Call `run()` now", "Call run() now"],
  ["| a | b |\n|---|---|\n| 1 | 2 |", ""]
]

describe("the words of an answer that is said aloud", () => {
  it("are its text without marks, and all of it where nothing has to be read", () => {
    for (const [markdown, words] of WHOLE)
      assert.deepStrictEqual(spokenText(markdown), { words, isWhole: true }, markdown)
  })

  it("leave out code, tables and addresses, which have to be read", () => {
    for (const [markdown, words] of IN_PART)
      assert.deepStrictEqual(spokenText(markdown), { words, isWhole: false }, markdown)
  })

  it("end with a sentence where the text is too long", () => {
    const { isWhole, words } = spokenText("One sentence. ".repeat(500))
    assert.isFalse(isWhole)
    assert.isAtMost(words.length, SPEECH_CHARS_MAX)
    assert.match(words, /sentence\.$/u)
    assert.isTrue(spokenText("🙂".repeat(5000)).words.isWellFormed())
  })

  it("end with a sentence in scripts that put no blank behind it", () => {
    for (const sentence of [
      "今天天气很好，我们去散步了。",
      "歯医者の予約は金曜日ですよ！",
      "आज मौसम अच्छा है।",
      "یہ ایک جملہ ہے۔ "
    ]) {
      const { words } = spokenText(sentence.repeat(500))
      assert.isTrue(words.endsWith(sentence.trim()), words.slice(-20))
      assert.isAtMost(words.length, SPEECH_CHARS_MAX)
    }
  })

  it("are found in no time in hostile texts", () => {
    for (const text of [
      "`".repeat(20_000),
      "[".repeat(20_000),
      "*".repeat(20_000),
      "| ".repeat(10_000),
      "_a ".repeat(8000),
      "> ".repeat(9000)
    ])
      assert.isAtMost(spokenText(text).words.length, SPEECH_CHARS_MAX)
  })
})
