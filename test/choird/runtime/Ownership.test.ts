import { chownSync, linkSync, lstatSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { giveWorkspace, SANDBOX_UID_FIRST } from "#src/choird/runtime/Ownership.ts"
import { whyNotRoot } from "../../support/packages.ts"
import { startSwapper } from "../../support/swapper.ts"
import { temporaryWorkspace } from "../../support/workspace.ts"

const suite = "a workspace that is given to an agent's uid (D11)"
const notRoot = whyNotRoot(suite)
const [ONE, OTHER] = [SANDBOX_UID_FIRST + 7, SANDBOX_UID_FIRST + 8]
const PERSON = 12_345
const SWAPS = Number(process.env["SWAPS"] ?? 2000)

const owner = (path: string) => lstatSync(path).uid

describe.skipIf(notRoot !== undefined)(suite, () => {
  it.live("becomes its own, but for files of persons, files with a second name, and what links lead to", () =>
    Effect.gen(function* () {
      const { outside, root } = yield* temporaryWorkspace
      mkdirSync(join(root, "a/b"), { recursive: true })
      for (const name of ["-rf", "a/b/root's\n", "a/person's", "a/another's", "a/first"])
        writeFileSync(join(root, name), "")
      chownSync(join(root, "a/person's"), PERSON, PERSON)
      chownSync(join(root, "a/another's"), OTHER, OTHER)
      linkSync(join(root, "a/first"), join(outside, "second"))
      symlinkSync(outside, join(root, "a/link"))
      yield* giveWorkspace({ uid: ONE, gid: ONE }, root)
      for (const name of ["", "-rf", "a", "a/b", "a/b/root's\n", "a/another's", "a/link"])
        assert.strictEqual(owner(join(root, name)), ONE, name)
      assert.deepStrictEqual([owner(join(root, "a/person's")), owner(join(root, "a/first"))], [PERSON, 0])
      for (const name of ["", ...readdirSync(outside)]) assert.strictEqual(owner(join(outside, name)), 0, name)
    })
  )

  it.live(`takes nothing outside with it while folders are swapped ${SWAPS} times for links (R39)`, () =>
    Effect.gen(function* () {
      const { outside, root } = yield* temporaryWorkspace
      const names = Array.from({ length: 40 }, (_, index) => `file${index === 0 ? "" : index}`)
      mkdirSync(join(root, "send"))
      for (const name of names) {
        writeFileSync(join(root, "send", name), "")
        writeFileSync(join(outside, name), "")
      }
      const swapper = yield* Effect.acquireRelease(
        Effect.sync(() => startSwapper(root, outside)),
        ({ stop }) => Effect.promise(stop)
      )
      let given = 0
      while (swapper.count() < SWAPS || given < 20) {
        // What goes away in the middle makes find fail, which is no matter here.
        const uid = given % 2 === 0 ? ONE : OTHER
        yield* Effect.ignore(giveWorkspace({ uid, gid: uid }, root))
        given += 1
        for (const name of ["", ...names]) assert.strictEqual(owner(join(outside, name)), 0, name)
      }
    })
  )
})
