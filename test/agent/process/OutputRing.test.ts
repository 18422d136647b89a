import { assert, describe, it } from "@effect/vitest"
import { OutputRing } from "#src/agent/process/OutputRing.ts"

const captured = (bytes_max: number, chunks: ReadonlyArray<string>) => {
  const ring = new OutputRing(bytes_max)
  for (const chunk of chunks) ring.push(Buffer.from(chunk))
  return ring.captured()
}

describe("OutputRing", () => {
  it("keeps everything up to its limit, however it is cut", () => {
    for (const chunks of [["0123456789"], "0123456789".split(""), ["012", "3456789"], ["01234567", "8", "9"]]) {
      assert.deepStrictEqual(captured(10, chunks), { text: "0123456789", dropped: 0 })
    }
    assert.deepStrictEqual(captured(10, []), { text: "", dropped: 0 })
  })

  it("R48 keeps the head and the tail and says how much was dropped between them", () => {
    const text = Array.from({ length: 1000 }, (_, index) => String.fromCodePoint(97 + (index % 26))).join("")
    for (const size of [1, 3, 4, 7, 999, 1000]) {
      const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
        text.slice(at * size, at * size + size)
      )
      assert.deepStrictEqual(captured(8, chunks), {
        text: `${text.slice(0, 4)}\n[992 bytes left out]\n${text.slice(-4)}`,
        dropped: 992
      })
    }
  })

  it("joins a character that arrives in two chunks", () => {
    const ring = new OutputRing(100)
    for (const byte of Buffer.from("héé")) ring.push(Buffer.from([byte]))
    assert.strictEqual(ring.captured().text, "héé")
  })
})
