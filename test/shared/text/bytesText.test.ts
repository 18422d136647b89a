import { assert, describe, it } from "@effect/vitest"
import { bytesText } from "#src/shared/text/bytesText.ts"

describe("bytesText", () => {
  it("gives an amount of bytes in the largest unit that it fills", () => {
    for (const [bytes, text] of [
      [0, "0 bytes"],
      [300, "300 bytes"],
      [1024, "1.0 KiB"],
      [40_000, "39.1 KiB"],
      [1_258_291, "1.2 MiB"],
      [25 * 1024 ** 3, "25.0 GiB"],
      [3 * 1024 ** 5, "3072.0 TiB"]
    ] as const)
      assert.strictEqual(bytesText(bytes), text)
  })
})
