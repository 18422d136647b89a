/** What commands say where a home, a file or a passphrase is missing. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"

const ON_A_HOME: ReadonlyArray<ReadonlyArray<string>> = [
  ["secret", "list"],
  ["logs", "choird"],
  ["backup", "choir.gz"],
  ["db", "migrate"],
  ["db", "backup", "db.gz"],
  ["db", "restore", "db.gz"],
  ["agent", "init", "a"],
  ["daemon", "start"],
  ["daemon", "status"],
  ["config", "validate"],
  ["config", "apply"],
  ["status"],
  ["approval", "list"],
  ["model", "test", "main"]
]

describe("a missing home", () => {
  for (const args of ON_A_HOME)
    it.effect(`is told by choirctl ${args.join(" ")}, with init and --home`, () =>
      Effect.gen(function* () {
        const home = join(yield* temporaryFolder, "no home")
        const ran = yield* choirctl(home, args)
        assert.strictEqual(ran.code, 78, ran.err)
        assert.match(ran.err, /does not exist/u)
        const hint = `hint: choirctl --home '${home}' init makes it; --home or CHOIR_HOME names another home`
        assert.include(ran.err, hint)
        assert.isFalse(existsSync(home))
      })
    )
})

describe("a call without a command", () => {
  it.effect("lists the commands and exits 2, while a group of commands says what is missing", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const bare = yield* choirctl(home, [])
      assert.strictEqual(bare.code, 2)
      assert.match(bare.err, /SUBCOMMANDS[\s\S]* init +Set up a home/u)
      const group = yield* choirctl(home, ["agent"])
      assert.strictEqual(group.code, 2)
      assert.include(group.err, "a command is missing")
    })
  )

  it.effect("and an argument of the wrong shape are told in words", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const ran = yield* choirctl(home, ["approval", "show", "x"])
      assert.include(ran.err, "an approval is named by its number")
      assert.notInclude(ran.err, "RegExp")
    })
  )
})

describe("a configuration that cannot be read", () => {
  it.effect("is told with the name of the file where it is missing, and in plain words where a key is unknown", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const missing = yield* choirctl(home, ["config", "validate"])
      assert.include(missing.err, `error: ${join(home, "config.json")} cannot be used: it does not exist\n`)
      yield* choirctl(home, ["init"])
      const file = join(home, "config.json")
      writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), agnts: {} }), { mode: 0o600 })
      const init = yield* choirctl(home, ["agent", "init", "ada"])
      assert.strictEqual(init.code, 78)
      assert.include(init.err, `${file} is not valid:\nagnts: an unknown key; did you mean agents?\n`)
    })
  )
})

describe("a file to restore", () => {
  it.effect("that is missing is told with the command that makes one, and no home is made", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const home = join(folder, "home")
      for (const [file, problem] of [
        [join(folder, "nofile"), "does not exist"],
        [folder, "is not a file"]
      ] as const) {
        const ran = yield* choirctl(home, ["restore", file])
        assert.strictEqual(ran.code, 2)
        assert.include(ran.err, `error: ${file} ${problem}\nhint: name a file that choirctl --home ${home} backup made`)
      }
      assert.isFalse(existsSync(home))
      mkdirSync(home)
      const database = yield* choirctl(home, ["db", "restore", join(folder, "nofile")])
      assert.include(
        database.err,
        `nofile does not exist\nhint: name a file that choirctl --home ${home} db backup made`
      )
    })
  )
})

describe("choirctl logs", () => {
  it.live("ends with the last line where no terminal shows it", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      mkdirSync(join(home, "logs"))
      writeFileSync(join(home, "logs", "choird.log"), '{"message":"one"}\n')
      assert.strictEqual((yield* choirctl(home, ["logs", "choird"])).out, '{"message":"one"}\n')
    })
  )
})
