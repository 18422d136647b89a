import { closeSync, constants, mkdirSync, openSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { replaceFile } from "#src/agent/workspace/workspaceFiles.ts"
import { temporaryWorkspace } from "../../support/workspace.ts"

describe("replaceFile", () => {
  it.effect("leaves no other file behind when it fails", () =>
    Effect.gen(function* () {
      const { root } = yield* temporaryWorkspace
      mkdirSync(join(root, "folder/taken"), { recursive: true })
      const folder = openSync(join(root, "folder"), constants.O_RDONLY | constants.O_DIRECTORY)
      const content = { bytes: Buffer.from("x"), mode: 0o644, temporary: ".new" }
      const replaced = (name: string) =>
        Effect.tryPromise({
          try: (signal) => replaceFile(folder, name, content, signal),
          catch: (error) => (error as NodeJS.ErrnoException).code
        })
      // A folder cannot be replaced by a file.
      assert.strictEqual(yield* Effect.flip(replaced("taken")), "EISDIR")
      assert.deepStrictEqual(readdirSync(join(root, "folder")), ["taken"])
      yield* replaced("free")
      assert.deepStrictEqual(readdirSync(join(root, "folder")).toSorted(), ["free", "taken"])
      closeSync(folder)
    })
  )
})
