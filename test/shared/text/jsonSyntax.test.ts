import { assert, describe, it } from "@effect/vitest"
import { encodingProblem, syntaxProblem } from "#src/shared/text/jsonSyntax.ts"

describe("a text that is not JSON", () => {
  it.each([
    ['// my agents\n{\n  "a": 1\n}\n', /line 1 column 1/u],
    ['{\n  "a": 1, // one\n  "b": 2\n}\n', /line 2 column 11/u],
    ['{\n  "a": 1,\n}\n', /line 3 column 1/u],
    ['{\n  "a": 1', /line 2 column 9/u],
    ["", /is empty/u],
    ["\u{feff}{}", /byte order mark/u],
    [Buffer.from("\u{feff}{}", "utf16le").toString("utf8"), /is UTF-16/u],
    [Buffer.from("{}", "utf16le").toString("utf8"), /is UTF-16/u],
    ["version https://git-lfs.github.com/spec/v1\noid sha256:1\n", /pointer of Git LFS/u]
  ])("is named with its place or its encoding: %j", (text, problem) => {
    assert.match(syntaxProblem(text), problem)
  })

  it("is not one for its encoding alone when that is UTF-8", () => {
    for (const text of ["{}", "#!/bin/sh", "ünïcode", ""]) assert.isUndefined(encodingProblem(text))
  })
})
