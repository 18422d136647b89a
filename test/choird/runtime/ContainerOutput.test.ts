import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { CONTAINER_LINES_MAX, lineCutter, makeOutput, outputQueue } from "#src/choird/runtime/ContainerOutput.ts"

describe("lineCutter", () => {
  it("joins what arrives in parts, and gives up the last line at the end", () => {
    const cutter = lineCutter(100)
    assert.deepStrictEqual(cutter.push(Buffer.from("on")), [])
    assert.deepStrictEqual(cutter.push(Buffer.from("e\r\n\ntw")), ["one", ""])
    assert.deepStrictEqual(cutter.push(Buffer.from("ø").subarray(0, 1)), [])
    assert.deepStrictEqual(cutter.push(Buffer.from("ø").subarray(1)), [])
    assert.deepStrictEqual(cutter.end(), ["twø"])
    assert.deepStrictEqual(cutter.end(), [])
  })

  it("cuts a long line, says how much, and goes on with the next", () => {
    const cutter = lineCutter(4)
    assert.deepStrictEqual(cutter.push(Buffer.from("123")), [])
    assert.deepStrictEqual(cutter.push(Buffer.from("456789")), [])
    assert.deepStrictEqual(cutter.push(Buffer.from("0\nab\n")), ["1234 (6 bytes of this line were cut)", "ab"])
  })
})

describe("makeOutput", () => {
  it.effect("drops lines that nobody reads, and says how many before it goes on", () =>
    Effect.gen(function* () {
      const output = makeOutput(yield* outputQueue)
      const { data } = output.reader()
      data(Buffer.from(Array.from({ length: CONTAINER_LINES_MAX + 5 }, (_, index) => `${index}\n`).join("")))
      const first = yield* Stream.runCollect(Stream.take(output.lines, CONTAINER_LINES_MAX))
      assert.strictEqual(first.at(-1), `${CONTAINER_LINES_MAX - 1}`)
      data(Buffer.from("after\n"))
      output.end()
      assert.deepStrictEqual(yield* Stream.runCollect(output.lines), ["(5 lines of output were dropped)", "after"])
    })
  )
})
