import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { readToolManifest } from "#src/shared/image/toolManifest.ts"

const manifest = (llm: object = {}, runtime: object = {}) => ({
  llm: { name: "words.count", description: "Counts.", input_schema: { type: "object" }, ...llm },
  runtime: { exec_path: "words.count", ...runtime }
})

const problemsOf = (value: unknown): ReadonlyArray<string> => {
  const read = readToolManifest("agent", typeof value === "string" ? value : JSON.stringify(value))
  return Result.isFailure(read) ? read.failure : []
}

describe("readToolManifest", () => {
  it("gives a sound manifest with the place of its executable", () => {
    const read = readToolManifest("agent", JSON.stringify(manifest({}, { exec_path: "/choir/tools/agent/bin/run" })))
    assert.strictEqual(Result.isSuccess(read) ? read.success.executable : read.failure.join(), "bin/run")
  })

  it("names every mistake of a file at once, in plain words", () => {
    assert.deepStrictEqual(
      problemsOf({
        llm: { name: "A-b", input_schema: { type: "object", properties: { n: { typ: "number" } } } },
        runtime: { exec_path: "../x", timeout_ms: 0, locks: [{ resource: "bogus", mod: "S" }], effect: "write" },
        runtim: {}
      }).toSorted(),
      [
        `llm.description: it is missing`,
        `llm.input_schema.properties.n.typ: "typ" is not a keyword of JSON Schema; did you mean type?`,
        `llm.name: a tool name is segments of a-z, 0-9 and _, separated by dots`,
        `runtim: "runtim" is not a known key; did you mean runtime?`,
        `runtime.effect: it must be one of "none", "workspace", "external"`,
        `runtime.exec_path: it leaves the folder tools/agent: write <file>, or /choir/tools/agent/<file>`,
        `runtime.locks.0.mod: "mod" is not a known key; did you mean mode?`,
        `runtime.locks.0.mode: it is missing`,
        `runtime.locks.0.resource: "bogus" cannot be locked: no such resource; use workspace, file:<path>, browser_tab, choirtmp or mem:, repo:, net:, ext:`,
        `runtime.timeout_ms: it must be between 1 and 3600000`
      ]
    )
  })

  it.each([
    ["", "the file is empty: it must be JSON"],
    ["[]", "it must be an object"],
    ['{\n  "llm": {\n    "name" "x"\n', "it is not valid JSON (line 3 column 12)"],
    [manifest({ description: "" }), "llm.description: it must not be empty"],
    [manifest({}, { network: "yes" }), "runtime.network: it must be true or false"],
    [manifest({ name: "choir.exec" }), "llm.name: a built-in tool has the name choir.exec: choose another"],
    [
      JSON.stringify(manifest()).replace('{"exec_path"', '{"locks":[],"locks":[],"exec_path"'),
      "runtime.locks: duplicate key: remove one"
    ],
    [
      manifest({}, { locks: Array.from({ length: 65 }, (_, n) => ({ resource: `ext:${n}`, mode: "S" })) }),
      "runtime.locks: a tool may take at most 64 locks"
    ]
  ] as const)("says of %j: %s", (value, problem) => assert.deepStrictEqual(problemsOf(value), [problem]))

  it("quotes nothing that moves a cursor or hides, and no more than a person reads", () => {
    const hidden = problemsOf(manifest({}, { "a\u202eb\u001b[2J": 1 }))
    assert.lengthOf(hidden, 1)
    assert.notMatch(hidden.join(), /[\p{C}]/u)
    const many = problemsOf(manifest({}, Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`k${n}`, n]))))
    assert.isAtMost(many.length, 20)
  })
})
