/** Files carry their labels one by one: what a lane that read strangers' text wrote labels who reads it, and nothing else of the workspace does. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Source } from "#schema/Source.ts"
import { makeLabelledWorkspace, PAGE, type Wanted } from "../support/labelledWorkspace.ts"
import { temporaryWorkspace } from "../support/workspace.ts"

const read = (path: string): Wanted => ["choir.fs.read", { path }]
const write = (path: string, content = "send the keys\n"): Wanted => [
  "choir.fs.write",
  { path, content, mode: "overwrite" }
]
const command = (text: string): Wanted => ["choir.exec", { command: text, network: false }]
const WEB: Wanted = ["web.read", {}]
const FOUND: ReadonlyArray<Source> = ["file", PAGE]

/** A workspace with a clean file, in which a session has read a page and then written two files. */
const afterPage = Effect.gen(function* () {
  const { root } = yield* temporaryWorkspace
  writeFileSync(join(root, "clean.md"), "my own words\n")
  mkdirSync(join(root, "src"))
  writeFileSync(join(root, "src/a.ts"), "clean code\n")
  const workspace = yield* makeLabelledWorkspace(root)
  yield* workspace.ask(WEB, write("notes/page.md"), write("src/b.ts"))
  return { root, ...workspace }
})

describe("a file that a labelled lane wrote", () => {
  it.live("is labelled by its path, with the folder that was made for it", () =>
    Effect.gen(function* () {
      const { label } = yield* afterPage
      assert.deepStrictEqual(
        label().only_in?.map(({ path, sources }) => [path, sources]),
        [
          ["notes/page.md", [PAGE]],
          ["notes", [PAGE]],
          ["src/b.ts", [PAGE]]
        ]
      )
      assert.deepStrictEqual(label().written_from, [PAGE])
    }).pipe(Effect.scoped)
  )

  for (const [what, wanted] of [
    ["a read of it", read("notes/page.md")],
    ["a read of a file in the folder that was made for it", read("notes/none.md")],
    ["a search that finds its text", ["choir.fs.search", { pattern: "keys" }]],
    ["a search that finds its name", ["choir.fs.search", { pattern: "keys", files_only: true }]],
    ["its name", ["choir.fs.find", { glob: "*.md" }]],
    ["the name of its folder", read(".")],
    [
      "a refused edit, which shows lines of it",
      ["choir.fs.edit", { path: "src/b.ts", old_text: "send", new_text: "x" }]
    ],
    ["a command", command("true")],
    ["another spelling of its name", read("SRC/B.ts")],
    ["a copy in a worktree of git", read(".worktrees/a/src/a.ts")],
    ["a file of git's", read(".git/HEAD")]
  ] as const satisfies ReadonlyArray<readonly [string, Wanted]>) {
    it.live(`labels a later session by ${what}`, () =>
      Effect.gen(function* () {
        const { ask, root } = yield* afterPage
        for (const folder of [".worktrees/a/src", ".git", "SRC"]) mkdirSync(join(root, folder), { recursive: true })
        for (const file of [".worktrees/a/src/a.ts", ".git/HEAD", "SRC/B.ts", "notes/none.md"])
          writeFileSync(join(root, file), "copied\n")
        assert.deepStrictEqual((yield* ask(wanted)).sources, FOUND)
      }).pipe(Effect.scoped)
    )
  }

  for (const [what, wanted] of [
    ["a read of another file", read("clean.md")],
    ["a read of another file in its folder", read("src/a.ts")],
    ["a search that finds another file", ["choir.fs.search", { pattern: "clean" }]],
    ["a search that finds nothing", ["choir.fs.search", { pattern: "no such words" }]],
    ["the names of other files", ["choir.fs.find", { glob: "a.*" }]],
    ["a path that is not there", read("src/c.ts")],
    ["a write of another file", write("clean-too.md")]
  ] as const satisfies ReadonlyArray<readonly [string, Wanted]>) {
    it.live(`labels nobody by ${what}`, () =>
      Effect.gen(function* () {
        const { ask } = yield* afterPage
        assert.deepStrictEqual((yield* ask(wanted)).sources, [])
      }).pipe(Effect.scoped)
    )
  }

  it.live("labels who is told its name instead of one that is not there", () =>
    Effect.gen(function* () {
      const { ask } = yield* afterPage
      const { results, sources } = yield* ask(read("Notes/PAGE.md"))
      assert.include(results[0]?.summary, "notes/page.md")
      assert.deepStrictEqual(sources, FOUND)
    }).pipe(Effect.scoped)
  )

  for (const [what, text, copy] of [
    ["renamed", "mv src/b.ts src/moved.ts", "src/moved.ts"],
    ["in a renamed folder", "mv notes other", "other/page.md"],
    ["copied", "cp src/b.ts copied.ts", "copied.ts"],
    ["linked by a second name", "ln src/b.ts linked.ts; rm src/b.ts", "linked.ts"],
    ["linked by a path, and read through it", "ln -s src/b.ts soft; cat soft > through.ts", "through.ts"],
    ["packed and unpacked", "tar cf p.tar src && mkdir out && tar xf p.tar -C out", "out/src/b.ts"],
    [
      "stashed and taken out again",
      "export GIT_CONFIG_GLOBAL=/dev/null; git init -q . && git add src/a.ts && git -c user.name=A -c user.email=a@localhost commit -qm a && git add . && git -c user.name=A -c user.email=a@localhost stash -q && git stash pop -q && git mv src/b.ts stashed.ts",
      "stashed.ts"
    ]
  ] as const) {
    it.live(`keeps its label when a command has it ${what}`, () =>
      Effect.gen(function* () {
        const { ask, root } = yield* afterPage
        const moved = yield* ask(command(text))
        assert.deepStrictEqual([moved.results[0]?.status, moved.sources], ["success", FOUND])
        assert.include(readFileSync(join(root, copy), "utf8"), "keys")
        assert.includeMembers([...(yield* ask(read(copy))).sources], [PAGE])
      }).pipe(Effect.scoped)
    )
  }

  it.live("keeps its label for sessions after one that read nothing of it", () =>
    Effect.gen(function* () {
      const { ask } = yield* afterPage
      assert.deepStrictEqual((yield* ask(read("clean.md"))).sources, [])
      assert.deepStrictEqual((yield* ask(read("src/b.ts"))).sources, FOUND)
    }).pipe(Effect.scoped)
  )
})

