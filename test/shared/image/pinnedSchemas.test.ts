import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { JsonSchemaObject } from "#schema/SkillContract.ts"
import {
  additiveProblem,
  PINNED_SCHEMA_BYTES_MAX,
  readPinnedSchema,
  versionProblems
} from "#src/shared/image/pinnedSchemas.ts"

const object = (properties: object, more: object = {}): JsonSchemaObject =>
  ({ type: "object", properties, ...more }) as JsonSchemaObject
const TEXT = { type: "string" }
const OLD = object({ a: TEXT, b: object({ c: TEXT }) }, { required: ["a"] })

/** A change of a schema, and why a minor version may not make it; nothing where it may. */
const CHANGES: ReadonlyArray<readonly [string, JsonSchemaObject, RegExp | undefined]> = [
  ["a new optional property", object({ a: TEXT, b: object({ c: TEXT }), d: TEXT }, { required: ["a"] }), undefined],
  ["a new property inside", object({ a: TEXT, b: object({ c: TEXT, d: TEXT }) }, { required: ["a"] }), undefined],
  ["other words", { ...OLD, description: "as before" }, undefined],
  ["a property that is gone", object({ a: TEXT }, { required: ["a"] }), /b is gone/u],
  [
    "a property of another type",
    object({ a: { type: "number" }, b: object({ c: TEXT }) }, { required: ["a"] }),
    /a has a different type/u
  ],
  ["a property that is gone inside", object({ a: TEXT, b: object({}) }, { required: ["a"] }), /b\.c is gone/u],
  ["a new required property", { ...OLD, required: ["a", "b"] }, /different required properties/u],
  ["a property that is not required any more", { ...OLD, required: [] }, /different required properties/u],
  ["another limit", { ...OLD, maxProperties: 3 }, /a different maxProperties/u],
  ["no type", object({}, { type: "array" }), /another type|required/u]
]

describe("pinned schemas", () => {
  it.each(CHANGES)("compare a minor version with the one before: %s", (_, newer, problem) => {
    const found = additiveProblem(OLD, newer)
    if (problem === undefined) assert.isUndefined(found)
    else assert.match(found ?? "", problem)
  })

  it("compare what lists hold", () => {
    const list = (items: object): JsonSchemaObject => ({ type: "array", items }) as JsonSchemaObject
    assert.isUndefined(additiveProblem(list(object({ a: TEXT })), list(object({ a: TEXT, b: TEXT }))))
    assert.match(additiveProblem(list(object({ a: TEXT })), list(object({}))) ?? "", /items\.a is gone/u)
  })

  it("compare each minor version with the one before of its major, by number", () => {
    const schemas = new Map<string, JsonSchemaObject>([
      ["x@1.2", object({ a: TEXT })],
      ["x@1.10", object({})],
      ["x@2.0", object({})],
      ["y@1.3", object({})]
    ])
    assert.deepStrictEqual(versionProblems(schemas), [
      ["x@1.10", "a minor version only adds to x@1.2, but here a is gone: raise the major version"]
    ])
  })

  it.each<[string, string, string, RegExp]>([
    ["a name without a version", "flag", "{}", /name the file <name>@<major>\.<minor>\.json/u],
    ["a version with a leading zero", "flag@01.0", "{}", /name the file/u],
    ["no JSON", "flag@1.0", "{", /not a JSON Schema/u],
    ["a list", "flag@1.0", "[]", /not a JSON Schema/u],
    ["what cannot be checked", "flag@1.0", '{"not":{"required":["a"]}}', /cannot be checked/u],
    ["too much", "flag@1.0", `{"description":"${"x".repeat(PINNED_SCHEMA_BYTES_MAX)}"}`, /larger than/u]
  ])("refuse %s", (_, stem, text, message) => {
    const read = readPinnedSchema(stem, text)
    assert.match(Result.isFailure(read) ? read.failure.join() : "", message)
  })
})
