import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ResourceName } from "#schema/Ids.ts"
import { choirctl, document, spawnChoirctl } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { fakeChoird } from "../../support/fakeChoird.ts"

/** A home with one secret, and a choird that knows a workspace with two files in it. */
const made = Effect.gen(function* () {
  const home = yield* temporaryFolder
  yield* choirctl(home, ["init"])
  yield* choirctl(home, ["secret", "set", "key"], { stdin: "value" })
  const path = join(home, "scratch")
  mkdirSync(join(path, "deep"), { recursive: true })
  writeFileSync(join(path, "one"), "x".repeat(1024))
  writeFileSync(join(path, "deep", "two"), "x".repeat(512))
  const calls = yield* fakeChoird(home, {
    workspaces: Effect.succeed([{ name: ResourceName.make("main"), path, leased_by: null }])
  })
  const backup = join(home, "backup.gz")
  writeFileSync(backup, "an older backup")
  return { backup, calls, home, path }
})

describe("a command that destroys", () => {
  it.effect("is a usage error where nobody can be asked, names what is lost, and touches nothing", () =>
    Effect.gen(function* () {
      const { backup, calls, home, path } = yield* made
      const destructive: ReadonlyArray<readonly [ReadonlyArray<string>, string]> = [
        [["workspace", "reset", "main"], `main is ${path} and holds 2 files (1.5 KiB). All of it will be deleted.`],
        [["secret", "delete", "key"], "The value of key will be deleted"],
        [["db", "backup", backup], `${backup} exists and will be replaced`]
      ]
      for (const [args, lost] of destructive) {
        const ran = yield* choirctl(home, args)
        assert.strictEqual(ran.code, 2, ran.err)
        assert.include(ran.err, lost)
        assert.isBelow(ran.err.indexOf(lost), ran.err.indexOf("error: This command needs --yes"), ran.err)
        assert.include(ran.err, `hint: choirctl --home ${home} ${args.join(" ")} --yes`)
        const refused = yield* choirctl(home, [...args, "--json"])
        assert.strictEqual(refused.code, 2)
        const { error } = document(refused) as { readonly error: { readonly message: string } }
        assert.propertyVal(error, "type", "USAGE")
        assert.include(error.message, lost)
      }
      assert.isFalse(calls.some(({ name }) => name === "reset" || name === "backup"))
      assert.deepStrictEqual(JSON.parse(readFileSync(join(home, "secrets.json"), "utf8")), { key: "value" })
      assert.strictEqual(readFileSync(backup, "utf8"), "an older backup")
    })
  )

  it.effect("asks nothing about what is not there", () =>
    Effect.gen(function* () {
      const { calls, home } = yield* made
      for (const verb of ["reset", "trust"]) {
        const ran = yield* choirctl(home, ["workspace", verb, "nosuch"])
        assert.strictEqual(ran.code, 1)
        assert.strictEqual(ran.err, "error: there is no workspace nosuch\nhint: known: main\n")
      }
      for (const command of [["backup"], ["db", "backup"]])
        for (const [file, problem] of [
          [join(home, "none/b.gz"), `there is no folder ${join(home, "none")}`],
          [home, `${home} is a folder`]
        ] as const) {
          const ran = yield* choirctl(home, [...command, file])
          assert.strictEqual(ran.code, 2)
          assert.include(ran.err, problem)
          assert.notInclude(ran.err, "passphrase")
        }
      assert.isFalse(calls.some(({ name }) => name === "reset" || name === "trust" || name === "backup"))
    })
  )

  it.effect("needs --yes for a restore by force, once no choird is in its way", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      writeFileSync(join(home, "b.gz"), "a backup")
      const ran = yield* choirctl(home, ["db", "restore", join(home, "b.gz"), "--force"])
      assert.strictEqual(ran.code, 2)
      assert.include(ran.err, "Every session in the database")
      assert.isFalse(existsSync(join(home, "data")))
    })
  )

  it.live("asks at a terminal: Enter keeps everything, y deletes it", () =>
    Effect.gen(function* () {
      const { calls, home } = yield* made
      const args = ["--home", home, "workspace", "reset", "main"]
      const question = "Delete everything in main?"
      const kept = yield* spawnChoirctl(args, { typing: [{ after: question, text: "\r" }] })
      assert.strictEqual(kept.code, 1, kept.out)
      assert.include(kept.out, "holds 2 files (1.5 KiB)")
      assert.include(kept.out, "nothing was changed")
      assert.isFalse(calls.some(({ name }) => name === "reset"))
      const done = yield* spawnChoirctl(args, { typing: [{ after: question, text: "y" }] })
      assert.strictEqual(done.code, 0, done.out)
      assert.include(done.out, "main is empty")
      assert.isTrue(calls.some(({ name }) => name === "reset"))
    })
  )
})
