/** Counting tokens: exact where texts are ordinary, bounded in work where they are hostile. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { countTokens } from "gpt-tokenizer/encoding/o200k_base"
import type { Message } from "#src/shared/model/Conversation.ts"
import { TOKEN_SLICE_CHARS, TokenCount } from "#src/agent/model/TokenCount.ts"
import { seeded } from "../../support/seeded.ts"
import { TOKEN_PIECE_BYTES_MAX } from "#src/agent/model/Vocabulary.ts"

/** The package's own count; what looks like a special token is text. */
const exact = (text: string) => countTokens(text, { disallowedSpecial: new Set() })

const WORDS = [
  "don't",
  "I'LL",
  "naïve",
  "Straße",
  "東京タワー",
  "Привет",
  "नमस्ते",
  "👩‍👩‍👧‍👦",
  "e\u0301",
  "\r\n",
  "\n\n  ",
  "\t",
  "   ",
  "1234567",
  "0x1F",
  "camelCaseWord",
  "SCREAMING_CASE",
  "a/b/../c.ts",
  "</div>",
  '{"k":[1,2]}',
  "<|endoftext|>",
  "…",
  "\ud800",
  "  x",
  "'s",
  "=====",
  "https://example.org/?q=1&r=2",
  "\u0000",
  "ｆｕｌｌ",
  "ꙮ"
]
const textOf = (seed: number, words: number) => {
  const next = seeded(seed)
  return Array.from({ length: words }, () => `${WORDS[next(WORDS.length)]}${next(3) === 0 ? " " : ""}`).join("")
}

/** Nothing in them can be split, or everything can. */
const HOSTILE: ReadonlyArray<readonly [string, string]> = [
  ["one letter", "a"],
  ["capitals", "A"],
  ["spaces", " "],
  ["a sign", "="],
  ["line breaks", " \n"],
  ["digits", "7"],
  ["marks", "\u0301"],
  ["lone surrogates", "\udc00"],
  ["quotes", "'s"]
]

it.layer(TokenCount.layer)("TokenCount", (it) => {
  it.effect("counts as o200k_base does, whatever the language and wherever a slice ends", () =>
    Effect.gen(function* () {
      const tokens = yield* TokenCount
      for (let seed = 1; seed <= 40; seed++) {
        const text = textOf(seed, 20 + seed * 40)
        assert.strictEqual(yield* tokens.count([text]), exact(text.toWellFormed()), `seed ${seed}`)
      }
      const prose = "The quick brown fox doesn't jump over 12345 lazy dogs, it's said.\n".repeat(400)
      assert.isAbove(prose.length, 5 * TOKEN_SLICE_CHARS)
      for (let start = 0; start < 70; start++) {
        const text = prose.slice(start)
        assert.strictEqual(yield* tokens.count([text]), exact(text))
      }
    })
  )

  it.effect("adds texts up, remembers long ones, and counts nothing as nothing", () =>
    Effect.gen(function* () {
      const tokens = yield* TokenCount
      const long = "remember me. ".repeat(100)
      assert.strictEqual(yield* tokens.count([]), 0)
      assert.strictEqual(yield* tokens.count([""]), 0)
      const once = yield* tokens.count([long])
      assert.strictEqual(yield* tokens.count([long, "hello world", long]), 2 * once + 2)
    })
  )

  it.effect("counts a conversation that grows, shrinks or changes as its messages one by one", () =>
    Effect.gen(function* () {
      const tokens = yield* TokenCount
      const said = (seed: number): Message => ({ role: "user", content: textOf(seed, 5 + seed) })
      const all = Array.from({ length: 12 }, (_, seed) => said(seed))
      const lists = [
        all.slice(0, 4),
        all.slice(0, 9),
        all.slice(0, 6),
        [...all.slice(0, 5), said(20), ...all.slice(6)],
        all,
        [said(21), ...all.slice(1)]
      ]
      for (const list of lists) {
        const alone = list.reduce((sum, { content }) => sum + exact((content ?? "").toWellFormed()), 0)
        assert.strictEqual(yield* tokens.count(list), alone)
        const [first, again] = yield* Effect.all([tokens.count(list), tokens.count([...list, said(22)])], {
          concurrency: 2
        })
        assert.isAbove(again, first)
      }
    })
  )

  for (const [what, unit] of HOSTILE)
    it.effect(`counts 200,000 characters of ${what} in bounded work, close to what they are`, () =>
      Effect.gen(function* () {
        const tokens = yield* TokenCount
        const text = unit.repeat(200_000 / unit.length)
        const sample = unit.repeat(TOKEN_PIECE_BYTES_MAX / unit.length / 2)
        const count = yield* tokens.count([text])
        const expected = (exact(sample.toWellFormed()) * text.length) / sample.length
        assert.isAtLeast(count, expected / 3)
        assert.isAtMost(count, Math.min(expected * 3, Buffer.byteLength(text)))
      })
    )

  it.effect("lets other fibers go on while it counts a long text", () =>
    Effect.gen(function* () {
      const tokens = yield* TokenCount
      let turns = 0
      yield* Effect.forkScoped(
        Effect.forever(
          Effect.andThen(
            Effect.sync(() => turns++),
            Effect.yieldNow
          )
        )
      )
      yield* tokens.count(["others must live. ".repeat(10_000)])
      // A turn of that fiber takes two yields.
      assert.isAtLeast(turns, 170_000 / TOKEN_SLICE_CHARS / 2 - 2)
    })
  )

  it.effect("knows without counting when texts are certainly below a length", () =>
    Effect.gen(function* () {
      const tokens = yield* TokenCount
      const said = (...texts: ReadonlyArray<string>) => texts.map((content): Message => ({ role: "user", content }))
      assert.isTrue(tokens.certainlyBelow(said("é".repeat(10), "a"), 22))
      assert.isFalse(tokens.certainlyBelow(said("é".repeat(10), "a"), 21))
      assert.isFalse(tokens.certainlyBelow([], 0))
      for (let seed = 100; seed < 110; seed++) {
        const text = textOf(seed, 50)
        const count = yield* tokens.count([text])
        assert.isFalse(tokens.certainlyBelow(said(text), count))
      }
    })
  )

  it.effect("learns by how much a model counts more, and is not led astray by nonsense", () =>
    Effect.gen(function* () {
      const { factor, observe } = yield* TokenCount
      assert.strictEqual(factor("new"), 1)
      for (const [counted, reported] of [
        [0, 10],
        [1000, 0],
        [1000, 1e9],
        [1000, Number.NaN],
        [0, 0],
        [-5, -5_000]
      ] as const)
        observe("new", counted, reported)
      assert.strictEqual(factor("new"), 1)
      observe("new", 1000, 1300)
      assert.strictEqual(factor("new"), 1.3)
      for (let again = 0; again < 30; again++) observe("new", 1000, 1100)
      assert.closeTo(factor("new"), 1.1, 0.001)
      assert.strictEqual(factor("other"), 1)
    })
  )
})
