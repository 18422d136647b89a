import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { canonicalJson } from "#src/shared/canonicalJson.ts"
import { chain, genesis, hex, link } from "#src/shared/hashChain.ts"
import { SESSION } from "../support/testing/MemoryControlPlane.ts"
import { makeHistory, makeRandom } from "../support/history.ts"

const { events } = makeHistory(7, 300)
const texts: ReadonlyArray<Buffer> = events.map((event) => Buffer.from(canonicalJson(event)))

/** A digest over the stored bytes, which may be no text any more. */
const linkBytes = (before: Buffer, rev: number, bytes: Buffer) => link(before, rev, bytes as unknown as string)

/** The digest of a place, computed from an earlier one on as a verifier does. */
const headFrom = (start: number, digests: ReadonlyArray<Buffer>, stored: ReadonlyArray<Buffer>, until: number) => {
  let hash = start === 0 ? genesis(SESSION) : (digests[start - 1] as Buffer)
  for (let index = start; index < until; index++) hash = linkBytes(hash, index + 1, stored[index] as Buffer)
  return hash
}

describe("hashChain", () => {
  it("is SHA-256 over the digest before, the revision as eight bytes and the canonical text (D5)", () => {
    const event = events[0]
    if (event === undefined) assert.fail("no event")
    const zero = createHash("sha256").update(`choir/1${SESSION}`).digest()
    assert.strictEqual(hex(genesis(SESSION)), zero.toString("hex"))
    const expected = createHash("sha256")
      .update(Buffer.concat([zero, Buffer.from([0, 0, 0, 0, 0, 0, 0, 1]), Buffer.from(canonicalJson(event))]))
      .digest("hex")
    assert.strictEqual(hex(chain(genesis(SESSION), event).hash), expected)
  })

  it("detects each of 100,000 changed bytes, and every swap, loss and insertion (R12)", () => {
    const digests: Array<Buffer> = []
    for (const event of events) digests.push(chain(digests.at(-1) ?? genesis(SESSION), event).hash)
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
