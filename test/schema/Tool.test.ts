import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { effectOf, fromWireName, ToolManifest, ToolName, toWireName, withShownNames } from "#schema/Tool.ts"
import { makeRandom, pick } from "../support/history.ts"

const manifest = (runtime: Partial<(typeof ToolManifest.Encoded)["runtime"]>) =>
  Schema.decodeSync(ToolManifest)({
    llm: { name: "a.b", description: "d", input_schema: {} },
    runtime: { exec_path: "x", ...runtime }
  })

describe("ToolName", () => {
  it("are known to models by what they call in texts that people may read as well", () => {
    assert.strictEqual(
      withShownNames("there is no tool choir.fs.serch: did you mean choir.fs.search? choir.propose.tool asks a person"),
      "there is no tool choir-fs-serch: did you mean choir-fs-search? choir-propose (kind tool) asks a person"
    )
  })

  it("has a wire name without dots that leads back to it, for 10,000 names, and no two share one", () => {
    const random = makeRandom(3)
    const first = ["a", "b", "z"]
    const letters = [...first, "0", "9", "_"]
    const seen = new Map<string, string>()
    for (let round = 0; round < 10_000; round++) {
      const segments = Array.from({ length: 1 + Math.floor(random() * 4) }, () =>
        [pick(random, first), ...Array.from({ length: Math.floor(random() * 5) }, () => pick(random, letters))].join("")
      )
      const name = ToolName.make(segments.join("."))
      const wire = toWireName(name)
      assert.match(wire, /^[a-z][a-z0-9_-]*$/u)
      assert.strictEqual(fromWireName(wire), name)
      assert.strictEqual(seen.get(wire) ?? name, name)
      seen.set(wire, name)
    }
  })

  it("refuses wire names that no tool can have", () => {
    for (const wire of ["", "-", "a-", "-a", "a--b", "A", "a b", "a.b", "choir.exec", "9a", "a".repeat(65), "a\n"])
      assert.isUndefined(fromWireName(wire), wire)
  })
})

describe("ToolManifest", () => {
  it("reads the effect in either spelling, and takes a tool that declares none for external (D3)", () => {
    assert.strictEqual(effectOf(manifest({})), "external")
    assert.strictEqual(effectOf(manifest({ effect: "none" })), "none")
    assert.strictEqual(effectOf(manifest({ side_effect: "none" })), "none")
    assert.strictEqual(effectOf(manifest({ side_effect: "write" })), "workspace")
    assert.strictEqual(effectOf(manifest({ side_effect: "external" })), "external")
    assert.throws(() => manifest({ effect: "none", side_effect: "none" }))
  })

  it("has the defaults of docs/tools.md", () => {
    const { runtime } = manifest({})
    assert.deepStrictEqual(
      [runtime.timeout_ms, runtime.locks, runtime.exposure, runtime.untrusted],
      [15_000, [], "both", false]
    )
  })
})
