import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { fakeChoird } from "../../support/fakeChoird.ts"

const made = Effect.gen(function* () {
  const home = yield* temporaryFolder
  yield* choirctl(home, ["init"])
  return home
})

describe("choirctl config", () => {
  it.effect("names the path and the reason of every problem at once, and exits 78 (R57)", () =>
    Effect.gen(function* () {
      const home = yield* made
      const file = join(home, "config.json")
      const config = JSON.parse(readFileSync(file, "utf8"))
      config.models.main.endpoint = "nowhere"
      config.runtime.cpus = -1
      config.nonsense = true
      writeFileSync(file, JSON.stringify(config))
      const ran = yield* choirctl(home, ["config", "validate"])
      assert.strictEqual(ran.code, 78)
      for (const place of ["models.main.endpoint: ", "runtime.cpus: ", "nonsense: "]) assert.include(ran.err, place)
      const programs = yield* choirctl(home, ["config", "validate", "--json"])
      assert.strictEqual(programs.code, 78)
      const { error, ok, problems } = JSON.parse(programs.out)
      assert.strictEqual(ok, false)
      assert.nestedPropertyVal({ error }, "error.type", "CONFIG")
      assert.deepStrictEqual(problems.map(({ path }: { path: string }) => path).sort(), [
        "models.main.endpoint",
        "nonsense",
        "runtime.cpus"
      ])
    })
  )

  it.effect("warns of secrets without a value and is still 0", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* choirctl(home, ["init", "--model-provider", "openai", "--model-name", "m"])
      const ran = yield* choirctl(home, ["config", "validate"])
      assert.strictEqual(ran.code, 0)
      assert.include(ran.out, "models.main.secret")
      assert.include(ran.out, "choirctl secret set openai-key")
    })
  )

  it.effect("says what to do about a home without configuration", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "none")
      const ran = yield* choirctl(home, ["config", "validate"])
      assert.strictEqual(ran.code, 78)
      assert.include(ran.err, "hint: choirctl init")
    })
  )

  it.effect("prints a JSON Schema that knows every section and forbids the rest", () =>
    Effect.gen(function* () {
      const ran = yield* choirctl("/nowhere", ["config", "schema"])
      const schema = JSON.parse(ran.out)
      assert.strictEqual(schema.additionalProperties, false)
      for (const section of ["models", "agents", "budgets", "runtime"]) assert.property(schema.properties, section)
      assert.strictEqual(schema.properties.heartbeat_interval_ms.default, 5000)
      assert.strictEqual((yield* choirctl("/nowhere", ["config", "schema", "--json"])).out.split("\n").length, 2)
    })
  )

  it.effect("shows what choird runs with", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      assert.strictEqual((yield* choirctl(home, ["config", "show"])).code, 69)
      yield* fakeChoird(home)
      assert.strictEqual((yield* choirctl(home, ["config", "show", "--json"])).out, '"the configuration"\n')
    })
  )
})
