import { spawn } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { MAIN, choirctl } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { fakeChoird } from "../../support/fakeChoird.ts"
import { changes } from "../../support/fakeConfiguration.ts"

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
      for (const place of ["models.main.endpoint", "runtime.cpus", "nonsense"])
        assert.include(ran.err, `${place} (line 1): `)
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
      assert.include(ran.out, `choirctl --home ${home} secret set openai-key`)
    })
  )

  it.effect("says what to do about a home without configuration", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "none")
      const ran = yield* choirctl(home, ["config", "validate"])
      assert.strictEqual(ran.code, 78)
      assert.include(ran.err, `hint: choirctl --home ${home} init makes it`)
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

  it.effect("asks choird for no version that cannot be, and says which can", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      for (const args of [
        ["rollback", "-1"],
        ["rollback", "0"],
        ["show", "--version", String(2 ** 31)]
      ]) {
        const refused = yield* choirctl(home, ["config", ...args, "--json"])
        assert.strictEqual(refused.code, 2)
        assert.match(refused.out, /a version must be a whole number from choirctl config history/u)
      }
    })
  )

  it.effect("loads with its steps and warnings, and shows the changes with what puts each to work", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const ran = yield* choirctl(home, ["config", "load"])
      assert.deepStrictEqual([ran.code, ran.err], [0, "fetch global\nwarning: it is old\n"])
      assert.deepStrictEqual(ran.out.split("\n"), [
        "staged: config.json, secrets.json, global at no commit (stale)",
        `~ models.main.temperature [hot-reload] → choirctl --home ${home} config apply`,
        `~ runtime.cpus [restart-required] → choirctl --home ${home} daemon stop && choirctl --home ${home} daemon start`,
        `To apply what is [hot-reload]: choirctl --home ${home} config apply`,
        ""
      ])
      assert.deepStrictEqual(JSON.parse((yield* choirctl(home, ["config", "diff", "--json"])).out), changes)
      const back = yield* choirctl(home, ["config", "rollback", "2", "--json"])
      assert.deepInclude(JSON.parse(back.out), { version: 4, previous: 3 })
      assert.include(back.err, `choirctl --home ${home} config show --version 2 > `)
      assert.match((yield* choirctl(home, ["config", "history"])).out, /^3 .*apply +operator +running$/mu)
      assert.strictEqual((yield* choirctl(home, ["config", "show", "--version", "2"])).out, '"version 2"\n')
      assert.include((yield* choirctl(home, ["secret", "apply"])).out, "version 4 is running with key (changed)")
      assert.deepStrictEqual(
        calls.map(({ name }) => name),
        ["load", "diff", "rollback", "history", "version", "applySecrets"]
      )
      assert.deepStrictEqual(calls[2]?.input, { version: 2 })
    })
  )

  it.effect(
    "restarts nobody for commits that no image has, says why and what to do, and exits 1 where that was asked for",
    () =>
      Effect.gen(function* () {
        const home = yield* temporaryFolder
        const command = "choirctl agent build ada && choirctl agent restart ada"
        const row = { path: "ada repo", change: "aaaaaaa -> bbbbbbb", class: "restart-required", command } as const
        const changes = [{ ...row, before: null, after: null, applies: false, restarts: [] }]
        const calls = yield* fakeChoird(home, { plan: Effect.succeed({ plan: "a-plan", version: 5, changes }) })
        const asked = yield* choirctl(home, ["config", "apply", "--yes", "--restart"])
        assert.strictEqual(asked.code, 1)
        assert.deepStrictEqual(asked.out.split("\n"), [
          "Nothing was applied, and version 5 keeps running.",
          "ada was not restarted: its repository has new commits, and its image has not been built since.",
          "To finish:",
          `  choirctl --home ${home} agent build ada && choirctl --home ${home} agent restart ada`,
          ""
        ])
        assert.strictEqual((yield* choirctl(home, ["config", "apply", "--yes"])).code, 0)
        assert.isFalse(calls.some(({ name }) => name === "applyPlan"))
      })
  )

  it.live("applies to the end when nobody reads its output any more, and exits with what was done", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const code = yield* Effect.callback<number | null>((resume) => {
        const child = spawn(process.execPath, [MAIN, "--home", home, "config", "apply", "--yes"])
        child.stdout.destroy()
        child.stderr.destroy()
        child.once("exit", (code) => resume(Effect.succeed(code)))
      })
      assert.strictEqual(code, 0)
      assert.isTrue(calls.some(({ name }) => name === "applyPlan"))
    })
  )

  it.effect("stages nothing that is wrong: each path with its reason, and 78 (R57)", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const error = { type: "CONFIG", message: "/h/config.json cannot be used", hint: "correct the file" }
      const problems = [{ path: "runtime.cpus", reason: "Expected a value greater than 0" }]
      yield* fakeChoird(home, {
        load: Effect.succeed([{ type: "failed", error, problems }]),
        changes: []
      })
      const ran = yield* choirctl(home, ["config", "load"])
      assert.strictEqual(ran.code, 78)
      assert.include(ran.err, "runtime.cpus: Expected a value greater than 0\n")
      assert.include(ran.err, "nothing is staged: /h/config.json cannot be used\nhint: correct the file")
      assert.deepInclude(JSON.parse((yield* choirctl(home, ["config", "load", "--json"])).out), {
        ok: false,
        problems
      })
      const applied = yield* choirctl(home, ["config", "apply", "--yes"])
      assert.strictEqual(applied.code, 78)
      assert.include(applied.err, "runtime.cpus: Expected a value greater than 0\n")
      assert.match((yield* choirctl(home, ["config", "diff"])).out, /^No pending changes/u)
    })
  )
})
