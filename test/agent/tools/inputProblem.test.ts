import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { inputDecoder } from "#src/shared/image/jsonSchema.ts"
import { decodeInput } from "#src/agent/tools/Tool.ts"

const Input = Schema.Struct({
  path: Schema.String,
  old_text: Schema.String,
  mode: Schema.Literals(["a", "b"]),
  limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 }))),
  parts: Schema.optionalKey(Schema.Array(Schema.Struct({ name: Schema.String })))
})

const problemOf = (input: unknown, schema: Schema.Decoder<unknown> = Input) =>
  Effect.map(Effect.flip(decodeInput(schema)(input)), ({ problem }) => problem)

describe("the problem of an input", () => {
  const good = { path: "x", old_text: "y", mode: "a" }
  const cases: ReadonlyArray<readonly [name: string, input: unknown, problem: string]> = [
    [
      "names the key that was meant, once",
      { file_path: "x", old_text: "y", mode: "a" },
      "there is no file_path; the key is path"
    ],
    ["knows words in common", { path: "x", old_string: "y", mode: "a" }, "there is no old_string; the key is old_text"],
    ["knows other spellings", { path: "x", oldText: "y", mode: "a" }, "there is no oldText; the key is old_text"],
    [
      "takes a lone stranger for the lone missing key",
      { path: "x", old_text: "y", how: "a" },
      "there is no how; the key is mode"
    ],
    [
      "lists the keys where it cannot guess",
      { ...good, mode: "c", zebra: 1 },
      'there is no zebra; the keys are path, old_text, mode, limit, parts; mode must be one of "a", "b"'
    ],
    ["refuses a key that it does not have", { ...good, limits: 3 }, "there is no limits; the key is limit"],
    [
      "refuses one that it cannot guess",
      { ...good, target_agent: "x" },
      "there is no target_agent; the keys are path, old_text, mode, limit, parts"
    ],
    ["refuses one within a part", { ...good, parts: [{ name: "a", zebra: 1 }] }, "parts.0.zebra: an unknown key"],
    ["names what is missing", {}, "path is missing; old_text is missing; mode is missing"],
    ["says what a value must be", { ...good, limit: 10 }, "limit must be between 1 and 9"],
    ["says where a part is wrong", { ...good, parts: [{}] }, "parts.0.name is missing"],
    ["asks for an object", "path", "the input must be a JSON object"]
  ]
  for (const [name, input, problem] of cases)
    it.effect(name, () => Effect.map(problemOf(input), (found) => assert.strictEqual(found, problem)))

  it.effect("is as good for the schema of a manifest", () =>
    Effect.gen(function* () {
      const schema = yield* Effect.fromResult(
        inputDecoder({ type: "object", properties: { city: { type: "string" } }, required: ["city"] }, "ignore")
      )
      assert.strictEqual(
        yield* problemOf({ town: "Graz" }, schema as Schema.Decoder<unknown>),
        "there is no town; the key is city"
      )
    })
  )

  it.effect("stays short, whatever the input holds", () =>
    Effect.gen(function* () {
      const input = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`k${at}${"x".repeat(500)}`, 1]))
      assert.isBelow((yield* problemOf(input)).length, 1600)
    })
  )
})
