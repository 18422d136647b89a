import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Result } from "effect"
import { seal, unseal } from "#src/choirctl/backup/sealedSecrets.ts"

const SECRETS = Redacted.make('{"key":"s3cr3t"}')
const passphrase = Redacted.make("correct horse battery")
const bound = { members: [{ name: "config.json", sha256: "a" }] }

/** Cheap, so that many tries take no time. */
const sealed = seal(SECRETS, passphrase, bound, { n: 2 ** 14, r: 8, p: 1 })

const problem = (text: string, phrase: Redacted.Redacted = passphrase, beside: unknown = bound) =>
  Effect.map(Effect.result(unseal(text, phrase, beside)), (found) =>
    Result.isFailure(found) ? found.failure.message : "opened"
  )

describe("sealed secrets", () => {
  it.live("open with their passphrase, show nothing without it, and differ each time they are sealed", () =>
    Effect.gen(function* () {
      const text = yield* sealed
      assert.notInclude(text, "s3cr3t")
      assert.strictEqual(Redacted.value(yield* unseal(text, passphrase, bound)), Redacted.value(SECRETS))
      assert.notStrictEqual(text, yield* sealed)
      const costly = yield* seal(SECRETS, passphrase, bound)
      assert.deepInclude(JSON.parse(costly), { n: 2 ** 17, r: 8, p: 1 })
      assert.strictEqual(Redacted.value(yield* unseal(costly, passphrase, bound)), Redacted.value(SECRETS))
    })
  )

  it.live(
    "stay closed for another passphrase, a changed byte, and beside anything other than what they were sealed with",
    () =>
      Effect.gen(function* () {
        const text = yield* sealed
        const wrong = "the passphrase is wrong"
        const closed = "the passphrase is right, but the file was changed after it was made"
        assert.strictEqual(yield* problem(text, Redacted.make("correct horse batterz")), wrong)
        const document = JSON.parse(text)
        for (const key of ["sealed", "tag", "nonce", "salt", "check"]) {
          const bytes = Buffer.from(document[key], "base64")
          bytes[0] = (bytes[0] ?? 0) ^ 1
          assert.strictEqual(
            yield* problem(JSON.stringify({ ...document, [key]: bytes.toString("base64") })),
            key === "salt" || key === "check" ? wrong : closed,
            key
          )
        }
        assert.strictEqual(
          yield* problem(text, passphrase, { members: [{ name: "config.json", sha256: "b" }] }),
          closed
        )
      })
  )

  it.live("with unknown or costly parameters are refused before any work", () =>
    Effect.gen(function* () {
      const document = JSON.parse(yield* sealed)
      const unknown = "its seal has an unknown format"
      for (const change of [{ kdf: "md5" }, { n: 2 ** 30 }, { n: 3 }, { p: 1000 }, { tag: "" }, { more: 1 }])
        assert.strictEqual(yield* problem(JSON.stringify({ ...document, ...change })), unknown, JSON.stringify(change))
      assert.strictEqual(yield* problem("{"), unknown)
      assert.include(yield* problem(JSON.stringify({ ...document, n: 2 ** 19, r: 16 })), "too much memory")
    })
  )
})