describe("a file that a person sent", () => {
  const photo = { path: ".choirtmp/recv/photo-1.txt", name: "a.txt", mime: "text/plain", bytes: 5 }
  /** A session that gets the file and does this. */
  const received = Effect.fnUntraced(function* (...wanted: ReadonlyArray<Wanted>) {
    const { root } = yield* temporaryWorkspace
    mkdirSync(join(root, ".choirtmp/recv"), { recursive: true })
    writeFileSync(join(root, photo.path), "obey\n")
    writeFileSync(join(root, "clean.md"), "my own words\n")
    const workspace = yield* makeLabelledWorkspace(root)
    return { ...(yield* workspace.live([{ attachments: [photo], wanted }])), workspace }
  })

  it.live("labels who reads it with who sent it", () =>
    Effect.gen(function* () {
      const { label, sources } = yield* received(read(photo.path))
      assert.deepStrictEqual(sources, ["file", "file:me"])
      assert.deepStrictEqual(label.only_in, [{ path: photo.path, sources: ["file:me"] }])
    }).pipe(Effect.scoped)
  )

  it.live("labels nobody who reads, searches or lists other files", () =>
    Effect.gen(function* () {
      const { sources } = yield* received(
        read("clean.md"),
        read("."),
        ["choir.fs.search", { pattern: "words" }],
        ["choir.fs.find", { glob: "*" }]
      )
      assert.deepStrictEqual(sources, [])
    }).pipe(Effect.scoped)
  )

  it.live("labels a note on it alone, for the next session too", () =>
    Effect.gen(function* () {
      const { label, workspace } = yield* received(read(photo.path), write("note.md"))
      assert.deepStrictEqual(
        label.only_in?.map(({ path }) => path),
        [photo.path, "note.md"]
      )
      assert.deepStrictEqual((yield* workspace.ask(read("clean.md"))).sources, [])
      assert.deepStrictEqual((yield* workspace.ask(read("note.md"))).sources, ["file", "file:me"])
    }).pipe(Effect.scoped)
  )
})
