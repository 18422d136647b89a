/** What commands say where a home, a file or a passphrase is missing. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { sizeText } from "#src/choirctl/render/size.ts"
import { choirctl } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"

const LIVE = { timeout: 60_000 }

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

describe("a missing home", LIVE, () => {
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

describe("a file to restore", LIVE, () => {
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
      assert.include(database.err, `nofile does not exist\nhint: name a file that choirctl --home ${home} db backup made`)
    })
  )
})

describe("choirctl logs", LIVE, () => {
  it.live("ends with the last line where no terminal shows it", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      mkdirSync(join(home, "logs"))
      writeFileSync(join(home, "logs", "choird.log"), '{"message":"one"}\n')
      assert.strictEqual((yield* choirctl(home, ["logs", "choird"])).out, '{"message":"one"}\n')
    })
  )
})

describe("a size", () => {
  it("is never shown as nothing", () => {
    for (const [bytes, text] of [
      [0, "0 bytes"],
      [300, "300 bytes"],
      [40_000, "39 KiB"],
      [1_258_291, "1.2 MiB"],
      [25 * 1024 ** 3, "25 GiB"]
    ] as const)
      assert.strictEqual(sizeText(bytes), text)
  })
})
