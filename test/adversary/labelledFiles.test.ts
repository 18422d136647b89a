/** Files carry their labels one by one: what a lane that read strangers' text wrote labels who reads it, and nothing else of the workspace does. */
import { execFileSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SEND_FOLDER, SENT_COPIES } from "#schema/SentFile.ts"
import type { Source } from "#schema/Source.ts"
import { TREE_ENTRIES_MAX } from "#src/agent/workspace/treeVersions.ts"
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

  it.live("labels nobody by the names of other files beside git's own folder", () =>
    Effect.gen(function* () {
      const { ask, root } = yield* afterPage
      mkdirSync(join(root, "repo/.git"), { recursive: true })
      assert.deepStrictEqual((yield* ask(read("repo"))).sources, [])
    }).pipe(Effect.scoped)
  )

  for (const [what, wanted] of [
    ["sends", ["choir.fs.send", { paths: ["src/b.ts"] }]],
    ["leaves to be sent", command(`cp src/b.ts ${SEND_FOLDER}/b.ts && echo ${SEND_FOLDER}/b.ts`)]
  ] as const satisfies ReadonlyArray<readonly [string, Wanted]>) {
    it.live(`keeps its label in the copy that a lane ${what}`, () =>
      Effect.gen(function* () {
        const { ask, root } = yield* afterPage
        assert.strictEqual((yield* ask(wanted)).results[0]?.status, "success")
        const [copy = ""] = readdirSync(join(root, SENT_COPIES))
        assert.include(readFileSync(join(root, SENT_COPIES, copy), "utf8"), "keys")
        assert.deepStrictEqual((yield* ask(read("clean.md"))).sources, [])
        assert.deepStrictEqual((yield* ask(read(`${SENT_COPIES}/${copy}`))).sources, FOUND)
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
      "export GIT_CONFIG_GLOBAL=/dev/null; git init -q . && git add clean.md src/a.ts && git -c user.name=A -c user.email=a@localhost commit -qm a && git add . && git -c user.name=A -c user.email=a@localhost stash -q && git stash pop -q && git mv src/b.ts stashed.ts",
      "stashed.ts"
    ]
  ] as const) {
    it.live(`keeps its label when a command has it ${what}`, () =>
      Effect.gen(function* () {
        const { ask, root } = yield* afterPage
        const moved = yield* ask(command(text))
        assert.deepStrictEqual([moved.results[0]?.status, moved.sources], ["success", FOUND])
        assert.include(readFileSync(join(root, copy), "utf8"), "keys")
        assert.deepStrictEqual((yield* ask(read("clean.md"))).sources, [])
        assert.deepStrictEqual((yield* ask(read(copy))).sources, FOUND)
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

describe("a command of a labelled lane", () => {
  it.live("labels what it made, moved and changed, git's own folder and what is outside of the workspace", () =>
    Effect.gen(function* () {
      const { root } = yield* temporaryWorkspace
      for (const folder of ["old", "kept", ".git"]) mkdirSync(join(root, folder))
      for (const file of ["old/a", "kept/b", "kept/c", "d", ".git/HEAD"]) writeFileSync(join(root, file), "mine\n")
      const { ask, label } = yield* makeLabelledWorkspace(root)
      const done = yield* ask(WEB, command("mv old new; echo x >> kept/b; mkdir made; echo y > made/e; touch kept/f"))
      const paths = label()
        .only_in?.map(({ path }) => path)
        .toSorted()
      assert.deepStrictEqual(paths, [".git", "/tmp", "kept/b", "kept/f", "made", "new"])
      assert.deepStrictEqual(done.sources, [PAGE])
      for (const path of ["kept/c", "d"]) assert.deepStrictEqual((yield* ask(read(path))).sources, [], path)
      for (const path of ["kept/b", "made/e", "new/a", ".git/HEAD"])
        assert.deepStrictEqual((yield* ask(read(path))).sources, FOUND, path)
    }).pipe(Effect.scoped)
  )

  it.live("labels later commands too although it changed nothing in the workspace", () =>
    Effect.gen(function* () {
      const { root } = yield* temporaryWorkspace
      const { ask, label } = yield* makeLabelledWorkspace(root)
      yield* ask(WEB, command("true"))
      assert.deepStrictEqual(label().only_in, [{ path: "/tmp", sources: [PAGE] }])
      assert.deepStrictEqual((yield* ask(command("true"))).sources, FOUND)
    }).pipe(Effect.scoped)
  )

  it.live("keeps the date and the length of a file that it changes, and labels it all the same", () =>
    Effect.gen(function* () {
      const { root } = yield* temporaryWorkspace
      writeFileSync(join(root, "a"), "mine\n")
      const { ask, label } = yield* makeLabelledWorkspace(root)
      yield* ask(WEB, command("touch -r a .ref; printf 'obey\\n' > a; touch -r .ref a; rm .ref"))
      assert.strictEqual(readFileSync(join(root, "a"), "utf8"), "obey\n")
      assert.deepStrictEqual(
        label().only_in?.map(({ path }) => path),
        ["a", "/tmp"]
      )
    }).pipe(Effect.scoped)
  )

  it.live("labels everything where it had a network and was cut off, also in a lane that had read nothing", () =>
    Effect.gen(function* () {
      const { root } = yield* temporaryWorkspace
      execFileSync("mkfifo", [join(root, "begun"), join(root, "end")])
      const { ask, cut, label } = yield* makeLabelledWorkspace(root)
      const loaded = ["choir.exec", { command: "echo obey > page.md; echo > begun; cat end", network: true }] as const
      yield* cut(
        loaded,
        Effect.promise(() => readFile(join(root, "begun")))
      )
      assert.deepStrictEqual(label(), { written_from: ["command"] })
      assert.deepStrictEqual((yield* ask(read("page.md"))).sources, ["file", "command"])
    }).pipe(Effect.scoped)
  )

  it.live("labels everything where a process of it may be left", () =>
    Effect.gen(function* () {
      const { root } = yield* temporaryWorkspace
      const { ask, label } = yield* makeLabelledWorkspace(root, false)
      yield* ask(WEB, command("true"))
      assert.deepStrictEqual(label(), { written_from: [PAGE, "file"] })
    }).pipe(Effect.scoped)
  )

  it.live("labels everything where there is too much to look at", () =>
    Effect.gen(function* () {
      const { root } = yield* temporaryWorkspace
      const { ask, label } = yield* makeLabelledWorkspace(root)
      yield* ask(WEB, command(`mkdir many; cd many; seq ${TREE_ENTRIES_MAX + 1} | xargs touch`))
      assert.deepStrictEqual(label(), { written_from: [PAGE] })
    }).pipe(Effect.scoped)
  )
})

describe("the label of a file", () => {
  it.live("goes to edge with the end of a job that read it, and with nothing that a job read of other files", () =>
    Effect.gen(function* () {
      const { byJob } = yield* afterPage
      assert.deepStrictEqual((yield* byJob(read("clean.md"))).sources, [])
      assert.deepStrictEqual((yield* byJob(read("src/b.ts"))).sources, ["job:a", ...FOUND])
    }).pipe(Effect.scoped)
  )

  for (const [what, path] of [
    ["a copy that", "copied.md"],
    ["whatever", "clean.md"]
  ] as const) {
    it.live(`goes to edge with ${what} it reads while a command of a job may be copying labelled files`, () =>
      Effect.gen(function* () {
        const { beside, root } = yield* afterPage
        execFileSync("mkfifo", [join(root, "begun"), join(root, "end")])
        const { sources, told } = yield* beside(command("cp src/b.ts copied.md; echo > begun; cat end"), read(path), {
          begun: Effect.promise(() => readFile(join(root, "begun"))),
          end: Effect.promise(() => writeFile(join(root, "end"), "end"))
        })
        assert.deepStrictEqual(sources, FOUND)
        // The next session may find the copy too, when the agent goes down now and never ends this one.
        assert.deepStrictEqual([told.written_from, told.only_in], [[PAGE], undefined])
      }).pipe(Effect.scoped)
    )
  }

  it.live("comes from a job as from edge, and stays on what was written of the read text", () =>
    Effect.gen(function* () {
      const { byJob, label } = yield* afterPage
      yield* byJob(read("notes/page.md"), write("said/again.md", "the keys, please\n"))
      const added = label().only_in?.filter(({ path }) => path.startsWith("said"))
      assert.deepStrictEqual(added, [
        { path: "said/again.md", sources: FOUND },
        { path: "said", sources: FOUND }
      ])
    }).pipe(Effect.scoped)
  )

  it.live("outlives a restart of its session", () =>
    Effect.gen(function* () {
      const { root } = yield* temporaryWorkspace
      const { label, live } = yield* makeLabelledWorkspace(root)
      const { results, sources } = yield* live([
        { wanted: [WEB, write("a.md")] },
        { wanted: [["choir.fs.find", { glob: "*.md" }]], restarts: true }
      ])
      assert.deepStrictEqual(results.at(-1)?.sources, FOUND)
      assert.deepStrictEqual(sources, [PAGE, "file"])
      assert.deepStrictEqual(label().only_in, [{ path: "a.md", sources: [PAGE] }])
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
