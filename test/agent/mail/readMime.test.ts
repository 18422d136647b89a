import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { MAIL_FILES_MAX, MAIL_TEXT_CHARS_MAX, readMime } from "#src/agent/mail/readMime.ts"
import { HOSTILE_MAILS } from "../../support/hostileMails.ts"

const UNSEEN = /[^\P{C}\n\t]/u

describe("a hostile mail", () => {
  it("has 50 kinds here", () => assert.isAtLeast(HOSTILE_MAILS.length, 50))

  for (const { raw, read, what } of HOSTILE_MAILS)
    it.effect(`of ${what} is read within its limits`, () =>
      Effect.gen(function* () {
        const found = yield* Effect.result(readMime(Buffer.from(raw)))
        if (read === "refused") return assert.isTrue(Result.isFailure(found))
        const { files, from, subject, text } = Result.getOrThrow(found)
        if (read.text !== undefined) assert.isTrue(text.startsWith(read.text), JSON.stringify(text.slice(0, 80)))
        if (read.from !== undefined) assert.strictEqual(from, read.from)
        if (read.subject !== undefined) assert.strictEqual(subject, read.subject)
        if (read.files !== undefined)
          assert.deepStrictEqual(
            files.map(({ name }) => name),
            read.files
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
