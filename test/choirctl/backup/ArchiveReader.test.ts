import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { type Header, pack } from "tar-stream"
import { makeChecker, readArchive } from "#src/choirctl/backup/ArchiveReader.ts"
import { ARCHIVE_FORMAT, BUNDLE_BYTES_MAX, FORMAT, MANIFEST, MEMBERS_BYTES_MAX } from "#src/choirctl/backup/manifest.ts"
import { unpackedInto } from "#src/choirctl/backup/restoreHome.ts"
import { temporaryFolder } from "../../support/engines.ts"

type Entry = Partial<Header> & { readonly name: string; readonly text?: string }

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")
const TYPES: Readonly<Record<string, string>> = { directory: "folder", symlink: "link" }

const manifestOf = (entries: ReadonlyArray<Entry>, more: object = {}) => ({
  format: ARCHIVE_FORMAT,
  choir: "0.1.0",
  created_at: "2026-01-01T00:00:00.000Z",
  home: "/home/ada/.choir.d",
  real_home: "/home/ada/.choir.d",
  database: { engine: "embedded", sessions: 0, events: 0 },
  secrets: { names: [], sealed: false },
  sources: [],
  workspaces: [],
  left_out: [],
  members: entries.map(({ linkname, name, text = "", type = "file" }) => ({
    name,
    type: TYPES[type] ?? "file",
    bytes: text.length,
    sha256: sha256(type === "symlink" ? (linkname ?? "") : text)
  })),
  ...more
})

const format = (version = ARCHIVE_FORMAT): Entry => ({
  name: FORMAT,
  text: JSON.stringify({ format: version, choir: "9.9.9" })
})
const CONFIG: Entry = { name: "config.json", text: "{}" }

/** A tar with these members, in this order; a header that says a size is written without contents. */
const tarOf = (entries: ReadonlyArray<Entry>) =>
  Effect.promise(async () => {
    const tar = pack()
    for (const { text = "", ...header } of entries) tar.entry(header, Buffer.from(text))
    tar.finalize()
    const pieces: Array<Uint8Array> = []
    for await (const piece of tar) pieces.push(piece as Uint8Array)
    return Buffer.concat(pieces)
  })

/** What a backup of these members is refused for, and what was written meanwhile. */
const refusal = Effect.fnUntraced(function* (bytes: Uint8Array) {
  const folder = yield* temporaryFolder
  const [file, into] = [join(folder, "choir.tar.gz"), join(folder, "into")]
  mkdirSync(into)
  writeFileSync(file, bytes)
  const read = yield* Effect.result(readArchive(file, unpackedInto(into)))
  const outside = readdirSync(folder).filter((name) => name !== "into" && name !== "choir.tar.gz")
  assert.deepStrictEqual(outside, [])
  return { problem: Result.isFailure(read) ? read.failure.problem : "none", into }
})

const whole = (entries: ReadonlyArray<Entry>, more?: object) =>
  Effect.map(
    tarOf([format(), ...entries, { name: MANIFEST, text: JSON.stringify(manifestOf(entries, more)) }]),
    gzipSync
  )

const WORKSPACE: ReadonlyArray<Entry> = [
  CONFIG,
  { name: "workspaces/main/notes", type: "directory" },
  { name: "workspaces/main/notes/one.txt", text: "one", mode: 0o755 },
  { name: "workspaces/main/link", type: "symlink", linkname: "/etc/passwd" }
]

