import { assert, describe, it } from "@effect/vitest"
import { nearestWord } from "#src/shared/text/nearestWord.ts"

describe("nearestWord", () => {
  it.each([
    ["runtim", ["llm", "runtime"], "runtime"],
    ["tpye", ["title", "type"], "type"],
    ["Required", ["required"], "required"],
    ["mod", ["mode", "resource"], "mode"],
    ["sudo", ["effect", "network"], undefined],
    ["x", ["if"], undefined],
    ["", ["if"], undefined]
  ] as const)("takes %j for one of %j: %s", (written, words, meant) =>
    assert.strictEqual(nearestWord(written, words), meant)
  )
})
