import { assert, describe, it } from "@effect/vitest"
import { CycleReader, EMBEDDED_REQUEST_BYTES_MAX } from "#src/choird/database/CycleReader.ts"

const message = (type: string, body: Uint8Array | string) => {
  const content = Buffer.from(body)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(4 + content.length)
  return Buffer.concat([Buffer.from(type), length, content])
}
const startup = (code: number) => {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt32BE(8)
  bytes.writeUInt32BE(code, 4)
  return bytes
}
const STARTUP = startup(196_608)
const CYCLE = Buffer.concat([message("P", "statement"), message("B", "values"), message("E", ""), message("S", "")])

const started = () => {
  const reader = new CycleReader()
  reader.push(STARTUP)
  return reader
}

describe("CycleReader", () => {
  it("gives the startup packet, then each batch up to its Sync, whatever the pieces are", () => {
    const stream = Buffer.concat([STARTUP, CYCLE, message("Q", "SELECT 1\0"), CYCLE])
    for (const size of [1, 3, 7, 64, stream.length]) {
      const reader = new CycleReader()
      const requests = []
      for (let at = 0; at < stream.length; at += size) requests.push(...reader.push(stream.subarray(at, at + size)))
      assert.deepStrictEqual(
        requests.map((request) => (request._tag === "Cycle" ? Buffer.from(request.bytes) : request._tag)),
        [STARTUP, CYCLE, message("Q", "SELECT 1\0"), CYCLE]
      )
    }
  })

  it("keeps an unfinished batch back", () => {
    const reader = started()
    assert.deepStrictEqual(reader.push(CYCLE.subarray(0, -1)), [])
    assert.lengthOf(reader.push(CYCLE.subarray(-1)), 1)
  })

  it("takes Terminate and a cancel request for a goodbye", () => {
    assert.deepStrictEqual(started().push(message("X", "")), [{ _tag: "Goodbye" }])
    assert.deepStrictEqual(new CycleReader().push(startup(80_877_102)), [{ _tag: "Goodbye" }])
  })

  it("refuses a length before its bytes arrive", () => {
    const header = Buffer.from("P\0\0\0\0")
    header.writeUInt32BE(EMBEDDED_REQUEST_BYTES_MAX, 1)
    assert.deepStrictEqual(started().push(header), [{ _tag: "TooLarge" }])
    header.writeUInt32BE(0xffffffff, 1)
    assert.deepStrictEqual(started().push(header), [{ _tag: "TooLarge" }])
    header.writeUInt32BE(3, 1)
    assert.deepStrictEqual(started().push(header), [{ _tag: "TooLarge" }])
  })

  it("refuses a batch whose messages are too large together", () => {
    const reader = started()
    const half = message("P", Buffer.alloc(EMBEDDED_REQUEST_BYTES_MAX / 2))
    assert.deepStrictEqual(reader.push(half), [])
    assert.deepStrictEqual(reader.push(half), [{ _tag: "TooLarge" }])
  })
})
