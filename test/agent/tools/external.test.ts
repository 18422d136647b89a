import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { ToolManifest } from "#schema/Tool.ts"
import { external } from "#src/agent/tools/external.ts"
import { laneThatSaw, temporaryWorkspace, toolServices } from "../../support/workspace.ts"

const manifestOf = (input_schema: object, runtime: object = {}) =>
  Schema.decodeUnknownSync(ToolManifest)({
    llm: { name: "say.it", description: "Says it.", input_schema },
    runtime: { exec_path: "say", ...runtime }
  })

const anything = { type: "object" }

const made = Effect.fnUntraced(function* (script: string, runtime: object = {}, input_schema: object = anything) {
  const { root, outside } = yield* temporaryWorkspace
  const executable = join(outside, "say")
  writeFileSync(executable, `#!/bin/sh\n${script}\n`)
  chmodSync(executable, 0o755)
  const made = external(manifestOf(input_schema, runtime), executable)
  const tool = yield* Effect.provideContext(made, yield* toolServices(root))
  const run = Effect.fnUntraced(function* (input: unknown = {}) {
    return yield* (yield* tool.prepare(input)).run(laneThatSaw())
  })
  return { root, tool, run }
})

describe("external", () => {
  it.live("gives the input to the executable and its JSON to the model", () =>
    Effect.gen(function* () {
      const { run } = yield* made("cat")
      const { status, output } = yield* run({ a: [1, "é"], b: null })
      assert.deepStrictEqual([status, output], ["success", { a: [1, "é"], b: null }])
    })
  )

  const replies: ReadonlyArray<readonly [string, object]> = [
    [`{"status":"success","summary":"said\\nit","output":[1]}`, { status: "success", summary: "said it", output: [1] }],
    [`{"status":"error","summary":"no"}`, { status: "error", summary: "no" }],
    [
      `{"output":{"status":"x"},"untrusted":true,"summary":"s"}`,
      { status: "success", summary: "s", output: { status: "x" }, untrusted: true }
    ],
    [`{"status":"success","summary":"s","value":3}`, { status: "success", summary: "s", output: { value: 3 } }]
  ]
  for (const [printed, outcome] of replies) {
    it.live(`understands ${printed}`, () =>
      Effect.gen(function* () {
        const { run } = yield* made(`cat <<'JSON'\n${printed}\nJSON`)
        assert.deepStrictEqual<unknown>(yield* run(), outcome)
      })
    )
  }

  for (const printed of [`{"status":"maybe","x":1}`, `[1,2]`, `"text"`, `3`, `null`]) {
    it.live(`takes ${printed} as plain output`, () =>
      Effect.gen(function* () {
        const { status, output } = yield* (yield* made(`echo '${printed}'`)).run()
        assert.deepStrictEqual([status, output], ["success", JSON.parse(printed)])
      })
    )
  }

  const failures: ReadonlyArray<readonly [string, string, RegExp]> = [
    ["fails", "echo '{}'; echo reason >&2; exit 4", /ended with exit code 4/u],
    ["dies", "echo reason >&2; kill -SEGV $$", /ended with SIGSEGV/u],
    ["prints no JSON", "echo hello; echo reason >&2", /not JSON/u],
    ["prints nothing", "echo reason >&2", /not JSON/u],
    ["prints too much", "echo reason >&2; head -c 2000000 /dev/zero | tr '\\0' 1", /more than a tool may/u],
    ["takes too long", "echo reason >&2; sleep 60", /killed at its timeout/u]
  ]
  for (const [name, script, problem] of failures) {
    it.live(`is an error with the end of standard error when the executable ${name}`, () =>
      Effect.gen(function* () {
        const { run } = yield* made(script, { timeout_ms: 400 })
        const { status, summary, output } = yield* run()
        assert.strictEqual(status, "error")
        assert.match(summary, problem)
        assert.deepInclude(output, { stderr: "reason\n" })
      })
    )
  }

  it.live("runs in the workspace with the call's id and nothing of the agent's environment", () =>
    Effect.gen(function* () {
      const { root, run } = yield* made(`echo "[\\"$PWD\\",\\"$CHOIR_CALL_ID\\",\\"$(env | wc -l)\\"]"`)
      assert.deepStrictEqual((yield* run()).output, [root, "s-1-1-0", "6"])
    })
  )

  it.live("marks every result of an untrusted tool, and hides the output of one that nobody sees", () =>
    Effect.gen(function* () {
      const untrusted = yield* made("echo 1", { untrusted: true })
      assert.strictEqual((yield* untrusted.run()).untrusted, true)
      const failing = yield* made("exit 1", { untrusted: true })
      assert.strictEqual((yield* failing.run()).untrusted, true)
      const hidden = yield* made("echo 1", { exposure: "none" })
      assert.notProperty(yield* hidden.run(), "output")
    })
  )

  it.effect("checks inputs against the manifest's schema and drops keys that it closes out", () =>
    Effect.gen(function* () {
      const { tool } = yield* made(
        "cat",
        {},
        {
          type: "object",
          properties: {
            city: { type: "string", pattern: "^[a-z]+$" },
            days: { type: "integer", minimum: 1, maximum: 7 },
            unit: { enum: ["c", "f"] }
          },
          required: ["city"],
          additionalProperties: false
        }
      )
      yield* tool.prepare({ city: "rome", days: 3, unit: "c", unknown: true })
      for (const input of [
        {},
        { city: 1 },
        { city: "Rome" },
        { city: "rome", days: 1.5 },
        { city: "rome", unit: "k" },
        []
      ]) {
        assert.strictEqual((yield* Effect.flip(tool.prepare(input)))._tag, "InvalidInput")
      }
    })
  )

  it.effect("reads the definitions of draft 07 and of 2020-12", () =>
    Effect.gen(function* () {
      const schemas = [
        {
          $schema: "http://json-schema.org/draft-07/schema#",
          definitions: { n: { type: "number" } },
          $ref: "definitions"
        },
        { $defs: { n: { type: "number" } }, $ref: "$defs" }
      ]
      for (const { $ref, ...schema } of schemas) {
        const properties = { n: { $ref: `#/${$ref}/n` } }
        const { tool } = yield* made("cat", {}, { ...schema, type: "object", properties })
        yield* tool.prepare({ n: 1 })
        yield* Effect.flip(tool.prepare({ n: "1" }))
      }
    })
  )

  it.effect("is not made from a schema that it could not check", () =>
    Effect.gen(function* () {
      for (const schema of [{ type: "object", not: { required: ["a"] } }, { $ref: "https://example.org/x" }]) {
        const error = yield* Effect.flip(made("cat", {}, schema))
        assert.strictEqual(error._tag, "InputSchemaRefused")
        assert.include(error.message, "say.it")
      }
    })
  )

  it.effect("takes locks, effect and lanes from its manifest", () =>
    Effect.gen(function* () {
      const locks = [{ resource: "net:weather", mode: "X" }]
      const { tool } = yield* made("cat", { locks, side_effect: "none", exposure: "core" })
      assert.deepStrictEqual([tool.effect, tool.readOnly, tool.lanes], ["none", true, "core"])
      assert.deepStrictEqual(
        (yield* tool.prepare({})).locks.map(({ resource }) => resource),
        ["net:weather"]
      )
      assert.strictEqual((yield* made("cat")).tool.effect, "external")
    })
  )
})
