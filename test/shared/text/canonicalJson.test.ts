import { assert, describe, it } from "@effect/vitest"
import canonicalize from "canonicalize"
import { Schema } from "effect"
import { canonicalJson, isDeeperThan, storableJson } from "#src/shared/text/canonicalJson.ts"

const bits = (hex: string): number => Buffer.from(hex, "hex").readDoubleBE()

/** RFC 8785, appendix B: IEEE 754 bits and the canonical text. */
const NUMBERS: ReadonlyArray<readonly [string, string]> = [
  ["0000000000000000", "0"],
  ["8000000000000000", "0"],
  ["0000000000000001", "5e-324"],
  ["8000000000000001", "-5e-324"],
  ["7fefffffffffffff", "1.7976931348623157e+308"],
  ["ffefffffffffffff", "-1.7976931348623157e+308"],
  ["4340000000000000", "9007199254740992"],
  ["c340000000000000", "-9007199254740992"],
  ["4430000000000000", "295147905179352830000"],
  ["44b52d02c7e14af5", "9.999999999999997e+22"],
  ["44b52d02c7e14af6", "1e+23"],
  ["44b52d02c7e14af7", "1.0000000000000001e+23"],
  ["444b1ae4d6e2ef4e", "999999999999999700000"],
  ["444b1ae4d6e2ef4f", "999999999999999900000"],
  ["444b1ae4d6e2ef50", "1e+21"],
  ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
  ["3eb0c6f7a0b5ed8d", "0.000001"],
  ["41b3de4355555553", "333333333.3333332"],
  ["41b3de4355555554", "333333333.33333325"],
  ["41b3de4355555555", "333333333.3333333"],
  ["41b3de4355555556", "333333333.3333334"],
  ["41b3de4355555557", "333333333.33333343"],
  ["becbf647612f3696", "-0.0000033333333333333333"],
  ["43143ff3c1cb0959", "1424953923781206.2"]
]

/** V8 may read a key that is written with an escape as one that it has read before: https://github.com/nodejs/node/issues/63785 */
const hasEscapedKey = (value: Schema.Json): boolean =>
  typeof value === "object" &&
  value !== null &&
  Object.entries(value).some(([key, inner]) => JSON.stringify(key) !== `"${key}"` || hasEscapedKey(inner))

describe("canonicalJson", () => {
  it("writes the numbers of RFC 8785's appendix B", () => {
    for (const [value, text] of NUMBERS) assert.strictEqual(canonicalJson(bits(value)), text, value)
  })

  it("writes the example of RFC 8785's section 3.2", () => {
    const value = JSON.parse(
      String.raw`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
      "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`
    )
    assert.strictEqual(
      canonicalJson(value),
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`
    )
  })

  it("sorts keys by UTF-16 units, as the example of RFC 8785's section 3.2.3", () => {
    const value = JSON.parse(
      String.raw`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",
      "\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`
    )
    assert.deepStrictEqual(Object.values(JSON.parse(canonicalJson(value)) as object).length, 7)
    const order = [...canonicalJson(value).matchAll(/:"([^"]*)"/gu)].map(([, name]) => name)
    assert.deepStrictEqual(order, [
      "Carriage Return",
      "One",
      "Control",
      "Latin Small Letter O With Diaeresis",
      "Euro Sign",
      "Emoji: Grinning Face",
      "Hebrew Letter Dalet With Dagesh"
    ])
  })

  it("refuses what is not JSON", () => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, undefined, "\ud800", () => 1])
      assert.throws(() => canonicalJson(value))
  })

  it.prop("gives one text for one value, whatever the order of its keys", [Schema.Json], ([value]) => {
    const text = canonicalJson(storableJson(value))
    if (hasEscapedKey(storableJson(value))) return
    assert.strictEqual(canonicalJson(JSON.parse(text)), text)
  })
})

/** Keys that an object orders by itself, that are no plain members of it, or that only look alike. */
const AWKWARD = ["10", "9", "01", "__proto__"]
const KEYS = ["", "a", "b", "B", "_", "1e", "-1", "toJSON", "constructor", "\u20ac", "\ufb33", "\u{1f600}"]
const members = (keys: ReadonlyArray<string>) => Schema.Array(Schema.Tuple([Schema.Literals(keys), Schema.Json]))

