import { assert, describe, it } from "@effect/vitest"
import { BUILT_IN_FREE, BUILT_IN_TOOLS } from "#src/shared/image/builtInTools.ts"
import { freeArguments, grantProblems, USUAL_FREE, withoutGrantWords } from "#src/shared/image/freeArguments.ts"

const TEXT = { type: "string" }
const schema = (properties: object, more: object = {}) => ({ type: "object", properties, ...more })

describe("the free arguments of a tool", () => {
  it("are those that its manifest declares, and the usual ones where it declares nothing", () => {
    assert.deepStrictEqual(freeArguments(schema({ text: TEXT, note: TEXT })), USUAL_FREE)
    assert.deepStrictEqual(freeArguments(schema({ text: TEXT, note: { ...TEXT, "x-grant": "any" } })), ["note"])
    assert.deepStrictEqual(freeArguments(schema({ text: { ...TEXT, "x-grant": "fixed" } })), [])
  })

  it("are names of Choir's own tools in its own table", () => {
    for (const tool of BUILT_IN_FREE.keys()) assert.include(BUILT_IN_TOOLS, tool)
  })

  it("cannot be what says whom, what or where a call reaches", () => {
    for (const name of [
      "to",
      "recipient_name",
      "emailTo",
      "output_path",
      "url",
      "host",
      "amount",
      "iban",
      "due_date",
      "sql_query",
      "command"
    ])
      assert.lengthOf(grantProblems(schema({ [name]: { ...TEXT, "x-grant": "any" } })), 1, name)
    for (const name of ["text", "caption", "notes", "summary"])
      assert.lengthOf(grantProblems(schema({ [name]: { ...TEXT, "x-grant": "any" } })), 0, name)
  })

  it("are texts of the input itself, with a value that Choir knows", () => {
    const problems = (input_schema: object) => grantProblems({ ...input_schema }).map(({ path }) => path)
    assert.deepStrictEqual(problems(schema({ a: { type: "number", "x-grant": "any" } })), ["properties.a.x-grant"])
    assert.deepStrictEqual(problems(schema({ a: { "x-grant": "any" } })), ["properties.a.x-grant"])
    assert.deepStrictEqual(problems(schema({ a: { ...TEXT, "x-grant": true } })), ["properties.a.x-grant"])
    assert.deepStrictEqual(problems(schema({ a: { type: "array", items: { ...TEXT, "x-grant": "any" } } })), [
      "properties.a.items.x-grant"
    ])
    assert.deepStrictEqual(problems(schema({}, { "x-grant": "any" })), ["x-grant"])
    assert.deepStrictEqual(problems(schema({ a: { type: "number", "x-grant": "fixed" } })), [])
  })

  it("are nothing that a model is shown", () => {
    const shown = schema({ a: { ...TEXT, description: "words" }, b: true })
    assert.deepStrictEqual(
      withoutGrantWords(schema({ a: { ...TEXT, description: "words", "x-grant": "any" }, b: true })),
      shown
    )
  })
})
