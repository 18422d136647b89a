import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { TestClock } from "effect/testing"
import { CONTAINER_LINES_MAX, lineCutter, makeOutput, OUTPUT_BYTES_BURST } from "#src/choird/runtime/ContainerOutput.ts"

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
      const output = yield* makeOutput
      const { data } = output.reader()
      data(Buffer.from(Array.from({ length: CONTAINER_LINES_MAX + 5 }, (_, index) => `${index}\n`).join("")))
      const first = yield* Stream.runCollect(Stream.take(output.lines, CONTAINER_LINES_MAX))
      assert.strictEqual(first.at(-1), `${CONTAINER_LINES_MAX - 1}`)
      data(Buffer.from("after\n"))
      output.end()
      assert.deepStrictEqual(yield* Stream.runCollect(output.lines), ["(5 lines of output were dropped)", "after"])
    })
  )

  it.effect("looks at no more than its rate, says of each stream what it dropped, and looks again later", () =>
    Effect.gen(function* () {
      const output = yield* makeOutput
      const { data, end } = output.reader()
      const line = Buffer.from(`${"x".repeat(OUTPUT_BYTES_BURST / 4 - 257)}\n`)
      for (let n = 0; n < 4; n++) assert.isTrue(data(line))
      assert.isFalse(data(line))
      yield* TestClock.adjust("10 seconds")
      assert.isTrue(data(Buffer.from("after\n")))
      for (let n = 0; n < 4; n++) data(line)
      assert.isFalse(data(Buffer.from(`${"y".repeat(OUTPUT_BYTES_BURST)}\nthe last word\n`)))
      const other = output.reader()
      assert.isTrue(other.data(Buffer.from("of the other stream")))
      end()
      other.end()
      output.end()
      const lines = yield* Stream.runCollect(output.lines)
      const told = (bytes: number) => `(${bytes} bytes of output were dropped: more than 256 KiB a second)`
      assert.deepStrictEqual(
        lines.filter((each) => !each.startsWith("x")),
        [
          told(line.length),
          "after",
          told(line.length + OUTPUT_BYTES_BURST + 15),
          "the last word",
          "of the other stream"
        ]
      )
    })
  )

  it.effect("takes an empty line for as much as a long one", () =>
    Effect.gen(function* () {
      const { data } = (yield* makeOutput).reader()
      assert.isFalse(data(Buffer.alloc(64 * 1024, "\n")))
      assert.isTrue(data(Buffer.alloc(64 * 1024, "x")))
    })
  )
})
