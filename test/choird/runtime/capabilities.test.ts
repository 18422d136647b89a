import { assert, describe, it } from "@effect/vitest"
import { capabilities, toolNetworkFact } from "#src/choird/runtime/capabilities.ts"

const RUNTIMES = ["docker", "sandbox", "process"] as const

describe("what a runtime can do", () => {
  it("does not cut a tool off from the network where the program for that is absent, whatever its manifest says", () => {
    for (const runtime of RUNTIMES) {
      assert.isTrue(capabilities(runtime, true).cutsNetwork)
      assert.isFalse(capabilities(runtime, false).cutsNetwork)
      assert.strictEqual(toolNetworkFact(runtime, false, "none", true), "network: no, it is cut off here")
      for (const [asks, isCut] of [
        [false, false],
        [true, true]
      ] as const)
        assert.match(toolNetworkFact(runtime, asks, "public", isCut), /^network: yes, /u)
    }
    assert.include(toolNetworkFact("docker", true, "public", true), "runtime.network public")
  })
})
