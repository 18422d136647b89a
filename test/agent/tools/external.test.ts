import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { externalTool } from "../../support/externalTool.ts"
import { processesNaming } from "../../support/processes.ts"
import { callIdOf } from "../../support/workspace.ts"

describe("external", () => {
  it.live("gives the input to the executable and its JSON to the model", () =>
    Effect.gen(function* () {
      const { run } = yield* externalTool("cat")
      const { status, output } = yield* run({ a: [1, "é"], b: null })
      assert.deepStrictEqual([status, output], ["success", { a: [1, "é"], b: null }])
    })
  )

  it.live("may be repeated after a crash where its manifest says idempotent, and not otherwise", () =>
    Effect.gen(function* () {
      assert.isTrue((yield* externalTool("cat", { runtime: { idempotent: true } })).tool.repeatable)
      assert.isFalse((yield* externalTool("cat")).tool.repeatable)
    })
  )

  const replies: ReadonlyArray<readonly [string, object]> = [
    [
      `{"status":"success","summary":"said\\nit","output":[1]}`,
      { status: "success", summary: "said it", output: [1], acted: "accepted" }
    ],
    [`{"status":"error","summary":"no"}`, { status: "error", summary: "no", acted: "unknown" }],
    [`{"acted":"verified","output":1}`, { status: "success", summary: "say-it ended", output: 1, acted: "verified" }],
    [
      `{"output":{"status":"x"},"untrusted":true,"summary":"s"}`,
      { status: "success", summary: "s", output: { status: "x" }, sources: ["tool:say.it"], acted: "accepted" }
    ],
    [
      `{"status":"success","summary":"s","value":3}`,
      { status: "success", summary: "s", output: { value: 3 }, acted: "accepted" }
    ]
  ]
  for (const [printed, outcome] of replies) {
    it.live(`understands ${printed}`, () =>
      Effect.gen(function* () {
        const { run } = yield* externalTool(`cat <<'JSON'\n${printed}\nJSON`)
        assert.deepStrictEqual<unknown>(yield* run(), outcome)
      })
    )
  }

  for (const printed of [`{"status":"maybe","x":1}`, `[1,2]`, `"text"`, `3`, `null`]) {
    it.live(`takes ${printed} as plain output`, () =>
      Effect.gen(function* () {
        const { status, output } = yield* (yield* externalTool(`echo '${printed}'`)).run()
        assert.deepStrictEqual([status, output], ["success", JSON.parse(printed)])
      })
    )
  }

  const failures: ReadonlyArray<readonly [what: string, script: string, problem: RegExp]> = [
    ["fails", "echo '{}'; echo reason >&2; exit 4", /ended with exit code 4/u],
    ["dies", "echo reason >&2; kill -SEGV $$", /ended with SIGSEGV/u],
    ["prints no JSON", "echo hello; echo reason >&2", /not JSON/u],
    ["prints nothing", "echo reason >&2", /not JSON/u],
    ["prints too much", "echo reason >&2; head -c 2000000 /dev/zero | tr '\\0' 1", /more than a tool may/u]
  ]
  for (const [name, script, problem] of failures) {
    it.live(`is an error with the end of standard error when the executable ${name}`, () =>
      Effect.gen(function* () {
        const { run } = yield* externalTool(script)
        const { status, summary, output } = yield* run()
        assert.strictEqual(status, "error")
        assert.match(summary, problem)
        assert.deepInclude(output, { stderr: "reason\n" })
      })
    )
  }

  it.live(
    "says timeout, as a command does, when the executable is killed for taking too long, and hides what is hidden",
    () =>
      Effect.gen(function* () {
        for (const exposure of ["both", "none"] as const) {
          const runtime = { timeout_ms: 1000, exposure }
          const { run } = yield* externalTool("echo reason >&2; sleep 60", { runtime })
          const { output, status, summary } = yield* run()
          assert.strictEqual(status, "timeout")
          assert.match(summary, /killed at its timeout/u)
          assert.strictEqual(JSON.stringify(output ?? null).includes("reason"), exposure === "both")
        }
      })
  )

  it.live("R22 leaves no process behind, at its end or at its timeout", () =>
    Effect.gen(function* () {
      const scripts = [
        {
          status: "success",
          script: (sleep: string) =>
            `setsid ${sleep} & nohup ${sleep} >/dev/null 2>&1 & (setsid sh -c '${sleep} &' &); echo 1`,
          timeout_ms: 60_000
        },
        {
          status: "timeout",
          script: (sleep: string) => `trap '' TERM; setsid ${sleep} & (setsid sh -c '${sleep} &' &); ${sleep}`,
          timeout_ms: 1000
        }
      ]
      for (const { script, status, timeout_ms } of scripts) {
        const duration = `98764.${process.pid}${status.length}`
        const { run } = yield* externalTool(script(`sleep ${duration}`), { runtime: { timeout_ms } })
        assert.strictEqual((yield* run()).status, status)
        assert.deepStrictEqual(processesNaming(duration), [])
      }
    })
  )

  it.live("gives the same result for the same output, so that repetitions are seen (E11)", () =>
    Effect.gen(function* () {
      const { run } = yield* externalTool("echo 1")
      assert.deepStrictEqual(yield* run(), yield* run())
    })
  )

  it.live("runs in the workspace with the call's id and nothing of the agent's environment", () =>
    Effect.gen(function* () {
      const { root, run } = yield* externalTool(`echo "[\\"$PWD\\",\\"$CHOIR_CALL_ID\\",\\"$(env | wc -l)\\"]"`)
      // The time zone alone is handed on, which the tests set.
      assert.deepStrictEqual((yield* run()).output, [root, callIdOf("s-1-1-0"), "8"])
    })
  )

  it.live("marks every result of an untrusted tool, and hides the output of one that nobody sees", () =>
    Effect.gen(function* () {
      const untrusted = yield* externalTool("echo 1", { runtime: { untrusted: true } })
      assert.strictEqual((yield* untrusted.run()).sources?.length, 1)
      const failing = yield* externalTool("exit 1", { runtime: { untrusted: true } })
      assert.strictEqual((yield* failing.run()).sources?.length, 1)
      for (const script of ["echo 1", "echo {}; echo reason >&2; exit 1"]) {
        const hidden = yield* externalTool(script, { runtime: { exposure: "none" } })
        assert.notProperty(yield* hidden.run(), "output")
      }
    })
  )

  it.effect("checks inputs against the manifest's schema and drops keys that it closes out", () =>
    Effect.gen(function* () {
      const { tool } = yield* externalTool("cat", {
        input_schema: {
          type: "object",
          properties: {
            city: { type: "string" },
            days: { type: "integer", minimum: 1, maximum: 7 },
            unit: { enum: ["c", "f"] }
          },
          required: ["city"],
          additionalProperties: false
        }
      })
      yield* tool.prepare({ city: "rome", days: 3, unit: "c", unknown: true })
      for (const input of [{}, { city: 1 }, { city: "rome", days: 1.5 }, { city: "rome", unit: "k" }, []]) {
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
        const { tool } = yield* externalTool("cat", { input_schema: { ...schema, type: "object", properties } })
        yield* tool.prepare({ n: 1 })
        assert.strictEqual((yield* Effect.flip(tool.prepare({ n: "1" })))._tag, "InvalidInput")
      }
    })
  )

  it.effect("is not made from a schema that it could not check", () =>
    Effect.gen(function* () {
      for (const schema of [{ type: "object", not: { required: ["a"] } }, { $ref: "https://example.org/x" }]) {
        const error = yield* Effect.flip(externalTool("cat", { input_schema: schema }))
        assert.strictEqual(error._tag, "InputSchemaRefused")
        assert.include(error.message, "say.it")
      }
    })
  )

  it.effect("takes locks, effect and lanes from its manifest", () =>
    Effect.gen(function* () {
      const locks = [{ resource: "net:weather", mode: "X" }]
      const { tool } = yield* externalTool("cat", { runtime: { locks, side_effect: "none", exposure: "core" } })
      assert.deepStrictEqual([tool.effect, tool.lanes], ["none", "core"])
      assert.deepStrictEqual(
        (yield* tool.prepare({})).locks.map(({ resource }) => resource),
        ["net:weather"]
      )
      assert.strictEqual((yield* externalTool("cat")).tool.effect, "external")
    })
  )
})
