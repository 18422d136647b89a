/** The tool and the arguments that a call means, by what was offered. */
import { assert, describe, it } from "@effect/vitest"
import type { Schema } from "effect"
import { meantCalls, meantInput, meantName } from "#src/agent/model/meantCalls.ts"

const OFFERED = ["choir-fs-write", "choir-fs-read", "weather-now", "weather_now", "a-b", "mcp-ping"]

describe("the name of a call", () => {
  it.each([
    ["choir-fs-write", "choir-fs-write"],
    // The registry reads dots itself.
    ["choir.fs.write", "choir.fs.write"],
    ["Choir-FS-Write", "choir-fs-write"],
    ["choir_fs_write", "choir-fs-write"],
    ["choirFsWrite", "choir-fs-write"],
    [" choir fs write ", "choir-fs-write"],
    ["functions.choir-fs-write", "choir-fs-write"],
    ["functions.choir-fs-write:0", "choir-fs-write"],
    ["default_api.choir_fs_read", "choir-fs-read"],
    ["default_api:choir-fs-read", "choir-fs-read"],
    ["mcp__choir-fs-read", "choir-fs-read"],
    ["mcp__server__choir-fs-read", "choir-fs-read"],
    ["choir-fs-write<|channel|>commentary", "choir-fs-write"],
    ["choir-fs-write<|constrain|>json", "choir-fs-write"],
    ["choir-fs-read()", "choir-fs-read"],
    ["mcp-ping", "mcp-ping"]
  ])("%s is %s", (name, meant) => assert.strictEqual(meantName(name, OFFERED), meant))

  it.each(["WeatherNow", "fs-write", "choir-fs-writ", "choir-fs-write2", "../../bin/sh", "", "<|channel|>"])(
    "%s is no other tool's",
    (name) => assert.strictEqual(meantName(name, OFFERED), name)
  )

  it("is that of an exact tool, however many are written alike", () => {
    assert.strictEqual(meantName("weather_now", OFFERED), "weather_now")
    assert.strictEqual(meantName("weather-now", OFFERED), "weather-now")
  })
})

const text = { type: "string" }
const PARAMETERS = {
  type: "object",
  properties: {
    path: text,
    note: text,
    head: { type: "integer" },
    ratio: { type: ["number", "null"] },
    deep: { type: "boolean" },
    paths: { type: "array", items: { type: "integer" } },
    at: { type: "object", properties: { line: { type: "integer" }, why: text }, required: ["line"] },
    either: { anyOf: [{ type: "integer" }, { type: "string" }] },
    maybe: { anyOf: [{ type: "object", properties: { on: { type: "boolean" } } }, { type: "null" }] },
    mode: { enum: ["a", "1"] },
    level: { enum: [1, 2] },
    any: {}
  },
  required: ["path"]
}

describe("the arguments of a call", () => {
  it.each<readonly [string, Schema.Json, Schema.Json]>([
    ["what fits", { path: "1", head: 2, deep: false, paths: [1] }, { path: "1", head: 2, deep: false, paths: [1] }],
    ["null of an optional one", { path: "a", note: null, head: null }, { path: "a" }],
    ["null where it is a value", { path: "a", ratio: null, maybe: null }, { path: "a", ratio: null, maybe: null }],
    ["null of one that is required", { path: null }, { path: null }],
    ["numbers", { head: "12", ratio: "-0.5e1", level: "2" }, { head: 12, ratio: -5, level: 2 }],
    ["what is no such number", { head: "1.5", ratio: "0x10", level: " " }, { head: "1.5", ratio: "0x10", level: " " }],
    ["a number too large to be one", { ratio: "1e999" }, { ratio: "1e999" }],
    ["numbers that would be rounded to others", { head: "9007199254740993" }, { head: "9007199254740993" }],
    ["flags", { deep: "True" }, { deep: true }],
    ["what is no flag", { deep: "yes" }, { deep: "yes" }],
    ["lists and what is in them", { paths: '["1", 2]' }, { paths: [1, 2] }],
    ["objects and what is in them", { at: '{"line":"3","why":null}' }, { at: { line: 3 } }],
    ["objects that may be null", { maybe: '{"on":"false"}' }, { maybe: { on: false } }],
    ["an object where a list is wanted", { paths: '{"a":1}' }, { paths: '{"a":1}' }],
    [
      "texts where texts are fine",
      { path: "12", note: "true", either: "5", any: "[1]", mode: "1" },
      { path: "12", note: "true", either: "5", any: "[1]", mode: "1" }
    ],
    ["keys that no schema has", { other: null, __proto__x: "1" }, { other: null, __proto__x: "1" }],
    ["no object at all", "text", "text"]
  ])("are taken by the schema: %s", (_, input, meant) => assert.deepStrictEqual(meantInput(input, PARAMETERS), meant))

  it("keep a key __proto__ as a key", () => {
    const input = JSON.parse('{"__proto__":{"x":"1"},"head":"1"}') as Schema.Json
    assert.strictEqual(JSON.stringify(meantInput(input, PARAMETERS)), '{"__proto__":{"x":"1"},"head":1}')
  })

  it("stay as they are where their schema says nothing that is understood", () => {
    for (const schema of [undefined, null, true, [], { properties: 1 }, { type: "object", properties: { a: true } }])
      assert.deepStrictEqual(meantInput({ a: "1", b: null }, schema), { a: "1", b: null })
  })
})

describe("calls in one", () => {
  const several = (count: number) => ({
    name: "multi_tool_use.parallel",
    input: { tool_uses: Array.from({ length: count }, (_, n) => ({ recipient_name: "mcp-ping", parameters: { n } })) }
  })

  it("are counted as those of the whole answer, and none is lost without a word", () => {
    const last = { name: "mcp-ping", input: {}, refused: "it is one too many", left_out: 3 }
    const meant = meantCalls([several(66), last], [])
    assert.lengthOf(meant, 64)
    assert.deepStrictEqual(Object.keys(meant.at(-1) ?? {}), ["name", "input", "refused"])
    assert.match(meant.at(-1)?.refused ?? "", /^your answer has more than 32 calls, .* The 6 calls behind it were not/u)
    assert.isUndefined(meant[31]?.refused)
  })
})
