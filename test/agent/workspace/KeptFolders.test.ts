import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import {
  FOLDER_KEPT_MS_MAX,
  FOLDERS_KEPT_MAX,
  type KeptFolders,
  makeKeptFolders
} from "#src/agent/workspace/KeptFolders.ts"
import { readFile } from "#src/agent/workspace/workspaceFiles.ts"
import { temporaryWorkspace } from "../../support/workspace.ts"

const inFolders = <E>(use: (at: { folders: KeptFolders; root: string; outside: string }) => Effect.Effect<void, E>) =>
  Effect.gen(function* () {
    const { outside, root } = yield* temporaryWorkspace
    const descriptor = yield* Effect.acquireRelease(
      Effect.sync(() => openSync(root, constants.O_RDONLY | constants.O_DIRECTORY)),
      (open) => Effect.sync(() => closeSync(open))
    )
    yield* use({ folders: yield* makeKeptFolders(descriptor), root, outside })
  })

const inFoldersAsync = (use: (at: { folders: KeptFolders; root: string; outside: string }) => Promise<void>) =>
  inFolders((at) => Effect.promise(() => use(at)))

const textIn = (folders: KeptFolders, path: string): Promise<string> => {
  const names = path.split("/")
  return folders.use(names.slice(0, -1), new AbortController().signal, async (folder) =>
    (await readFile(folder, names.at(-1) ?? "", 1000)).bytes.toString()
  )
}
const codeOfRead = (folders: KeptFolders, path: string) =>
  textIn(folders, path).catch((error: NodeJS.ErrnoException) => error.code)

/** The folders of the workspace that this process holds open. */
const open = (root: string): ReadonlyArray<string> =>
  readdirSync("/proc/self/fd").flatMap((descriptor) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${descriptor}`)
      return path.startsWith(`${root}/`) ? [path.slice(root.length + 1)] : []
    } catch {
      return []
    }
  })

/** Descriptors are closed by others, in their own time. */
const until = async (holds: () => boolean) => {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve))
}

describe("KeptFolders", () => {
  it.effect("opens a folder once for the files that are read from it", () =>
    inFoldersAsync(async ({ folders, root }) => {
      mkdirSync(join(root, "a/b"), { recursive: true })
      writeFileSync(join(root, "a/b/1"), "one")
      const seen = new Set<number>()
      const see = async (folder: number) => void seen.add(folder)
      for (let times = 0; times < 3; times++) await folders.use(["a", "b"], new AbortController().signal, see)
      assert.strictEqual(seen.size, 1)
      assert.strictEqual(await textIn(folders, "a/b/1"), "one")
      assert.deepStrictEqual(
        open(root).filter((path) => path === "a/b"),
        ["a/b"]
      )
    })
  )

  it.effect("walks again once another folder has its name, and follows no link that took its place", () =>
    inFoldersAsync(async ({ folders, outside, root }) => {
      mkdirSync(join(root, "a/b"), { recursive: true })
      writeFileSync(join(root, "a/b/1"), "one")
      assert.strictEqual(await textIn(folders, "a/b/1"), "one")
      renameSync(join(root, "a/b"), join(root, "a/old"))
      assert.strictEqual(await codeOfRead(folders, "a/b/1"), "ENOENT")
      mkdirSync(join(root, "a/b"))
      writeFileSync(join(root, "a/b/1"), "two")
      assert.strictEqual(await textIn(folders, "a/b/1"), "two")
      renameSync(join(root, "a"), join(root, "moved"))
      symlinkSync(outside, join(root, "a"))
      assert.strictEqual(await codeOfRead(folders, "a/b/1"), "ELOOP")
    })
  )

  it.effect("never takes a folder that is gone for one whose name says so", () =>
    inFoldersAsync(async ({ folders, root }) => {
      const named = join(root, "a (deleted)")
      mkdirSync(named)
      assert.strictEqual(await codeOfRead(folders, "a (deleted)/1"), "ENOENT")
      renameSync(named, join(root, "a"))
      rmdirSync(join(root, "a"))
      mkdirSync(named)
      writeFileSync(join(named, "1"), "one")
      assert.strictEqual(await textIn(folders, "a (deleted)/1"), "one")
    })
  )

  it.effect("keeps a few folders open for a moment, and one in use until its user is done", () =>
    inFolders(
      Effect.fnUntraced(function* ({ folders, root }) {
        const names = Array.from({ length: FOLDERS_KEPT_MAX + 2 }, (_, index) => `f${index}`)
        for (const name of names) mkdirSync(join(root, name))
        const done = Promise.withResolvers<void>()
        const user = folders.use(["f0"], new AbortController().signal, () => done.promise)
        yield* Effect.promise(() => until(() => open(root).includes("f0")))
        for (const name of names.slice(1))
          assert.strictEqual(yield* Effect.promise(() => codeOfRead(folders, `${name}/1`)), "ENOENT")
        yield* Effect.promise(() => until(() => open(root).length === FOLDERS_KEPT_MAX + 1))
        assert.includeMembers([...open(root)], ["f0", ...names.slice(2)])
        yield* TestClock.adjust(FOLDER_KEPT_MS_MAX)
        yield* Effect.promise(() => until(() => open(root).length === 1))
        assert.deepStrictEqual(open(root), ["f0"])
        done.resolve()
        yield* Effect.promise(() => user)
        yield* Effect.promise(() => until(() => open(root).length === 0))
      })
    )
  )
})
