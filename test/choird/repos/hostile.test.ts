import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { AGENT, GLOBAL_FILES, makeImageHome } from "../../support/images.ts"

type Home = Effect.Success<typeof makeImageHome>

const manifest = (runtime: Record<string, unknown>) =>
  JSON.stringify({ llm: { name: "x", description: "x", input_schema: { type: "object" } }, runtime })

/** @param id of the entry's object; `blob` is a file, whatever the mode says. */
const raw =
  (name: string | Uint8Array, mode = "100644", id = "") =>
  ({ agent }: Home) => {
    const made = id === "" && mode === "40000" ? agent.git(["mktree"], "") : agent.blob("x")
    agent.commitRaw([{ name: Buffer.from(name), mode, id: /^[0-9a-f]/u.test(id) && id !== "blob" ? id : made }])
  }

const twice = ({ agent }: Home) => {
  const entry = (content: string) => ({ name: Buffer.from("x"), mode: "100644", id: agent.blob(content) })
  agent.commitRaw([entry("one"), entry("two")])
}

/** 100,000 names of one file: a tree of a few hundred bytes, 317 of it, 317 of that. */
const crowd = ({ agent }: Home) => {
  const id = agent.blob("x")
  const folder = (mode: string, entry: string) =>
    agent.git(
      ["mktree"],
      Array.from({ length: 317 }, (_, at) => `${mode} ${entry}\t${String(at).padStart(3, "0")}`).join("\n")
    )
  const inner = folder("100644 blob", id)
  agent.commitRaw([{ name: Buffer.from("d"), mode: "40000", id: folder("040000 tree", inner) }])
}

/** 520 paths of 101 folders each, of a hundred trees: the outer ones have one folder each, and three of the inner ones have the next one twice. */
const deep = ({ agent }: Home) => {
  const tree = (entries: ReadonlyArray<string>) => agent.git(["mktree"], entries.join("\n"))
  const blob = agent.blob("x")
  let inner = tree(Array.from({ length: 65 }, (_, at) => `100644 blob ${blob}\t${String(at).padStart(2, "0")}`))
  for (let at = 0; at < 3; at++) inner = tree(["a", "b"].map((name) => `040000 tree ${inner}\t${name}`))
  for (let at = 0; at < 97; at++) inner = tree([`040000 tree ${inner}\td`])
  agent.commitRaw([{ name: Buffer.from("d"), mode: "40000", id: inner }])
}

const files = (contents: Record<string, string | Uint8Array>) => (home: Home) => {
  home.agent.commit(contents)
}

const many = (count: number, content: Uint8Array | string) => (home: Home) => {
  const id = home.agent.blob(content)
  home.agent.commit(Array.from({ length: count }, (_, index) => ({ path: `f/${index}`, id, mode: "100644" })))
}

