/** What a command changed in a workspace, as two looks at it tell. */
import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { changedPaths, TREE_ENTRIES_MAX, TREE_TICK_MS } from "#src/agent/workspace/treeVersions.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { temporaryWorkspace } from "../../support/workspace.ts"

/** The paths that differ after the change, of a workspace that the first function makes. */
const changedBy = Effect.fnUntraced(function* (make: (root: string) => void, change: (root: string) => void) {
  const { root, outside } = yield* temporaryWorkspace
  make(root)
  symlinkSync(outside, join(root, "link"))
  return yield* Effect.gen(function* () {
    const { tree } = yield* Workspace
    const before = yield* tree
    yield* Effect.sleep(TREE_TICK_MS)
    change(root)
    writeFileSync(join(outside, "more"), "")
    const after = yield* tree
    return before === undefined || after === undefined ? undefined : changedPaths(before, after)
  }).pipe(Effect.provide(Workspace.layer({ root })))
})

const put = (root: string, path: string, text = "text") => {
  mkdirSync(join(root, path, ".."), { recursive: true })
  writeFileSync(join(root, path), text)
}
const nothing = () => undefined

describe("two looks at a workspace", () => {
  it.live("tell nothing where nothing changed, and follow no link", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* changedBy((root) => put(root, "a/b"), nothing), [])
      assert.deepStrictEqual(yield* changedBy(nothing, nothing), [])
    }).pipe(Effect.scoped)
  )

  it.live("tell a change of the same length and with the date of before", () =>
    Effect.gen(function* () {
      const date = new Date(1000)
      const changed = yield* changedBy(
        (root) => {
          put(root, "a/b", "mine")
          put(root, "a/c", "mine")
          utimesSync(join(root, "a/b"), date, date)
        },
        (root) => {
          put(root, "a/b", "evil")
          utimesSync(join(root, "a/b"), date, date)
        }
      )
      assert.deepStrictEqual(changed, ["a/b"])
    }).pipe(Effect.scoped)
  )

  it.live("tell new names and those of moved folders, without what is in them", () =>
    Effect.gen(function* () {
      const changed = yield* changedBy(
        (root) => {
          put(root, "a/x/1")
          put(root, "b/x/2")
          put(root, "kept/3")
        },
        (root) => {
          put(root, "new/deep/4")
          renameSync(join(root, "a"), join(root, "c"))
          renameSync(join(root, "b"), join(root, "a"))
          symlinkSync("kept", join(root, "kept/soft"))
          rmSync(join(root, "kept/3"))
        }
      )
      assert.deepStrictEqual(changed?.toSorted(), ["a", "c", "kept/soft", "new"])
    }).pipe(Effect.scoped)
  )

  it.live("take git's own folders for changed, in any spelling", () =>
    Effect.gen(function* () {
      const make = (root: string) => {
        for (const path of [".git/HEAD", "a/.GIT/HEAD", ".github/b"]) put(root, path)
      }
      assert.deepStrictEqual((yield* changedBy(make, nothing))?.toSorted(), [".git", "a/.GIT"])
    }).pipe(Effect.scoped)
  )

  it.live("tell nothing at all where it is too much, too deep or not UTF-8", () =>
    Effect.gen(function* () {
      const many = (root: string) => {
        for (let n = 0; n <= TREE_ENTRIES_MAX; n += 1) put(root, `many/${n}`, "")
      }
      assert.isUndefined(yield* changedBy(many, nothing))
      assert.isUndefined(yield* changedBy((root) => put(root, `${"d/".repeat(70)}a`), nothing))
      const odd = (root: string) => writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff])]), "")
      assert.isUndefined(yield* changedBy(nothing, odd))
    }).pipe(Effect.scoped)
  )
})
