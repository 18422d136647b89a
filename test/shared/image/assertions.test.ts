import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { Assertion } from "#schema/SkillContract.ts"
import { asserted, fitsGlob, unexpected } from "#src/shared/image/assertions.ts"
import { filled, PLACES_MAX } from "#src/shared/image/statePath.ts"
import { makeRandom, pick } from "../../support/history.ts"

const STATE = {
  score: 0.75,
  name: "notes.md",
  list: [
    { id: 1, kind: "a" },
    { id: 2, kind: "b" }
  ],
  empty: [],
  deep: { a: { b: [10, 20] } },
  nothing: null
}

type Op = Assertion["op"]

const decode = Schema.decodeSync(Assertion)
const problem = (path: string, op: Op, value?: Schema.Json): string => {
  const [outcome] = asserted([decode({ statement: "s", path, op, ...(value === undefined ? {} : { value }) })], STATE)
  return outcome?.ok === true ? "" : (outcome?.detail ?? "")
}

const HOLDS: ReadonlyArray<readonly [string, Op, Schema.Json?]> = [
  ["score", ">=", 0.7],
  ["score", "<", 1],
  ["score", "==", 0.75],
  ["name", "!=", "other"],
  ["name", "matches", "*.md"],
  ["name", "matches", "note?.md"],
  ["name", "in", ["a", "notes.md"]],
  ["list", "count", 2],
  ["list", "count", { min: 1, max: 2 }],
  ["empty", "count", 0],
  ["list.*.id", ">", 0],
  ["list.*.kind", "in", ["a", "b"]],
  ["list.1.kind", "==", "b"],
  ["empty.*.kind", "==", "never"],
  ["deep.a.b.1", "==", 20],
  ["deep", "==", { a: { b: [10, 20] } }],
  ["list.*.id", "exists"],
  ["missing", "exists", false],
  ["nothing", "exists"],
  ["nothing", "==", null]
]

const FAILS: ReadonlyArray<readonly [string, Op, Schema.Json | undefined, RegExp]> = [
  ["score", ">=", 0.8, /score: it is 0\.75/u],
  ["name", ">", 1, /"notes\.md" is not a number/u],
  ["name", "matches", "notes", /does not fit/u],
  ["score", "matches", "*", /0\.75 is not a text/u],
  ["list", "count", 3, /it has 2/u],
  ["list", "count", { max: 1 }, /it has 2/u],
  ["name", "count", 8, /is not a list/u],
  ["list.*.kind", "==", "a", /list\.\*\.kind: it is "b"/u],
  ["list.2.kind", "==", "c", /it is not there/u],
  ["list.-1.kind", "exists", undefined, /there is nothing/u],
  ["name.*.x", "exists", undefined, /there is nothing/u],
  ["deep.__proto__", "exists", undefined, /there is nothing/u],
  ["deep.constructor", "exists", undefined, /there is nothing/u],
  ["missing", "==", null, /it is not there/u],
  ["name", "exists", false, /there is "notes\.md"/u]
]

describe("assertions", () => {
  it.each(HOLDS.map(([path, op, value]) => [path, op, value] as const))("hold: %s %s %j", (path, op, value) => {
    assert.strictEqual(problem(path, op, value), "")
  })

  it.each(FAILS)("fail and say what is there: %s %s %j", (path, op, value, message) => {
    assert.match(problem(path, op, value), message)
  })

  it("say no more of a long value than a line, and give up on a list without end", () => {
    const long = { text: "x".repeat(10_000), many: Array.from({ length: PLACES_MAX + 1 }, () => ({ a: 1 })) }
    const [text, many, glob] = asserted(
      [
        decode({ statement: "s", path: "text", op: "==", value: "y" }),
        decode({ statement: "s", path: "many.*.a", op: "==", value: 1 }),
        decode({ statement: "s", path: "text", op: "matches", value: "*x".repeat(128) })
      ],
      { ...long, text: "x".repeat(100_000) }
    )
    assert.isBelow(text?.detail.length ?? 0, 250)
    assert.match(many?.detail ?? "", /more than 1000 elements/u)
    assert.match(glob?.detail ?? "", /too long to compare/u)
  })

  it("compare outputs, as a whole too", () => {
    assert.isUndefined(unexpected({ path: ".", op: "count", value: 1 }, [1]))
    assert.isUndefined(unexpected({ path: "exit_code", op: "==", value: 0 }, { exit_code: 0 }))
    assert.match(unexpected({ path: "exit_code", op: "==", value: 0 }, { exit_code: 1 }) ?? "", /it is 1/u)
  })

  it("match globs as a search over all ways does, for 20,000 pairs", () => {
    const ways = (text: string, glob: string): boolean => {
      if (glob === "") return text === ""
      if (glob[0] === "*") return ways(text, glob.slice(1)) || (text !== "" && ways(text.slice(1), glob))
      return text !== "" && (glob[0] === "?" || glob[0] === text[0]) && ways(text.slice(1), glob.slice(1))
    }
    const random = makeRandom(16)
    const word = (letters: ReadonlyArray<string>, most: number) =>
      Array.from({ length: Math.floor(random() * most) }, () => pick(random, letters)).join("")
    for (let count = 0; count < 20_000; count++) {
      const text = word(["a", "b"], 9)
      const glob = word(["a", "b", "*", "?"], 7)
      assert.strictEqual(fitsGlob(text, glob), ways(text, glob), `${text} ${glob}`)
    }
  })
})

describe("params of a script", () => {
  it.each<readonly [Schema.Json, Schema.Json]>([
    ["${list}", STATE.list],
    ["${deep.a.b.0}", 10],
    ["at ${name}: ${score}", "at notes.md: 0.75"],
    ["${nothing}", null],
    [
      { a: ["${name}", 1], b: true },
      { a: ["notes.md", 1], b: true }
    ],
    ["$name {score}", "$name {score}"]
  ])("take %j from STATE", (params, value) => {
    assert.deepStrictEqual(filled(params, STATE), Result.succeed(value))
  })

  it.each<[Schema.Json, RegExp]>([
    ["${missing}", /no value for \$\{missing\}/u],
    [{ a: ["x ${list.9}"] }, /no value for \$\{list\.9\}/u],
    ["${list.*.id}", /no value for/u],
    ["${}", /no value for/u]
  ])("fail for %j", (params, message) => {
    const read = filled(params, STATE)
    assert.match(Result.isFailure(read) ? read.failure : "", message)
  })
})
