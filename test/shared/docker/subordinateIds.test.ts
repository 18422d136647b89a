import { assert, describe, it } from "@effect/vitest"
import { rangeFrom } from "#src/shared/docker/subordinateIds.ts"

describe("rangeFrom", () => {
  it("counts the ids of the range that begins where an engine's does, and of no other", () => {
    const file = "ada:100000:65536\n\ndockremap:165536:70000\n# a comment\n"
    assert.deepStrictEqual([rangeFrom(file, 165_536), rangeFrom(file, 100_000)], [70_000, 65_536])
    assert.deepStrictEqual([rangeFrom(file, 165_537), rangeFrom(file, 0), rangeFrom("", 0)], [0, 0, 0])
  })

  it("believes the smaller of two ranges, and none without a number", () => {
    assert.strictEqual(rangeFrom("a:165536:65536\nb:165536:1000\n", 165_536), 1000)
    assert.deepStrictEqual([rangeFrom("a:165536:many\n", 165_536), rangeFrom("a:165536\n", 165_536)], [0, 0])
  })
})