describe("the reader of a backup", () => {
  it.live("takes files, folders and links of a workspace, and long names", () =>
    Effect.gen(function* () {
      const long = `workspaces/main/${"x".repeat(200)}`
      const { into, problem } = yield* refusal(yield* whole([...WORKSPACE, { name: long, text: "long" }]))
      assert.strictEqual(problem, "none")
      assert.strictEqual(readFileSync(join(into, "workspaces/main/notes/one.txt"), "utf8"), "one")
      assert.strictEqual(readFileSync(join(into, long), "utf8"), "long")
    }).pipe(Effect.scoped)
  )

  const hostile: ReadonlyArray<readonly [string, ReadonlyArray<Entry>, RegExp]> = [
    ["an absolute path", [{ name: "/etc/cron.d/x", text: "x" }], /member that no backup has/u],
    ["a way up", [{ name: "workspaces/main/../../../x", text: "x" }], /member that no backup has/u],
    ["an unknown member", [{ name: "socks/choird.sock", text: "x" }], /member that no backup has/u],
    ["a way up in a bundle", [{ name: "sources/../x.bundle", text: "x" }], /member that no backup has/u],
    [
      "an archived session of no agent",
      [{ name: "archive/A B/0123456789abcdef.jsonl.gz", text: "x" }],
      /no backup has/u
    ],
    ["an archived session without an id", [{ name: "archive/agent/notes.jsonl.gz", text: "x" }], /no backup has/u],
    [
      "an archived session elsewhere",
      [{ name: "archive/agent/x/0123456789abcdef.jsonl.gz", text: "x" }],
      /no backup has/u
    ],
    [
      "a link in the place of an archived session",
      [{ name: "archive/agent/0123456789abcdef.jsonl.gz", type: "symlink", linkname: "/etc/passwd" }],
      /is not a file/u
    ],
    ["a control character", [{ name: "workspaces/main/a\u001Bb", text: "x" }], /member that no backup has/u],
    ["a workspace without a legal name", [{ name: "workspaces/..a/b", text: "x" }], /member that no backup has/u],
    [
      "a link in the place of a file",
      [{ name: "config.json", type: "symlink", linkname: "/etc/passwd" }],
      /is not a file/u
    ],
    [
      "a hard link",
      [{ name: "workspaces/main/x", type: "link", linkname: "/etc/passwd" }],
      /neither a file nor a folder/u
    ],
    ["a device", [{ name: "workspaces/main/x", type: "character-device" }], /neither a file nor a folder/u],
    ["a pipe", [{ name: "workspaces/main/x", type: "fifo" }], /neither a file nor a folder/u],
    [
      "a link that leads nowhere",
      [{ name: "workspaces/main/x", type: "symlink", linkname: "" }],
      /has no target|neither/u
    ],
    ["a member twice", [CONFIG, CONFIG], /twice/u],
    [
      "a file below a link",
      [
        { name: "workspaces/main/x", type: "symlink", linkname: "/tmp" },
        { name: "workspaces/main/x/y", text: "x" }
      ],
      /folder that the file does not contain/u
    ],
    ["a large configuration", [{ name: "config.json", text: "x".repeat(1024 * 1024 + 1) }], /larger than/u]
  ]
  for (const [what, entries, expected] of hostile)
    it.live(`refuses ${what}`, () =>
      Effect.gen(function* () {
        const { problem } = yield* refusal(yield* whole(entries))
        assert.match(problem, expected)
      }).pipe(Effect.scoped)
    )

  it.live("stops before a small file fills the disk, which may be that of a running choird", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const [file, into] = [join(folder, "choir.tar.gz"), join(folder, "into")]
      mkdirSync(into)
      const zeros = "\0".repeat(20 * 1024 * 1024)
      writeFileSync(file, yield* whole([CONFIG, { name: "workspaces/main/zeros", text: zeros }]))
      assert.isBelow(statSync(file).size, 100 * 1024)
      const read = yield* Effect.flip(
        readArchive(
          file,
          unpackedInto(into, () => 900 * 1024 ** 2)
        )
      )
      assert.match(read.problem, /unpacking it would leave less than 1\.0 GiB free on the disk/u)
      yield* readArchive(
        file,
        unpackedInto(join(folder, "other"), () => 2 * 1024 ** 3)
      )
    })
  )

  it("refuses members that are together larger than a backup may be, before its manifest is read", () => {
    const checker = makeChecker()
    const admit = (index: number) =>
      checker.admit(`sources/${index}.bundle`, { type: "file", size: BUNDLE_BYTES_MAX } as Header)
    const fit = Math.floor(MEMBERS_BYTES_MAX / BUNDLE_BYTES_MAX)
    for (let index = 0; index < fit; index++) admit(index)
    assert.throws(() => admit(fit), /members have more than \d+ bytes together/u)
  })

  it.live("refuses a changed, missing or unlisted member, and repositories within another", () =>
    Effect.gen(function* () {
      const members = manifestOf(WORKSPACE).members
      const changed = members.map((member) => ({ ...member, sha256: sha256("other") }))
      assert.match((yield* refusal(yield* whole(WORKSPACE, { members: changed }))).problem, /damaged/u)
      assert.match((yield* refusal(yield* whole(WORKSPACE, { members: members.slice(1) }))).problem, /does not list/u)
      const renamed = members.map((member, index) => (index === 0 ? { ...member, name: "database.gz" } : member))
      assert.match((yield* refusal(yield* whole(WORKSPACE, { members: renamed }))).problem, /missing/u)
      const source = { bare: false, empty: true, head: { branch: "main" }, user: {}, uncommitted: 0 }
      const nested = ["a", "a/b"].map((path) => ({ ...source, path }))
      assert.match((yield* refusal(yield* whole(WORKSPACE, { sources: nested }))).problem, /not one that Choir writes/u)
      const climbing = [{ ...source, path: "../a" }]
      assert.match(
        (yield* refusal(yield* whole(WORKSPACE, { sources: climbing }))).problem,
        /not one that Choir writes/u
      )
    }).pipe(Effect.scoped)
  )

  it.live("refuses a later format, other files, and what breaks off or goes on after its end", () =>
    Effect.gen(function* () {
      const later = gzipSync(yield* tarOf([format(ARCHIVE_FORMAT + 1), { name: "new.json", text: "{}" }]))
      assert.match((yield* refusal(later)).problem, /made by a later Choir \(9\.9\.9/u)
      assert.match((yield* refusal(gzipSync(yield* tarOf([CONFIG])))).problem, /not a backup of a home/u)
      assert.match((yield* refusal(Buffer.from("hello"))).problem, /not gzip/u)
      assert.match((yield* refusal(gzipSync("x".repeat(2048)))).problem, /not a tar/u)
      assert.match((yield* refusal(gzipSync(yield* tarOf([format(), CONFIG])))).problem, /truncated/u)
      const good = yield* whole(WORKSPACE)
      assert.match((yield* refusal(good.subarray(0, good.length - 20))).problem, /truncated/u)
      const manifest = { name: MANIFEST, text: JSON.stringify(manifestOf([CONFIG])) }
      const after = gzipSync(yield* tarOf([format(), CONFIG, manifest, { name: "database.gz", text: "x" }]))
      assert.match((yield* refusal(after)).problem, /after its end/u)
      const missing = yield* Effect.result(readArchive("/nowhere/choir.tar.gz", unpackedInto("/nowhere")))
      assert.include(Result.isFailure(missing) ? missing.failure.message : "", "there is no such file")
      assert.isFalse(existsSync("/nowhere"))
    }).pipe(Effect.scoped)
  )
})
