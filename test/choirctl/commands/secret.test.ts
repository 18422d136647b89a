import { chmodSync, existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { fakeChoird } from "../../support/fakeChoird.ts"
import { SECRET_BYTES_MAX } from "#src/choirctl/commands/secret.ts"

const made = Effect.gen(function* () {
  const home = yield* temporaryFolder
  yield* choirctl(home, ["init"])
  return home
})

const secrets = (home: string): unknown => JSON.parse(readFileSync(join(home, "secrets.json"), "utf8"))

describe("choirctl secret", () => {
  it.effect("takes a value from standard input, without its line end, and keeps the file private (E16, R34)", () =>
    Effect.gen(function* () {
      const home = yield* made
      const set = yield* choirctl(home, ["secret", "set", "b-key"], { stdin: "one\n" })
      assert.deepStrictEqual(set, { code: 0, out: "set b-key\n", err: "" })
      const again = yield* choirctl(home, ["secret", "set", "b-key", "--json"], { stdin: "two words " })
      assert.deepStrictEqual(document(again), { ok: true, name: "b-key", replaced: true })
      yield* choirctl(home, ["secret", "set", "a-key"], { stdin: "x" })
      assert.deepStrictEqual(secrets(home), { "a-key": "x", "b-key": "two words " })
      assert.strictEqual(statSync(join(home, "secrets.json")).mode & 0o777, 0o600)
      assert.deepStrictEqual(document(yield* choirctl(home, ["secret", "list", "--json"])), ["a-key", "b-key"])
    })
  )

  it.live("keeps each of the values that are set at the same time", () =>
    Effect.gen(function* () {
      const home = yield* made
      const names = Array.from({ length: 8 }, (_, index) => `key-${index}`)
      const results = yield* Effect.forEach(
        names,
        (name) => Effect.map(choirctl(home, ["secret", "set", name], { stdin: name }), ({ code }) => ({ name, code })),
        { concurrency: "unbounded" }
      )
      const set = results.filter(({ code }) => code === 0).map(({ name }) => name)
      // On a busy machine the last ones may be asked to try again, and then have set nothing.
      assert.deepStrictEqual(
        results.map(({ code }) => code).filter((code) => code !== 0 && code !== 75),
        []
      )
      assert.isAtLeast(set.length, 2)
      assert.deepStrictEqual(secrets(home), Object.fromEntries(set.map((name) => [name, name])))
    })
  )

  it.effect("takes a value as an argument with a warning that does not repeat it (D44)", () =>
    Effect.gen(function* () {
      const home = yield* made
      const set = yield* choirctl(home, ["secret", "set", "key", "hunter2"])
      assert.strictEqual(set.code, 0)
      assert.include(set.err, "warning:")
      assert.notInclude(set.out + set.err, "hunter2")
      assert.deepStrictEqual(secrets(home), { key: "hunter2" })
    })
  )

  it.effect("refuses an empty value, one that is too long, and a name that is none", () =>
    Effect.gen(function* () {
      const home = yield* made
      assert.strictEqual((yield* choirctl(home, ["secret", "set", "key"])).code, 2)
      const long = yield* choirctl(home, ["secret", "set", "key"], { stdin: "x".repeat(SECRET_BYTES_MAX + 1) })
      assert.strictEqual(long.code, 2)
      assert.strictEqual((yield* choirctl(home, ["secret", "set", "No Name"], { stdin: "x" })).code, 2)
      assert.deepStrictEqual(secrets(home), {})
    })
  )

  it.effect("deletes, and warns when config.json still refers to the name", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const flags = ["--model-provider", "openrouter", "--model-name", "x/y", "--model-secret-stdin"]
      yield* choirctl(home, ["init", ...flags], { stdin: "sk-1\n" })
      assert.deepStrictEqual(secrets(home), { "openrouter-key": "sk-1" })
      const deleted = yield* choirctl(home, ["secret", "delete", "openrouter-key", "--yes"])
      assert.strictEqual(deleted.code, 0)
      assert.include(deleted.err, "models.main.secret")
      assert.deepStrictEqual(secrets(home), {})
      const again = yield* choirctl(home, ["secret", "delete", "openrouter-key"])
      assert.strictEqual(again.code, 1)
    })
  )

  it.effect("says how a running choird takes the change over", () =>
    Effect.gen(function* () {
      const home = yield* made
      yield* fakeChoird(home)
      const set = yield* choirctl(home, ["secret", "set", "key"], { stdin: "x" })
      assert.match(set.err, /choirctl --home \S+ secret apply/u)
    })
  )

  it.effect("changes no secrets.json that others may read, that is a link, or that is broken (R34)", () =>
    Effect.gen(function* () {
      const home = yield* made
      const file = join(home, "secrets.json")
      const set = choirctl(home, ["secret", "set", "key"], { stdin: "x" })
      chmodSync(file, 0o644)
      const open = yield* set
      assert.strictEqual(open.code, 78)
      assert.include(open.err, "chmod 600")
      chmodSync(file, 0o600)
      writeFileSync(file, '{"a": "top-secret"')
      const broken = yield* set
      assert.strictEqual(broken.code, 78)
      assert.notInclude(broken.err, "top-secret")
      const elsewhere = yield* temporaryFolder
      chmodSync(elsewhere, 0o700)
      symlinkSync(join(home, "config.json"), join(elsewhere, "secrets.json"))
      assert.strictEqual((yield* choirctl(elsewhere, ["secret", "set", "key"], { stdin: "x" })).code, 78)
    })
  )

  it.effect("creates nothing in a home that is not there", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "none")
      const ran = yield* choirctl(home, ["secret", "set", "key", "--json"], { stdin: "x" })
      assert.strictEqual(ran.code, 78)
      assert.nestedProperty(document(ran), "error.hint")
      assert.include(ran.out, `choirctl --home ${home} init makes it`)
      assert.isFalse(existsSync(home))
    })
  )
})
