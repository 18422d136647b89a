import { assert, describe, it } from "@effect/vitest"
import { parametersProblem, toolSchemaProblems } from "#src/shared/image/toolSchema.ts"

const object = (properties: object, more: object = {}) => ({ type: "object", properties, ...more })

const textsOf = (schema: Readonly<Record<string, unknown>>) =>
  toolSchemaProblems(schema).map(({ path, reason }) => `${path}: ${reason}`)

describe("toolSchemaProblems", () => {
  it.each([
    object({ path: { type: "string", description: "Where", pattern: "^a" } }, { required: ["path"] }),
    object({ any: true, none: false, list: { type: "array", items: { type: ["string", "null"] } } }),
    object({ choice: { anyOf: [{ type: "string" }, { type: "integer", minimum: 1 }] } }),
    object({ person: { $ref: "#/$defs/person" } }, { $defs: { person: object({ name: { type: "string" } }) } }),
    object({ nothing: { not: {} }, always: { if: { type: "string" } } }),
    { $schema: "http://json-schema.org/draft-07/schema#", type: "object", definitions: {}, "x-own": { typ: 1 } }
  ])("takes %j", (schema) => assert.deepStrictEqual(textsOf(schema), []))

  it.each([
    [{}, 'type: write "object"; a tool without input has {"type": "object", "properties": {}}'],
    [
      { type: ["object", "null"] },
      'type: write "object"; a tool without input has {"type": "object", "properties": {}}'
    ],
    [{ type: "object", anyOf: [{}] }, "anyOf: providers refuse it at the top level; use it inside properties"],
    [object({ a: { typ: "string" } }), 'properties.a.typ: "typ" is not a keyword of JSON Schema; did you mean type?'],
    [object({ a: { zzz: 1 } }), 'properties.a.zzz: "zzz" is not a keyword of JSON Schema'],
    [object({ a: { type: "strng" } }), 'properties.a.type: "strng" is not a type; did you mean string?'],
    [
      object({ a: { type: [] } }),
      "properties.a.type: it must be one of array, boolean, integer, null, number, object, string, or a list of them"
    ],
    [
      object({ a: { $dynamicRef: "#x" } }),
      'properties.a.$dynamicRef: the agent cannot check "$dynamicRef": leave it out'
    ],
    [object({ a: { type: "array" } }), 'properties.a.items: say what the list holds, such as {"type": "string"}'],
    [
      object({ a: { anyOf: [{ type: ["array", "null"] }] } }),
      'properties.a.anyOf.0.items: say what the list holds, such as {"type": "string"}'
    ],
    [object({ a: { pattern: "(" } }), "properties.a.pattern: it must be a regular expression"],
    [object({ a: 3 }), "properties.a: it must be a schema: an object, true or false"],
    [object({}, { required: "a" }), "required: it must be a list of strings"],
    [object({ a: { items: [{ minLength: "3" }] } }), "properties.a.items.0.minLength: it must be a number"]
  ] as const)("says of %j: %s", (schema, problem) => assert.deepStrictEqual(textsOf(schema), [problem]))

  it("names a reference that leads nowhere, and does not follow a schema without end", () => {
    assert.match(textsOf(object({ a: { $ref: "#/$defs/no" } })).join(), /\$defs\/no|reference/iu)
    const deep = Array.from({ length: 100 }).reduce<object>((inner) => ({ items: inner }), {})
    assert.match(textsOf(object({ a: deep })).join(), /schemas may be nested 32 levels deep/u)
  })

  it("knows what a provider refuses as the parameters of a tool", () => {
    assert.isUndefined(parametersProblem({ type: "object" }))
    for (const refused of [undefined, null, [], "object", {}, { type: "array" }, { type: "object", oneOf: [] }])
      assert.isDefined(parametersProblem(refused), JSON.stringify(refused))
  })
})
