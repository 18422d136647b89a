import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { compactJson } from "#src/choird/proposals/compactJson.ts"

const written = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`

describe("compactJson", () => {
  it("puts what fits on one line, and breaks what does not", () => {
    const long = "x".repeat(90)
    const lines = compactJson(written({ name: "a", list: [1, { b: null }], text: long, none: [] }))
    assert.deepStrictEqual(lines, [
      "{",
      '  "name": "a",',
      '  "list": [1, {"b": null}],',
      `  "text": "${long}",`,
      '  "none": []',
      "}"
    ])
  })

  it.prop("loses nothing of any value", [Schema.Json], ([value]) => {
    const text = written(value)
    assert.strictEqual(written(JSON.parse(compactJson(text)?.join("\n") ?? "")), text)
  })

  it("leaves a text alone that is written in another way, as with a key that is there twice", () => {
    for (const text of ['{"a": 1}', '{\n  "a": 1,\n  "a": 2\n}\n', '{\n  "1": 1,\n  "0": 2\n}', "{", ""])
      assert.isUndefined(compactJson(text), text)
  })
})
