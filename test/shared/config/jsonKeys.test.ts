import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { keyLines, repeatedKeys } from "#src/shared/config/jsonKeys.ts"

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

  it("reads a text that is nested as deep as it is long", () => {
    assert.deepStrictEqual(repeatedKeys(`${"[".repeat(200_000)}${"]".repeat(200_000)}`), [])
  })
})

describe("keyLines", () => {
  it("gives the line of a key, of an array's element, and of the nearest place above one that is not there", () => {
    const lineOf = keyLines(`{\n  "a": "\\n{[,",\n  "b": [1,\n    {"c\\"":\n 2}],\n\n  "d": {}\n}\n`)
    const lines = [[], ["a"], ["b"], ["b", "0"], ["b", "1"], ["b", "1", 'c"'], ["d"], ["d", "e", "f"], ["x"]].map(
      lineOf
    )
    assert.deepStrictEqual(lines, [1, 2, 3, 3, 3, 4, 7, 7, 1])
  })
})
