/** Skills and manifests that an agent pushed: small files that are costly to look at, since choird reads all of them on its one thread. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { merge } from "#src/choird/repos/Merge.ts"
import { schemaProblem } from "#src/shared/image/jsonSchema.ts"
import { readPinnedSchema } from "#src/shared/image/pinnedSchemas.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"
import { MANIFEST_BYTES_MAX, readToolManifest } from "#src/shared/image/toolManifest.ts"
import { IMAGE_SKILLS_MAX } from "#src/shared/limits.ts"

/** Of all problems of one file. */
const TOLD_CHARS_MAX = 10_000
const DEPTH = 20_000

const keys = (count: number, value: unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, value]))
const skill = (more: object) =>
  JSON.stringify({
    name: "x",
    description: "d",
    initial_state: "a",
    max_steps: 5,
    states: { a: { terminal: true } },
    ...more
  })
const manifest = (input_schema: object, more: object = {}) =>
  JSON.stringify({
    llm: { name: "x.y", description: "d", input_schema },
    runtime: { exec_path: "x.y", effect: "none", ...more }
  })
/** A text with arrays within each other in the place of its "@". */
const nested = (text: string) => text.replace('"@"', "[".repeat(DEPTH) + "]".repeat(DEPTH))
const step = { objective: "o", allowed_tools: [], transitions: [{ on: "e", to: "nowhere" }] }
const tools = (allowed_tools: ReadonlyArray<unknown>) => ({ states: { a: { ...step, allowed_tools } } })
const anchor = { golden_anchors: [{ input: "@", output: {} }] }

const SKILLS: ReadonlyArray<readonly [what: string, text: string]> = [
  ["thousands of states that lead nowhere", skill({ states: keys(3000, step) })],
  ["thousands of keys that are unknown", skill(keys(10_000, 1))],
  ["a hundred thousand tools that are none", skill(tools(Array.from({ length: 100_000 }, () => 1)))],
  ["an example that nests without end", nested(skill({ contract: anchor }))],
  ["a schema whose default nests without end", nested(skill({ input_schema: { type: "object", default: "@" } }))],
  ["parameters that nest without end", nested(skill({ registry: { workflow: [{ params: { a: "@" } }] } }))]
]

const MANIFESTS: ReadonlyArray<readonly [what: string, text: string]> = [
  ["thousands of keywords that are unknown", manifest({ type: "object", ...keys(10_000, 1) })],
  ["thousands of keys that are unknown", manifest({ type: "object" }, keys(10_000, 1))],
  ["a default that nests without end", nested(manifest({ type: "object", default: "@" }))]
]

describe("a file of an agent's repository", () => {
  const KINDS: ReadonlyArray<
    readonly [string, typeof SKILLS, (text: string) => Result.Result<unknown, ReadonlyArray<string>>]
  > = [
    ["skill", SKILLS, (text: string) => readSkill("x", text)],
    ["manifest", MANIFESTS, (text: string) => readToolManifest("agent", text)]
  ]
  for (const [kind, files, read] of KINDS)
    for (const [what, text] of files)
      it(`that is a ${kind} with ${what} is refused in few words`, () => {
        assert.isAtMost(Buffer.byteLength(text), MANIFEST_BYTES_MAX)
        const taken = read(text)
        if (Result.isSuccess(taken)) assert.fail("it is taken")
        assert.isAtMost(taken.failure.join().length, TOLD_CHARS_MAX)
      })

  it("that is a schema is refused where it nests without end, or lists more values than can be checked", () => {
    assert.isTrue(Result.isFailure(readPinnedSchema("x@1.0", nested('{"type":"object","default":"@"}'))))
    const names = Object.keys(keys(10_000, 1))
    for (const schema of [{ type: "object", required: names }, { properties: { a: { enum: names } } }])
      assert.match(schemaProblem(schema) ?? "", /more than \d+ parts/u)
  })

  it("is not read where there are more of its kind than an image takes", () => {
    const files = Array.from({ length: IMAGE_SKILLS_MAX + 50 }, (_, index) => ({
      path: `skills/s${index}.json`,
      executable: false,
      bytes: Buffer.from(index < IMAGE_SKILLS_MAX ? skill({ name: `s${index}` }) : "{}")
    }))
    const made = merge({ label: "global", files: [] }, { label: "own", files })
    if (Result.isSuccess(made)) assert.fail("it is taken")
    assert.isTrue(
      made.failure.problems.some(({ reason }) => reason.startsWith(`${files.length} manifests are too many`))
    )
    assert.isFalse(made.failure.problems.some(({ path }) => path.startsWith("skills/s")))
  })
})
