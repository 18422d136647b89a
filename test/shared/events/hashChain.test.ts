import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import type { ChoirEvent } from "#schema/Event.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { chainEvent, chainedText, genesis, hex, nextDigest, DIGEST_BUFFER_BYTES } from "#src/shared/events/hashChain.ts"
import { SESSION } from "../../support/testing/MemoryControlPlane.ts"
import { makeHistory, makeRandom } from "../../support/history.ts"
import { EVENT_BYTES_MAX } from "#src/shared/events/storedPayload.ts"

const { events } = makeHistory(7, 300)
const texts: ReadonlyArray<Buffer> = events.map((event) =>
  Buffer.from(chainedText(event, canonicalJson(event.payload)))
)

/** A digest over stored bytes as they are read; what is no text any more reads as replacement characters. */
const linkBytes = (before: Buffer, rev: number, bytes: Buffer) => nextDigest(before, rev, bytes.toString("utf8"))

/** The digest of a place, computed from an earlier one on as a verifier does. */
const headFrom = (start: number, digests: ReadonlyArray<Buffer>, stored: ReadonlyArray<Buffer>, until: number) => {
  let hash = start === 0 ? genesis(SESSION) : (digests[start - 1] as Buffer)
  for (let index = start; index < until; index++) hash = linkBytes(hash, index + 1, stored[index] as Buffer)
  return hash
}

describe("hashChain", () => {
  const zero = createHash("sha256").update(`choir/1${SESSION}`).digest()
  const first = (covered: unknown) =>
    createHash("sha256")
      .update(Buffer.concat([zero, Buffer.from([0, 0, 0, 0, 0, 0, 0, 1]), Buffer.from(canonicalJson(covered))]))
      .digest("hex")
  const salted = (salt: string, payload: unknown) =>
    createHash("sha256").update(Buffer.from(salt, "hex")).update(canonicalJson(payload)).digest("hex")

  it("is SHA-256 over the digest before, the revision as eight bytes and the canonical event of version 1 (D5)", () => {
    assert.strictEqual(hex(genesis(SESSION)), zero.toString("hex"))
    const { salt: _, ...event } = { ...events[0]!, v: 1 as const }
    assert.strictEqual(hex(chainEvent(genesis(SESSION), event as ChoirEvent).hash), first(event))
  })

  it("covers of an event of version 2 the header and the salted digest of the payload (D52)", () => {
    const event = events[0]!
    const { payload, salt = "", ...header } = event
    assert.lengthOf(salt, 32)
    const payload_digest = salted(salt, payload)
    assert.strictEqual(hex(chainEvent(genesis(SESSION), event).hash), first({ ...header, payload_digest }))
    const reduced = { ...event, payload: {}, salt: "0".repeat(32), payload_digest } as unknown as ChoirEvent
    assert.strictEqual(hex(chainEvent(genesis(SESSION), reduced).hash), first({ ...header, payload_digest }))
  })

  it("is the same for texts of any length, of one to four bytes a character, and holds no more memory than itself", () => {
    const before = genesis(SESSION)
    for (const character of ["x", "ü", "\u20ac", "\u{1f600}"])
      for (const length of [
        0,
        1,
        DIGEST_BUFFER_BYTES / 3 - 40,
        DIGEST_BUFFER_BYTES / 3,
        DIGEST_BUFFER_BYTES,
        EVENT_BYTES_MAX
      ]) {
        const text = character.repeat(length)
        const place = Buffer.from([0, 0x20, 0, 0, 0, 0, 0, 0])
        const expected = createHash("sha256").update(before).update(place).update(text, "utf8").digest("hex")
        assert.strictEqual(hex(nextDigest(before, 2 ** 53, text)), expected)
      }
    const digests = new Set(texts.map((text, index) => linkBytes(before, index + 1, text).buffer))
    const held = [...digests].reduce((sum, { byteLength }) => sum + byteLength, 0)
    assert.isBelow(held, 2 * 32 * texts.length + 2 * Buffer.poolSize)
  })

  it("detects each of 100,000 changed bytes, and every swap, loss and insertion (R12)", () => {
    const digests: Array<Buffer> = []
    for (const event of events) digests.push(chainEvent(digests.at(-1) ?? genesis(SESSION), event).hash)
    const random = makeRandom(12)
    for (let round = 0; round < 100_000; round++) {
      const index = Math.floor(random() * texts.length)
      const text = texts[index] as Buffer
      const at = Math.floor(random() * text.length)
      const before = text[at] as number
      text[at] = before ^ (1 + Math.floor(random() * 255))
      const changed = linkBytes(index === 0 ? genesis(SESSION) : (digests[index - 1] as Buffer), index + 1, text)
      text[at] = before
      if (changed.equals(digests[index] as Buffer)) assert.fail(`byte ${at} of event ${index + 1}`)
    }
    for (let index = 0; index + 2 < texts.length; index++) {
      const swapped = texts.with(index, texts[index + 1] as Buffer).with(index + 1, texts[index] as Buffer)
      const lost = texts.toSpliced(index, 1)
      const inserted = texts.toSpliced(index, 0, texts[index] as Buffer)
      for (const wrong of [swapped, lost, inserted])
        assert.isFalse(headFrom(index, digests, wrong, index + 2).equals(digests[index + 1] as Buffer), `at ${index}`)
    }
  })
})
