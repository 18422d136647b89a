import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { LONGEST } from "./LongestFirst.ts"

describe("the files that begin first", () => {
  it("are there", () => {
    assert.deepStrictEqual(
      LONGEST.filter((path) => !existsSync(join(import.meta.dirname, "../..", path))),
      []
    )
  })
})
