import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { MIME_LINES_MAX } from "#src/agent/mail/boundedMime.ts"
import { MAIL_FILES_MAX, MAIL_TEXT_CHARS_MAX } from "#src/agent/mail/mailProtocol.ts"
import { readHere } from "../../support/mailReader.ts"
import { HOSTILE_MAILS } from "./hostileMails.ts"

const UNSEEN = /(?![\n\t])[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}]/u

const HEADERS = "From: eve@a.example\r\nSubject: s\r\n"

/** Small mails that each make far more work than their size, and the limit that refuses each. */
const EXPLOSIVE: ReadonlyArray<{ readonly what: string; readonly raw: () => string; readonly why: RegExp }> = [
  { what: "2 MB of newlines", raw: () => `${HEADERS}\r\n${"\n".repeat(2_000_000)}`, why: /more than \d+ lines/u },
  { what: "500 kB of newlines", raw: () => `${HEADERS}\r\n${"\n".repeat(500_000)}`, why: /more than \d+ lines/u },
  {
    what: "1.2 MB of short lines of HTML",
    raw: () => `${HEADERS}Content-Type: text/html\r\n\r\n${"\n ".repeat(600_000)}`,
    why: /more than \d+ lines/u
  },
  {
    what: "160,000 parts",
    raw: () => `${HEADERS}Content-Type: multipart/mixed; boundary=b\r\n\r\n${"--b\n\n".repeat(160_000)}`,
    why: /more than \d+ boundaries/u
  },
  {
    what: "a line of 2 MB",
    raw: () => `${HEADERS}\r\n${"x".repeat(2_000_000)}`,
    why: /more than \d+ bytes in a line/u
  },
  {
    what: "100,000 paddings within base64",
    raw: () => `${HEADERS}Content-Transfer-Encoding: base64\r\n\r\n${"=A".repeat(100_000)}`,
    why: /more than \d+ paddings/u
  },
  {
    what: "2 MB of text",
    raw: () => `${HEADERS}\r\n${`${"x".repeat(98)}\r\n`.repeat(20_000)}`,
    why: /more than \d+ bytes of text/u
  }
]

/** Counts the pieces of bodies that are put together while it is in place. */
const countPieces = Effect.acquireRelease(
  Effect.sync(() => {
    const { Blob } = globalThis
    const counted = { pieces: 0, Blob }
    globalThis.Blob = class extends Blob {
      constructor(...given: ConstructorParameters<typeof Blob>) {
        super(...given)
        counted.pieces += given[0].length
      }
    }
    return counted
  }),
  ({ Blob }) =>
    Effect.sync(() => {
      globalThis.Blob = Blob
    })
)

const read = (raw: string) =>
  Effect.tryPromise({ try: () => readHere(Buffer.from(raw)), catch: (error) => ({ problem: String(error) }) })

describe("a hostile mail", () => {
  for (const { raw, what, why } of EXPLOSIVE)
    it.effect(`of ${what} is refused`, () =>
      Effect.gen(function* () {
        const { problem } = yield* Effect.flip(read(raw()))
        assert.match(problem, why)
      })
    )

  for (const encoding of ["7bit", "base64"])
    it.effect(`of as many lines as may be, in ${encoding}, makes no object of each`, () =>
      Effect.gen(function* () {
        const counted = yield* countPieces
        const { from } = yield* read(
          `${HEADERS}Content-Transfer-Encoding: ${encoding}\r\n\r\nAAAA\n${"\n".repeat(MIME_LINES_MAX - 10)}`
        )
        assert.strictEqual(from, "eve@a.example")
        assert.isBelow(counted.pieces, MIME_LINES_MAX / 100)
      }).pipe(Effect.scoped)
    )

  it("has 50 kinds here", () => assert.isAtLeast(HOSTILE_MAILS.length, 50))

  for (const { raw, read: expected, what } of HOSTILE_MAILS)
    it.effect(`of ${what} is read within its limits`, () =>
      Effect.gen(function* () {
        const found = yield* Effect.result(read(raw))
        if (expected === "refused") return assert.isTrue(Result.isFailure(found))
        const { files, from, subject, text } = Result.getOrThrow(found)
        if (expected.text !== undefined)
          assert.isTrue(text.startsWith(expected.text), JSON.stringify(text.slice(0, 80)))
        if (expected.from !== undefined) assert.strictEqual(from, expected.from)
        if (expected.subject !== undefined) assert.strictEqual(subject, expected.subject)
        if (expected.files !== undefined)
          assert.deepStrictEqual(
            files.map(({ name }) => name),
            expected.files
          )
        for (const shown of [text, from, subject, ...files.map(({ name }) => name)]) {
          assert.notMatch(shown, UNSEEN)
          assert.isTrue(shown.isWellFormed())
        }
        for (const { name } of files) assert.notMatch(name, /[/\\]|^\./u)
        assert.isAtMost(text.length, MAIL_TEXT_CHARS_MAX)
        assert.isAtMost(files.length, MAIL_FILES_MAX)
      })
    )
})
