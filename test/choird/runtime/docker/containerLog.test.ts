import { assert, describe, it } from "@effect/vitest"
import { frameCutter } from "#src/choird/runtime/docker/containerLog.ts"

const frame = (stream: number, text: string) => {
  const header = Buffer.alloc(8)
  header[0] = stream
  header.writeUInt32BE(Buffer.byteLength(text), 4)
  return Buffer.concat([header, Buffer.from(text)])
}

const AT = "2026-11-22T09:00:00.000000000Z"

describe("frameCutter", () => {
  it("finds the same frames however the stream is cut", () => {
    const whole = Buffer.concat([frame(1, `${AT} a b\n`), frame(2, `${AT} \n`), frame(1, `${AT} c`)])
    const expected = [
      [false, AT, "a b\n"],
      [true, AT, "\n"],
      [false, AT, "c"]
    ]
    for (let size = 1; size <= whole.length; size++) {
      const cut = frameCutter()
      const found: Array<unknown> = []
      for (let at = 0; at < whole.length; at += size)
        for (const { at: time, bytes, stderr } of cut(whole.subarray(at, at + size)))
          found.push([stderr, time, bytes.toString()])
      assert.deepStrictEqual(found, expected, `pieces of ${size}`)
    }
  })

  it("does not believe in a frame that no log has", () => {
    const header = Buffer.from([1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff])
    assert.throws(() => frameCutter()(header), /4294967295 bytes/u)
  })
})
