import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { EVENT_BYTES_MAX, packPayload, PAYLOAD_DICTIONARY, unpackPayload } from "#src/shared/events/storedPayload.ts"
import { makeHistory, makeRandom, pick } from "../../support/history.ts"

const PIECES = ["a", "word ", "é 漢字 🙂", '\\"', "0123456789abcdef", "\\n", '{"path":"', "x".repeat(300), '"},']

/** A payload's text of about this many characters, of pieces that come again and pieces that do not. */
const textOf = (random: () => number, length: number): string => {
  let text = ""
  while (text.length < length)
    text += random() < 0.5 ? pick(random, PIECES) : Math.floor(random() * 2 ** 40).toString(36)
  return JSON.stringify({ text })
}

const roundTrip = (text: string) => Result.getOrThrow(unpackPayload(packPayload(text)))

describe("a stored payload", () => {
  it("gives back each text, whatever its length and its characters", () => {
    const random = makeRandom(9)
    for (let length = 0; length < 400; length++) {
      const text = textOf(random, length)
      assert.strictEqual(roundTrip(text), text)
    }
    for (const length of [20_000, 64 * 1024, 70_000, 200_000, 400_000]) {
      for (const text of [
        textOf(random, length),
        JSON.stringify("x".repeat(length)),
        `{"a":"${"🙂".repeat(length / 4)}"}`
      ]) {
        const kept = text.startsWith("{") ? text : `{"t":${text}}`
        assert.strictEqual(roundTrip(kept), kept)
      }
    }
  })

  it("is never larger than the text, and far smaller than one that repeats itself or the dictionary", () => {
    const random = makeRandom(3)
    for (const { payload } of makeHistory(4, 300).events) {
      const text = canonicalJson(payload)
      const packed = packPayload(text)
      assert.isAtMost(packed.length, Buffer.byteLength(text))
      assert.strictEqual(Result.getOrThrow(unpackPayload(packed)), text)
    }
    assert.isBelow(packPayload(`{"t":"${"0123456789abcde\\n".repeat(64)}"}`).length, 60)
    const noise = `{"t":"${Array.from({ length: 3000 }, () => Math.floor(random() * 36).toString(36)).join("")}"}`
    assert.isAtMost(packPayload(noise).length, noise.length)
    const committed =
      '{"call_id":"0123456789abcdef-1-2-0","locks":[{"mode":"S","resource":"file:/workspace/data/1.txt"}]}'
    assert.isBelow(packPayload(committed).length, 60)
  })

  it("answers damaged bytes with a reason, and never with more than an event may have", () => {
    const random = makeRandom(5)
    const packed = packPayload(textOf(random, 5000))
    let refused = 0
    for (let round = 0; round < 20_000; round++) {
      const bytes = Buffer.from(packed.subarray(0, 1 + Math.floor(random() * packed.length)))
      for (let change = 0; change < 3; change++) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256)
      const read = unpackPayload(bytes)
      if (Result.isFailure(read)) refused += 1
      else assert.isAtMost(Buffer.byteLength(read.success), 3 * EVENT_BYTES_MAX)
    }
    assert.isAbove(refused, 10_000)
    for (const bytes of [Buffer.of(), Buffer.of(1), Buffer.of(2, 0, 0, 0, 1, 0), Buffer.of(1, 255, 255, 255, 255, 0)])
      assert.isTrue(Result.isFailure(unpackPayload(bytes)))
  })

  it("is read with the dictionary that it was written with", () => {
    assert.strictEqual(
      sha256(PAYLOAD_DICTIONARY),
      "5bd6f1ed6f6997ed666334a2a6baf6723f1ef858886792a3f9c53e3f44ae8c9e",
      "stored payloads refer to this dictionary: another one takes another first byte"
    )
    const written = "7b2263616c6c5f6964223a22303132333435363738396162636465662d312d322d30222c226c6f636b73223a5b5d7d"
    assert.strictEqual(
      Result.getOrThrow(unpackPayload(Buffer.from(written, "hex"))),
      '{"call_id":"0123456789abcdef-1-2-0","locks":[]}'
    )
  })
})
