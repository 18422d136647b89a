import { assert, describe, it } from "@effect/vitest"
import type { Schema } from "effect"
import { schemaProblem, valueProblem } from "#src/shared/image/jsonSchema.ts"

type Json = Readonly<Record<string, Schema.Json>>

/** A few kilobytes whose parts double with each level. */
const doubling = (levels: number): Json => {
  const $defs: Record<string, Schema.Json> = { [`a${levels}`]: { type: "string" } }
  for (let level = 0; level < levels; level++) {
    const next = { type: "object", properties: { x: { $ref: `#/$defs/a${level + 1}` } }, required: ["x"] }
    $defs[`a${level}`] = { anyOf: [next, { ...next, title: "again" }] }
  }
  return { type: "object", properties: { x: { $ref: "#/$defs/a0" } }, $defs }
}

const nested = (levels: number): Schema.Json =>
  Array.from({ length: levels }).reduce<Schema.Json>((inner) => ({ x: inner }), 7)

const itself = (tree: Json): Json => ({
  type: "object",
  properties: { tree: { $ref: "#/$defs/tree" } },
  $defs: { tree }
})
const ref = { $ref: "#/$defs/tree" }

describe("a JSON Schema that a repository or a model wrote", () => {
  it("is refused where it unfolds to more parts than can be checked", () => {
    assert.isUndefined(schemaProblem(doubling(4)))
    assert.include(valueProblem(doubling(4), nested(5)) ?? "", "x")
    for (const levels of [12, 22, 1000]) {
      assert.match(schemaProblem(doubling(levels)) ?? "", /^it has more than \d+ parts/u)
      assert.isDefined(valueProblem(doubling(levels), nested(levels)))
    }
  })

  it("may contain itself", () => {
    const fits: ReadonlyArray<Json> = [
      { type: "object", properties: { left: ref, right: ref } },
      { type: "array", items: ref },
      { anyOf: [{ type: "string" }, { type: "array", items: ref }, { type: "object", additionalProperties: ref }] },
      { anyOf: [{ type: "null" }, { type: "object", properties: { next: ref } }] }
    ]
    for (const tree of fits) assert.isUndefined(schemaProblem(itself(tree)), JSON.stringify(tree))
    assert.isUndefined(valueProblem(itself(fits[1] ?? {}), { tree: [[], [[]]] }))
    assert.isDefined(valueProblem(itself(fits[1] ?? {}), { tree: [[], [7]] }))
  })

  it("is refused where it contains itself in two ways for the same values", () => {
    const child = { type: "object", properties: { x: ref } }
    const doubles: ReadonlyArray<Json> = [
      { anyOf: [child, { ...child, title: "again" }] },
      { oneOf: [child, { properties: { x: ref } }] },
      { ...child, allOf: [child] },
      { type: "object", properties: { x: ref }, patternProperties: { ".": ref } }
    ]
    for (const tree of doubles)
      assert.match(schemaProblem(itself(tree)) ?? "", /contains itself in two alternatives/u, JSON.stringify(tree))
  })
})
