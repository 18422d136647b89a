import { assert, it } from "@effect/vitest"
import { rowId } from "#src/choird/database/rowId.ts"

it("reads the ids that a bigint column can hold, and nothing else", () => {
  assert.strictEqual(rowId("7"), 7n)
  assert.strictEqual(rowId("9223372036854775807"), 9_223_372_036_854_775_807n)
  for (const text of ["", "-1", "1.5", "1e3", " 1", "9223372036854775808", "99999999999999999999", "0x1"])
    assert.isUndefined(rowId(text), text)
})
