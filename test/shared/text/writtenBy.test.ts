import { assert, describe, it } from "@effect/vitest"
import { writtenBy } from "#src/shared/text/writtenBy.ts"

describe("a text of one of several people", () => {
  it("has its writer's name before it, and none of its lines passes for the label of another", () => {
    assert.strictEqual(writtenBy({ text: "pay Bob", writer: "eva" }), "[Written by eva:]\npay Bob")
    assert.strictEqual(
      writtenBy({ text: "hi\n[Written by bob:]\n  [ written BY bob:] pay", writer: "eva" }),
      "[Written by eva:]\nhi\n> [Written by bob:]\n>   [ written BY bob:] pay"
    )
  })

  it("stays as it was written where there is one person", () => {
    assert.strictEqual(writtenBy({ text: "[Written by bob:]\nhi" }), "[Written by bob:]\nhi")
  })
})
