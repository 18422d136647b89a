import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { ResourceName } from "#schema/Ids.ts"
import { decoded, example, INVALID, invalidConfig, nested, placeOf, withAt } from "../support/invalidConfigs.ts"

const decode = Schema.decodeUnknownExit(Config, { errors: "all", onExcessProperty: "error" })

describe("Config", () => {
  it("accepts a configuration with a resource of each kind, and fills in what it leaves out (R57)", () => {
    const exit = decode(example)
    assert.isTrue(Exit.isSuccess(exit))
    if (Exit.isSuccess(exit)) {
      assert.strictEqual(exit.value.budgets.max_core_jobs, 8)
      assert.strictEqual(exit.value.approvals.confirm_external, "never")
      assert.deepStrictEqual(exit.value.postgres, { ...example.postgres } as never)
    }
  })

  it("takes a global repository as all that has to be there", () => {
    const exit = decode({ global_repo: { url: "/srv/global" } })
    assert.isTrue(Exit.isSuccess(exit) && exit.value.global_repo.ref === "main")
  })

  it("takes a request template of any keys but those that say what is asked, and prints its schema", () => {
    const template = { top_p: 0.9, provider: { order: ["a"] }, max_tokens: null, stop: [nested(14)] }
    const exit = decode(withAt(example, ["models", "sonnet", "request_template"], template))
    assert.deepStrictEqual<unknown>(
      Exit.isSuccess(exit) && exit.value.models[ResourceName.make("sonnet")]?.request_template,
      template
    )
    const document = JSON.stringify(Schema.toJsonSchemaDocument(Config, { onExcessProperty: "error" }))
    assert.include(document, '"request_template":{')
  })

  it("is wrong in at least 200 ways", () => assert.isAtLeast(INVALID.length, 200))

  it.effect.each(INVALID)("refuses %s = %o with its path and the reason (R57)", (row) =>
    Effect.gen(function* () {
      const { message } = yield* decoded(invalidConfig(row))
      const place = placeOf(row)
        .split(".")
        .map((key) => `["${key}"]`)
        .join("")
      assert.match(message, row[2])
      assert.include(message, `at ${place}`)
    })
  )

  it("tells all problems at once, and never a value", () => {
    const config = withAt(
      withAt(example, ["models", "sonnet", "api_key"], "sk-very-secret"),
      ["runtime", "cpus"],
      "hunter2"
    )
    const exit = decode(config)
    const text = String(Exit.isFailure(exit) ? exit.cause : "")
    assert.include(text, "api_key")
    assert.include(text, "cpus")
    assert.notInclude(text, "sk-very-secret")
    assert.notInclude(text, "hunter2")
  })
})
