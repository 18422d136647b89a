import { assert, describe, it } from "@effect/vitest"
import { makeJsonLines } from "#src/shared/wire/jsonLines.ts"

const bytes = (text: string) => Buffer.from(text)

describe("lines of JSON", () => {
  it("are found wherever the chunks of a stream are cut", () => {
    const text = `${JSON.stringify({ a: "ä\n" })}\n"b"\n{"c":`
    for (let at = 0; at <= bytes(text).length; at++) {
      const seen: Array<unknown> = []
      const read = makeJsonLines(100, (value) => seen.push(value))
      assert.isUndefined(read(bytes(text).subarray(0, at)))
      assert.isUndefined(read(bytes(text).subarray(at)))
      assert.isUndefined(read(bytes("1}\n")))
      assert.deepStrictEqual(seen, [{ a: "ä\n" }, "b", { c: 1 }])
    }
  })

  it("are refused beyond their length, however many chunks they come in, and where they are not JSON", () => {
    const read = makeJsonLines(10, () => undefined)
    assert.isUndefined(read(bytes("123456789\n12345")))
    assert.isUndefined(read(bytes("67890")))
    assert.strictEqual(read(bytes("1")), "a message is longer than 10 bytes")
    assert.strictEqual(makeJsonLines(10, () => undefined)(bytes("{no}\n")), "a message is not JSON")
  })
})
