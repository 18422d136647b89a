import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { repeatedKeys } from "#src/shared/config/repeatedKeys.ts"

const paths = (text: string) => {
  JSON.parse(text)
  return repeatedKeys(text).map((path) => path.join("."))
}

describe("repeatedKeys", () => {
  it("names each key that is there twice, by its path, however it is spelled", () => {
    assert.deepStrictEqual(paths('{"a":{"b":1,"c":[{"d":1},{"d":2,"d":3}],"b":"x"},"e":{"b":1},"a":{}}'), [
      "a.c.1.d",
      "a.b",
      "a"
    ])
    assert.deepStrictEqual(paths('{"a":1,"\\u0061":2}'), ["a"])
  })

  it("takes no value for a key, whatever signs are in it", () => {
    for (const text of ['{"a":"a","b":["a","a",{},[]],"c":"{\\"a\\":1,\\"a\\":2}"}', '"a"', "[]", "1", '["a","a"]'])
      assert.deepStrictEqual(paths(text), [])
  })

  it.prop("finds none in what JSON.stringify writes", [Schema.Json], ([value]) => {
    assert.deepStrictEqual(repeatedKeys(JSON.stringify(value)), [])
  })
})
