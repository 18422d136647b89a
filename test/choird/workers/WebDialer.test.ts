import { assert, describe, it } from "@effect/vitest"
import { triedAddresses } from "#src/choird/workers/WebDialer.ts"

describe("the addresses of a name that are tried", () => {
  it("are of both families by turns, IPv4 first, where the name has both", () => {
    const v4 = ["1.0.0.1", "1.0.0.2", "1.0.0.3", "1.0.0.4"]
    assert.deepStrictEqual(triedAddresses([...v4, "2a00::1"]), ["1.0.0.1", "2a00::1", "1.0.0.2"])
    assert.deepStrictEqual(triedAddresses(["1.0.0.1", "2a00::1", "2a00::2"]), ["1.0.0.1", "2a00::1", "2a00::2"])
  })

  it("are the first three of one family, where the name has no other", () => {
    assert.deepStrictEqual(triedAddresses(["1.0.0.1", "1.0.0.2", "1.0.0.3", "1.0.0.4"]), [
      "1.0.0.1",
      "1.0.0.2",
      "1.0.0.3"
    ])
    assert.deepStrictEqual(triedAddresses(["2a00::1"]), ["2a00::1"])
    assert.deepStrictEqual(triedAddresses([]), [])
  })
})
