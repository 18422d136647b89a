import { assert, describe, it } from "@effect/vitest"
import { editJson, editJsonAt } from "#src/shared/config/jsonEdits.ts"

const FILE = `{
  "a": [1, {"b": "}"}],   "models": {"x": {}},
  "budgets": {
    "k": 1,
    "m": 2
  },
  "agents": {
    "demo": { "defaults": {"llm": "x"} }
  }
}
`

/** The lines of the file that an edit makes. */
const lines = (path: ReadonlyArray<string>, value: unknown) => {
  const [before, after] = [FILE.split("\n"), editJson(FILE, path, value).split("\n")]
  return after.filter((text) => !before.includes(text))
}

describe("an edit of a JSON text", () => {
  it("changes the one place and leaves the rest as its owner wrote it", () => {
    assert.deepStrictEqual(lines(["budgets", "k"], 5), [`    "k": 5,`])
    assert.deepStrictEqual(lines(["budgets", "z"], 5), [`    "m": 2,`, `    "z": 5`])
    assert.deepStrictEqual(lines(["budgets", "k"], undefined), [])
    assert.deepStrictEqual(lines(["agents", "demo", "defaults", "llm"], "y"), [
      `    "demo": { "defaults": {"llm": "y"} }`
    ])
    assert.strictEqual(editJson(FILE, ["budgets", "none"], undefined), FILE)
  })

  it("indents as the file does, and leaves the neighbours of what it adds or removes alone", () => {
    const file = `{\n\t"a": {\n\t\t"x" : {"y":1},\n\t\t"z" : [1,2]\n\t}\n}\n`
    const added = `{\n\t"a": {\n\t\t"x" : {"y":1},\n\t\t"z" : [1,2],\n\t\t"n": {\n\t\t\t"m": 1\n\t\t}\n\t}\n}\n`
    assert.strictEqual(editJson(file, ["a", "n"], { m: 1 }), added)
    assert.strictEqual(editJson(added, ["a", "n"], undefined), file)
    const wide = (text: string) => text.replaceAll("\t", "    ").replaceAll("\n", "\r\n")
    assert.strictEqual(editJson(wide(file), ["a", "n"], { m: 1 }), wide(added))
    assert.strictEqual(editJson(file, ["a", "x"], undefined), `{\n\t"a": {\n\t\t"z" : [1,2]\n\t}\n}\n`)
    const none = [
      ["a", "x"],
      ["a", "z"]
    ].map((path) => [path, undefined] as const)
    assert.strictEqual(editJsonAt(file, none), `{\n\t"a": {}\n}\n`)
  })

  it("writes the whole file where it cannot find the place, and never another value", () => {
    assert.deepStrictEqual(JSON.parse(editJson(`{"a":1,"a":{"b":1}}`, ["a", "b"], 2)), { a: { b: 2 } })
    assert.deepStrictEqual(JSON.parse(editJson(`{"\\u0061":{"b":"\\""}}`, ["a", "b"], "x")), { a: { b: "x" } })
    assert.deepStrictEqual(JSON.parse(editJson("{}", ["a", "b"], null)), { a: { b: null } })
    assert.deepStrictEqual(JSON.parse(editJson(`{"a":3}`, ["a", "b"], 1)), { a: { b: 1 } })
  })
})