const refused: ReadonlyArray<[string, string, (home: Home) => void, RegExp]> = [
  [
    "a symbolic link",
    "BadRepository",
    ({ agent }) => void agent.commit([{ path: "tools/x", content: "/etc/passwd", mode: "120000" }]),
    /tools\/x: a symbolic link is refused/u
  ],
  [
    "a link in the place of a folder",
    "BadRepository",
    ({ agent }) => void agent.commit([{ path: "tools", content: "/etc", mode: "120000" }]),
    /tools: a symbolic link/u
  ],
  [
    "a submodule",
    "BadRepository",
    ({ agent }) => void agent.commit([{ path: "sub", id: "1".repeat(40), mode: "160000" }]),
    /sub: a submodule is refused/u
  ],
  [
    "a .gitmodules file",
    "BadRepository",
    files({ ".gitmodules": `[submodule "a"]\n\tpath = a\n\turl = ./a\n` }),
    /git's own files/u
  ],
  [
    "a .gitmodules with a command as url",
    "FetchFailed",
    files({ ".gitmodules": `[submodule "a"]\n\tpath = a\n\turl = --upload-pack=touch\n` }),
    /gitmodules/iu
  ],
  ["a .GitModules below a folder", "BadRepository", files({ "a/.GitModules": "x" }), /git's own files/u],
  ["a .git folder", "FetchFailed", raw(".git", "40000"), /hasDotgit/u],
  ["a .GIT file", "FetchFailed", raw(".GIT"), /hasDotgit/u],
  ["a name ..", "FetchFailed", raw("..", "40000"), /hasDotdot/u],
  ["a name .", "FetchFailed", raw(".", "40000"), /hasDot/u],
  ["a name with a slash", "FetchFailed", raw("../../pwned"), /fullPathname/u],
  ["an absolute name", "FetchFailed", raw("/tmp/pwned"), /fullPathname/u],
  ["an empty name", "FetchFailed", raw(""), /emptyName|fsck|truncated|empty filename/iu],
  ["a name with a line break", "BadRepository", raw("a\nb"), /a\\u\{a\}b: the name holds a control/u],
  ["a name with an escape sequence", "BadRepository", raw("a\u001b[2J"), /control or invisible/u],
  ["a name that turns the writing around", "BadRepository", raw("a\u202etxt.exe"), /control or invisible/u],
  ["a name that is not UTF-8", "BadRepository", raw(Buffer.from([0x61, 0xff])), /not UTF-8/u],
  ["a name with a backslash", "BadRepository", raw("..\\..\\x"), /backslash/u],
  ["names that differ only in case", "BadRepository", files({ "tools/a": "1", "Tools/b": "2" }), /only in case/u],
  [
    "names that differ only in composition",
    "BadRepository",
    files({ "\u00e9": "1", "e\u0301": "2" }),
    /only in case or accents/u
  ],
  [
    "a path that is too long",
    "BadRepository",
    files({ [Array.from({ length: 60 }, () => "0123456789").join("/")]: "x" }),
    /longer than 512 bytes/u
  ],
  ["a file that is too large", "BadRepository", files({ big: Buffer.alloc(20 * 1024 * 1024 + 1) }), /larger than/u],
  [
    "more bytes than memory should hold, in a small pack",
    "BadRepository",
    many(11, Buffer.alloc(20 * 1024 * 1024)),
    /more than 209715200 bytes/u
  ],
  ["too many files", "BadRepository", many(5001, "x"), /more than 5000 files/u],
  ["more names than are listed", "BadRepository", crowd, /the tree is too large|more than 5000 files/u],
  [
    "folders in folders, 1,000 deep",
    "BadRepository",
    files({ [`${"d/".repeat(1000)}x`]: "x" }),
    /longer than 512 bytes/u
  ],
  ["520 files that are 101 folders deep, in a hundred trees", "BadRepository", deep, /is more than 32 folders deep/u],
  ["one name twice", "FetchFailed", twice, /duplicateEntries|contains duplicate/iu],
  ["an object that is not there", "FetchFailed", raw("x", "100644", "1".repeat(40)), /./u],
  ["a file that says to be a folder", "FetchFailed", raw("x", "40000", "blob"), /./u],
  ["a device", "BadRepository", raw("x", "60000"), /x: a submodule is refused/u],
  [
    "a Dockerfile that asks for another builder",
    "BadRepository",
    files({ Dockerfile: "# syntax=evil/frontend\nFROM choir-base\n" }),
    /Dockerfile:1: parser directives/u
  ],
  [
    "a Dockerfile that fetches",
    "BadRepository",
    files({ Dockerfile: "FROM choir-base\nADD https://example.org/x /x\n" }),
    /Dockerfile:2: ADD may add only files/u
  ],
  ["a manifest that is no JSON", "BadRepository", files({ "tools/x.json": "{", "tools/x": "" }), /tools\/x\.json/u],
  [
    "a manifest with unknown keys",
    "BadRepository",
    files({ "tools/x.json": manifest({ exec_path: "x", setuid: true }), "tools/x": "" }),
    /setuid/u
  ],
  [
    "a tool that runs a program of the system",
    "BadRepository",
    files({ "tools/x.json": manifest({ exec_path: "/bin/sh" }) }),
    /it leaves the folder tools\/agent/u
  ],
  [
    "a tool that climbs out",
    "BadRepository",
    files({ "tools/x.json": manifest({ exec_path: "/choir/tools/agent/../../x" }) }),
    /it leaves the folder tools\/agent/u
  ],
  [
    "a tool without its executable",
    "BadRepository",
    files({ "tools/x.json": manifest({ exec_path: "x" }) }),
    /is missing/u
  ]
]

const urls: ReadonlyArray<[string, (home: Home) => { readonly url: string; readonly ref: string }]> = [
  ["a remote helper as url", ({ marker }) => ({ url: `ext::touch ${marker}`, ref: "main" })],
  ["an option as url", ({ marker }) => ({ url: `--upload-pack=touch ${marker}`, ref: "main" })],
  ["an option as host", ({ marker }) => ({ url: `ssh://-oProxyCommand=touch%20${marker}/x`, ref: "main" })],
  ["a relative file url", () => ({ url: "file://agent", ref: "main" })],
  ["a relative path", () => ({ url: "../agent", ref: "main" })],
  ["an option as ref", ({ agent, marker }) => ({ url: agent.path, ref: `--upload-pack=touch ${marker}` })],
  ["a refspec as ref", ({ agent }) => ({ url: agent.path, ref: "main:refs/heads/other" })],
  ["an empty url", () => ({ url: "", ref: "main" })],
  ["credentials in a url", () => ({ url: "https://user:pass@example.org/x.git", ref: "main" })],
  [
    "a url of more than one line",
    ({ marker }) => ({ url: `https://example.org/x\n[core]\nsshCommand=touch ${marker}`, ref: "main" })
  ],
  ["a helper's transport behind a host", ({ marker }) => ({ url: `https::ext::touch ${marker}`, ref: "main" })],
  ["a ref that leaves refs", ({ agent }) => ({ url: agent.path, ref: "../../config" })],
  ["an expression as ref", ({ agent }) => ({ url: agent.path, ref: "main@{1}" })]
]

/** What a repository's own configuration and hooks would run on a host that obeyed them. */
const traps: ReadonlyArray<[string, "built" | "FetchFailed", (home: Home, command: string) => void]> = [
  [
    "hooks",
    "built",
    ({ agent }, command) => {
      mkdirSync(join(agent.path, ".git/hooks"))
      for (const name of [
        "post-checkout",
        "post-merge",
        "pre-auto-gc",
        "reference-transaction",
        "post-index-change",
        "pre-push",
        "update"
      ]) {
        writeFileSync(join(agent.path, ".git/hooks", name), `#!/bin/sh\n${command}\n`)
        chmodSync(join(agent.path, ".git/hooks", name), 0o755)
      }
    }
  ],
  [
    "filters",
    "built",
    ({ agent }, command) => {
      agent.commit({ ".gitattributes": "* filter=trap diff=trap\n", "identity/SOUL.md": "raw" })
      for (const key of ["filter.trap.smudge", "filter.trap.clean", "filter.trap.process", "diff.trap.textconv"]) {
        agent.git(["config", key, command])
      }
    }
  ],
  [
    "configured commands",
    "built",
    ({ agent, root }, command) => {
      agent.git(["config", "core.hooksPath", join(root, "hooks")])
      for (const key of [
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.gitProxy",
        "credential.helper",
        "uploadpack.packObjectsHook",
        "gpg.program",
        "core.alternateRefsCommand"
      ]) {
        agent.git(["config", key, command])
      }
    }
  ],
  [
    "promise to fetch missing objects by a command",
    "FetchFailed",
    ({ agent }, command) => {
      agent.commit([
        { path: "identity/SOUL.md", content: "x" },
        { path: "missing", id: "1".repeat(40), mode: "100644" }
      ])
      agent.git(["config", "core.repositoryFormatVersion", "1"])
      agent.git(["config", "extensions.partialClone", "origin"])
      agent.git(["config", "remote.origin.promisor", "true"])
      agent.git(["config", "remote.origin.url", agent.path])
      agent.git(["config", "remote.origin.uploadpack", command])
    }
  ],
  [
    "objects of another place",
    "FetchFailed",
    ({ agent, global }) => {
      const id = global.blob("a secret of another repository")
      agent.commit([{ path: "identity/SOUL.md", id, mode: "100644" }])
      writeFileSync(join(agent.path, ".git/objects/info/alternates"), "../../../../nowhere/objects\n")
    }
  ],
  [
    "url that stands for another",
    "built",
    ({ agent }, command) => {
      agent.git(["config", `url.ext::${command}.insteadOf`, "/"])
      agent.git(["config", "protocol.ext.allow", "always"])
    }
  ]
]

const halfMade = (name: string | Buffer) => name.toString().startsWith(".")

const refuses = ([, tag, prepare, reason]: (typeof refused)[number]) =>
  Effect.gen(function* () {
    const home = yield* makeImageHome
    prepare(home)
    const error = yield* Effect.flip(home.build())
    assert.strictEqual(error._tag, tag, error.message)
    assert.match(error.message, reason)
    assert.notMatch(error.message.replaceAll("\n", ""), /\p{C}/u)
    assert.strictEqual((yield* Effect.flip(home.images.current(AGENT)))._tag, "NoImage")
    assert.deepStrictEqual(readdirSync(home.root).sort(), ["agent", "global", "home"])
    assert.deepStrictEqual(readdirSync(join(home.home, "repos/agents"), { recursive: true }).filter(halfMade), [])
  })

// At the same time, since a failed fetch waits up to a second for the processes that git left behind.
describe.concurrent("objects that git itself calls broken (R75)", () => {
  it.effect.each(refused.filter(([, tag]) => tag === "FetchFailed"))("are refused for %s", refuses)
})

describe("a hostile repository (R75)", () => {
  it.effect.each(refused.filter(([, tag]) => tag === "BadRepository"))("is refused for %s", refuses)

  it.effect.each(urls)("is refused for %s, before git runs", ([, source]) =>
    Effect.gen(function* () {
      const home = yield* makeImageHome
      const sources = { ...home.sources, agent: source(home) }
      const error = yield* Effect.flip(home.images.build(AGENT, sources))
      assert.strictEqual(error._tag, "InvalidRepoSource")
      assert.isFalse(home.pwned())
    })
  )

  it.effect.each(traps)("cannot run a command on the host by its %s", ([, expected, set]) =>
    Effect.gen(function* () {
      const home = yield* makeImageHome
      set(home, `touch ${home.marker}`)
      const outcome = yield* Effect.result(home.build())
      assert.strictEqual(Result.isFailure(outcome) ? outcome.failure._tag : "built", expected)
      assert.isFalse(home.pwned())
      assert.deepStrictEqual(readdirSync(home.root).sort(), ["agent", "global", "home"])
    })
  )

  it.effect("gets its files copied as they are, whatever its attributes say", () =>
    Effect.gen(function* () {
      const { agent, images, build } = yield* makeImageHome
      const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
      agent.commit({
        ".gitattributes": "* text eol=crlf ident export-subst working-tree-encoding=UTF-16\nlfs filter=lfs\n",
        "tools/x.json": manifest({ exec_path: "x" }),
        "tools/x": "#!/bin/sh\n# $Id$ $Format:%H$\n",
        "tools/lfs": pointer
      })
      const { path } = yield* build()
      yield* images.verify(path)
      const read = (name: string) => Effect.sync(() => readFileSync(join(path, "choir", name), "utf8"))
      assert.strictEqual(yield* read("tools/agent/x"), "#!/bin/sh\n# $Id$ $Format:%H$\n")
      assert.strictEqual(yield* read("tools/agent/lfs"), pointer)
    })
  )

  it.effect("reports a global repository that turned hostile by its name", () =>
    Effect.gen(function* () {
      const { build, global } = yield* makeImageHome
      global.commit([
        ...Object.entries(GLOBAL_FILES).map(([path, content]) => ({ path, content })),
        { path: "tools/a", content: "/", mode: "120000" },
        { path: "tools/b", content: "/", mode: "120000" }
      ])
      const error = yield* Effect.flip(build())
      assert.deepStrictEqual(
        error._tag === "BadRepository" && error.problems.map(({ repo, path }) => `${repo} ${path}`),
        ["global repository tools/a", "global repository tools/b"]
      )
    })
  )
})
