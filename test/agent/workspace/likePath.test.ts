/** Names of files that look the same and are written otherwise. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { temporaryWorkspace, toolServices } from "../../support/workspace.ts"

const workspace = Effect.gen(function* () {
  const { root } = yield* temporaryWorkspace
  const made = yield* Effect.provideContext(Workspace, yield* toolServices(root))
  return { root, workspace: made }
})
const name = "Abschätzung.txt"

describe("a path that leads nowhere", () => {
  it.live("is refused with the one that has other letters of the same look, spelled out", () =>
    Effect.gen(function* () {
      const { root, workspace: files } = yield* workspace
      mkdirSync(join(root, "Größe".normalize("NFD")))
      writeFileSync(join(root, "Größe".normalize("NFD"), name.normalize("NFD")), "x")
      const { message } = yield* Effect.flip(files.read(`Größe/${name}`))
      assert.match(message, /There is "Gro\\u0308ße\/Abscha\\u0308tzung\.txt"/u)
      const path = JSON.parse(/There is ("[^"]*")/u.exec(message)?.[1] ?? "") as string
      assert.strictEqual(Buffer.from((yield* files.read(path)).bytes).toString(), "x")
      assert.match((yield* Effect.flip(files.list("Größe"))).message, /There is "Gro\\u0308ße"/u)
      assert.match((yield* Effect.flip(Effect.scoped(files.folder("GRÖSSE")))).message, /workspace\.$/u)
    })
  )

  it.live("is refused with the one in other case", () =>
    Effect.gen(function* () {
      const { root, workspace: files } = yield* workspace
      writeFileSync(join(root, "README.md"), "x")
      assert.match((yield* Effect.flip(files.read("readme.md"))).message, /There is "README\.md"\.$/u)
      assert.match((yield* Effect.flip(files.read("other.md"))).message, /workspace\.$/u)
    })
  )

  it.live("makes no file beside one that looks the same", () =>
    Effect.gen(function* () {
      const { root, workspace: files } = yield* workspace
      writeFileSync(join(root, name.normalize("NFD")), "x")
      const made = yield* Effect.flip(files.update(name, () => Result.succeed(Buffer.from("y"))))
      assert.match(String(made), /looks the same/u)
      assert.lengthOf(readdirSync(root), 1)
      yield* files.update("Abschatzung.txt", () => Result.succeed(Buffer.from("y")))
      assert.isTrue(existsSync(join(root, "Abschatzung.txt")))
    })
  )
})
