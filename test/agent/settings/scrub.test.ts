import { assert, describe, it } from "@effect/vitest"
import { makeJsonScrub, makeScrub } from "#src/agent/settings/scrub.ts"
import { makeRandom } from "../../support/history.ts"

const hex = (text: string) => Buffer.from(text).toString("hex")
const base64 = (text: string) => Buffer.from(text).toString("base64")

/** The forms of R32, and those that programs print besides. */
const FORMS: Readonly<Record<string, (secret: string) => string>> = {
  "as it is": (secret) => secret,
  "in base64": base64,
  "in base64 for URLs": (secret) => Buffer.from(secret).toString("base64url"),
  "in the middle of base64": (secret) => base64(`user:${secret}`),
  "in hex": hex,
  "in capital hex": (secret) => hex(secret).toUpperCase(),
  "percent-encoded": encodeURIComponent,
  "percent-encoded in small letters": (secret) =>
    encodeURIComponent(secret).replaceAll(/%../gu, (code) => code.toLowerCase()),
  "as a form's field": (secret) => new URLSearchParams({ a: secret }).toString(),
  "JSON-escaped": (secret) => JSON.stringify(secret),
  "JSON-escaped twice": (secret) => JSON.stringify(JSON.stringify({ secret })),
  "JSON-escaped in ASCII": (secret) =>
    JSON.stringify(secret).replaceAll(
      /[\u0080-\uffff]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
    )
}

const SECRETS = ["sk-live_0123456789abcdefXYZ", 'a "quoted"\\ pass/word+é😀', "12345678", "line one\nline two\n"]

describe("makeScrub", () => {
  for (const [form, encode] of Object.entries(FORMS))
    it(`takes out a secret ${form} (R32)`, () => {
      for (const secret of SECRETS) {
        const text = makeScrub(["another secret", secret])(`before ${encode(secret)} after`)
        assert.include(text, "<redacted>", secret)
        assert.match(text, /^before .* after$/su)
        for (const known of [secret, base64(secret), hex(secret), encodeURIComponent(secret)])
          assert.notInclude(text, known.trim(), secret)
      }
    })

  it("leaves at most the sextets of base64 that depend on its neighbours, wherever a secret stands", () => {
    const random = makeRandom(7)
    for (let round = 0; round < 300; round++) {
      const secret = Array.from({ length: 8 + Math.floor(random() * 40) }, () =>
        String.fromCharCode(33 + Math.floor(random() * 94))
      ).join("")
      const [before, after] = ["x".repeat(round % 7), "y".repeat(round % 5)]
      const scrubbed = makeScrub([secret])(base64(`${before}${secret}${after}`))
      const kept = scrubbed.replace("<redacted>", "").replaceAll("=", "").length
      assert.isAtMost(kept, Math.ceil(((before.length + after.length) * 8) / 6) + 4, secret)
    }
  })

  it("takes out the password of credentials, and a key without its last line break", () => {
    assert.strictEqual(makeScrub(["postmaster:s3cret-word"])("login s3cret-word"), "login <redacted>")
    assert.strictEqual(makeScrub(["key-of-a-file\n"])("key-of-a-file"), "<redacted>")
  })

  it("takes out each line of a key file by itself, but for those that all of them have", () => {
    const [first, second] = ["b3BlbnNzaC1rZXktdjEAAAAA", "c2VjcmV0LXBhcnQtb2YtaXQ="]
    const key = `-----BEGIN OPENSSH PRIVATE KEY-----\n${first}\n${second}\n-----END OPENSSH PRIVATE KEY-----\n`
    assert.strictEqual(
      makeScrub([key])(`-----BEGIN OPENSSH PRIVATE KEY-----, ${second}; ${base64(first)}`),
      "-----BEGIN OPENSSH PRIVATE KEY-----, <redacted>; <redacted>"
    )
  })

  it("leaves text alone that holds none, and secrets too short to stand out from it", () => {
    const text = "the quick brown fox 1234 \u0000 é"
    assert.strictEqual(makeScrub(["not there", "a", "qui", ""])(text), text)
    assert.strictEqual(makeScrub([])(text), text)
  })
})

describe("makeJsonScrub", () => {
  it("reaches texts, keys and numbers at every depth", () => {
    const scrub = makeJsonScrub(["12345678", 'a "b" c'])
    assert.deepStrictEqual<unknown>(
      scrub({ a: [{ "k-12345678": 12_345_678, b: "is 12345678" }, [['is a "b" c']]], c: null, d: true, e: 1.5 }),
      { a: [{ "k-<redacted>": "<redacted>", b: "is <redacted>" }, [["is <redacted>"]]], c: null, d: true, e: 1.5 }
    )
  })

  it("gives a value back as it is that holds none", () => {
    const value = { a: ["x", { b: 1 }] }
    assert.strictEqual<unknown>(makeJsonScrub(["12345678"])(value), value)
  })
})
