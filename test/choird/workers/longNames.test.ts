import { assert, describe, it } from "@effect/vitest"
import { longNamesIn } from "#src/choird/workers/longNames.ts"

const long = (end: string) => `${"x".repeat(900)}${end}`
const treeOf = (name: string) => [
  { role: "button", ref: "e1", name: long("other") },
  {
    role: "generic",
    ref: "e2",
    children: ["words", { role: "img", ref: "e3", name }, { role: "text", text: long("t") }]
  }
]

describe("longNamesIn", () => {
  it("tells elements apart by the names in them of more than 900 characters, to their end", () => {
    const one = longNamesIn(treeOf(long("1")), "e2")
    assert.deepStrictEqual(longNamesIn(treeOf(long("1")), "e2"), one)
    assert.notStrictEqual(longNamesIn(treeOf(long("2")), "e2")?.digest, one?.digest)
    assert.strictEqual(one?.first, "x".repeat(200))
    // A name that the tree shows is compared there.
    assert.deepStrictEqual(longNamesIn(treeOf("short"), "e2"), longNamesIn(treeOf("other"), "e2"))
    assert.strictEqual(longNamesIn(treeOf("short"), "e2")?.first, "")
    assert.isUndefined(longNamesIn(treeOf("short"), "e9"))
  })

  it("takes whatever it is given, and a tree of any depth", () => {
    for (const tree of [undefined, null, 5, "e1", [null, [{ ref: 5 }]], { children: { ref: "e2" } }])
      assert.isUndefined(longNamesIn(tree, "e1"), JSON.stringify(tree))
    let deep: object = { role: "button", ref: "e1", name: long("deep") }
    for (let depth = 0; depth < 100_000; depth++) deep = { role: "generic", children: [deep] }
    assert.notStrictEqual(longNamesIn(deep, "e1")?.first, "")
  })
})
