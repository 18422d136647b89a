import { assert, describe, it } from "@effect/vitest"
import { personName } from "#src/choirctl/home/personName.ts"

describe("the DM of the person who sets up a home", () => {
  it("has their first name as far as a name of config.json can hold it, else phone", () => {
    for (const [told, name] of [
      ["Ada", "ada"],
      ["Jürgen  Müller", "jurgen-muller"],
      ["  -Ann-Lee 🌸 ", "ann-lee"],
      ["x".repeat(80), "x".repeat(40)],
      [`${"x".repeat(39)} y`, "x".repeat(39)],
      // No letter that a name can begin with.
      ["Анна", "phone"],
      ["7of9", "phone"],
      ["", "phone"],
      [undefined, "phone"],
      // The names of the DM and the gateways that a new home has.
      ["Terminal", "phone"],
      ["telegram", "phone"]
    ] as const)
      assert.strictEqual(personName(told), name, told)
  })
})