/** An object with its members in this order, as far as an object has one. Text alone can give it a member `__proto__`. */
const objectOf = (pairs: ReadonlyArray<readonly [string, unknown]>): unknown =>
  JSON.parse(`{${pairs.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join()}}`)

/** Says of itself what it is in JSON. */
class Spokesman {
  readonly b = 1
  readonly a = 2
  toJSON() {
    return { d: this.b, c: this.a }
  }
}

describe("what canonicalJson writes by itself", () => {
  for (const keys of [KEYS, [...KEYS, ...AWKWARD]])
    it.prop(
      `is what the library writes, with ${keys.length} keys`,
      [members(keys), members(keys)],
      ([outer, inner]) => {
        const object = storableJson(objectOf(inner))
        const pairs = [...outer.slice(1), ["n", object], ["m", [0, object]], ...outer.slice(0, 1)] as const
        for (const value of [object, [object], storableJson(objectOf(pairs))])
          assert.strictEqual(canonicalJson(value), canonicalize(value))
      }
    )

  it("is what the library writes for values that are more than their members", () => {
    const deep = JSON.parse(`${'[{"b":1,"a":'.repeat(1000)}0${"}]".repeat(1000)}`) as unknown
    const values: ReadonlyArray<unknown> = [
      deep,
      { b: new Date(0), a: undefined },
      [undefined, Symbol("x"), () => 1],
      { b: { toJSON: () => ({ d: 1, c: 2 }) }, a: new Map([[1, 2]]) },
      { b: new Spokesman(), a: [new Spokesman()] },
      Object.assign(Object.create({ inherited: 1 }), { own: 2 }),
      Object.assign(Object.create(null), { b: 1, a: 2 }),
      [Object("text"), Object(1), Object(true)],
      { b: -0, a: 1e21 },
      String.raw`a text with \ud800 and \\ud800 in it`,
      { [String.raw`\ud`]: String.raw`\ud` }
    ]
    for (const value of values) assert.strictEqual(canonicalJson(value), canonicalize(value))
  })

  it("refuses what the library refuses, wherever it stands", () => {
    const circle: Record<string, unknown> = {}
    circle["self"] = circle
    for (const value of ["\ud800", "x\udc00", Number.NaN, Number.NEGATIVE_INFINITY, circle, 1n])
      for (const place of [value, [value], { a: { b: [value] } }, { z: 0, a: value }])
        assert.throws(() => canonicalJson(place))
    assert.throws(() => canonicalJson({ "\ud800": 1 }))
  })
})

describe("storableJson", () => {
  it("replaces NUL and lone surrogates in texts and keys, and nothing else", () => {
    const value = { "a\0": ["\ud800x", "x\udc00", "\u{1f600}", 1, null, true], b: { c: "\0\0" } }
    assert.deepStrictEqual(storableJson(value), {
      "a\uFFFD": ["\uFFFDx", "x\uFFFD", "\u{1f600}", 1, null, true],
      b: { c: "\uFFFD\uFFFD" }
    } as never)
  })

  it.prop("leaves nothing that UTF-8 or Postgres would change, and is done once", [Schema.Json], ([value]) => {
    const stored = storableJson(value)
    const text = canonicalJson(stored)
    assert.notInclude(text, String.raw`\u0000`)
    assert.strictEqual(Buffer.from(text, "utf8").toString("utf8"), text)
    assert.deepStrictEqual(storableJson(stored), stored)
  })

  it("keeps a key called __proto__ a key", () => {
    const value = JSON.parse('{"__proto__":{"x":1}}') as object
    assert.strictEqual(canonicalJson(storableJson(value)), '{"__proto__":{"x":1}}')
  })
})

describe("isDeeperThan", () => {
  it("counts levels, and answers for a million of them", () => {
    assert.isFalse(isDeeperThan("x", 0))
    assert.isTrue(isDeeperThan([], 0))
    assert.isFalse(isDeeperThan({ a: [1] }, 2))
    assert.isTrue(isDeeperThan({ a: [[]] }, 2))
    assert.isTrue(isDeeperThan(JSON.parse("[".repeat(1e6) + "]".repeat(1e6)), 100))
  })
})
