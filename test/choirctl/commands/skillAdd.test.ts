import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { fakeChoird } from "../../support/fakeChoird.ts"
import { addedSkill } from "../../support/fakeSkills.ts"

const TEXT = "---\nname: tidy\ndescription: d\nallowed-tools: Read\n---\nDo it.\n"

/** Agrees to the skill that the fake choird offers. */
const DIGEST = ["--digest", "abababab", "--yes"]

const open = Effect.gen(function* () {
  const home = yield* temporaryFolder
  const calls = yield* fakeChoird(home)
  const skill = join(home, "tidy")
  mkdirSync(join(skill, "references"), { recursive: true })
  writeFileSync(join(skill, "SKILL.md"), TEXT)
  writeFileSync(join(skill, "references/a.md"), "a")
  return { home, skill, names: () => calls.map(({ name }) => name) }
})

/** A site on this host with these answers by path. */
const site = (
  answers: Readonly<Record<string, { readonly status?: number; readonly body?: string; readonly location?: string }>>
) =>
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const server = createServer((request, response) => {
        const { body = "", location, status = 200 } = answers[request.url ?? ""] ?? { status: 404 }
        response.writeHead(status, location === undefined ? {} : { location }).end(body)
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.callback<void>((resume) => {
        server.closeAllConnections()
        server.close(() => resume(Effect.void))
      })
  ).pipe(Effect.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`))

describe("choirctl skill add", () => {
  it.live("reads a folder, shows what choird found, and adds what was shown with --yes", () =>
    Effect.gen(function* () {
      const { home, names, skill } = yield* open
      mkdirSync(join(skill, ".git"))
      writeFileSync(join(skill, ".git/config"), "x")
      const unasked = yield* choirctl(home, ["skill", "add", skill])
      assert.strictEqual(unasked.code, 2)
      assert.include(unasked.err, "skill tidy, for the global repository")
      assert.include(unasked.err, `--digest ${"ab".repeat(8)} --yes`)
      assert.deepStrictEqual(names(), ["offer SKILL.md references/a.md"])
      const added = yield* choirctl(home, ["skill", "add", skill, "--agent", "agent-1", ...DIGEST])
      assert.include(added.out, "agents have it after: choirctl agent update agent-1")
      assert.deepStrictEqual(names().slice(1), ["offer SKILL.md references/a.md", "add abababab"])
      const json = yield* choirctl(home, ["skill", "add", skill, ...DIGEST, "--json"])
      assert.deepStrictEqual(document(json), addedSkill)
    })
  )

  it.live("adds nothing by --yes alone where nobody can read it, and names the whole command with the digest", () =>
    Effect.gen(function* () {
      const { home, names, skill } = yield* open
      const given = ["skill", "add", skill, "--agent", "agent-1", "--tools", "Read, Write"]
      const command = `skill add ${skill} --agent agent-1 --tools 'Read, Write' --digest ${"ab".repeat(8)} --yes`
      const blind = yield* choirctl(home, [...given, "--yes"])
      assert.strictEqual(blind.code, 2)
      assert.include(blind.err, "skill tidy, for the global repository")
      assert.include(blind.err, command)
      const json = yield* choirctl(home, [...given, "--yes", "--json"])
      assert.strictEqual(json.code, 2)
      assert.include((yield* choirctl(home, given)).err, command)
      assert.isTrue(names().every((name) => name.startsWith("offer")))
      const git = ["skill", "add", "https://git.example.org/skills.git", "--ref", "v1", "--skill", "tidy"]
      assert.include((yield* choirctl(home, git)).err, `${git.slice(1).join(" ")} --digest`)
    })
  )

  it.live("refuses another digest than the one that was read", () =>
    Effect.gen(function* () {
      const { home, names, skill } = yield* open
      const other = yield* choirctl(home, ["skill", "add", skill, "--digest", "00000000", "--yes"])
      assert.deepStrictEqual([other.code, names().filter((name) => name.startsWith("add"))], [1, []])
      assert.strictEqual((yield* choirctl(home, ["skill", "add", skill, "--digest", "abababab", "--yes"])).code, 0)
    })
  )

  it.live("takes git addresses and bare repositories, and sends no file of them", () =>
    Effect.gen(function* () {
      const { home, names, skill } = yield* open
      execFileSync("git", ["init", "--quiet", "--bare", join(home, "bare.git")])
      for (const [source, ...more] of [
        ["https://git.example.org/skills.git"],
        ["git@git.example.org:skills.git", "--ref", "v1"],
        [join(home, "bare.git")],
        [skill, "--ref", "main"]
      ] as const)
        yield* choirctl(home, ["skill", "add", source, ...more, "--yes"])
      assert.deepStrictEqual(
        names().filter((name) => name.startsWith("offer")),
        [
          "offer https://git.example.org/skills.git HEAD",
          "offer git@git.example.org:skills.git v1",
          `offer ${join(home, "bare.git")} HEAD`,
          `offer ${skill} main`
        ]
      )
      assert.strictEqual((yield* choirctl(home, ["skill", "add", join(home, "none")])).code, 2)
    })
  )

  it.live("refuses links, devices, deep and large folders by path, and asks choird nothing", () =>
    Effect.gen(function* () {
      const { home, names } = yield* open
      const hostile: ReadonlyArray<readonly [(folder: string) => void, RegExp]> = [
        [(folder) => symlinkSync("/etc/passwd", join(folder, "a.md")), /a\.md: a symbolic link/u],
        [(folder) => symlinkSync("/etc", join(folder, "references")), /references: a symbolic link/u],
        [
          (folder) => {
            writeFileSync(join(folder, "b.md"), "b")
            linkSync(join(folder, "b.md"), join(folder, "c.md"))
          },
          /b\.md: a file with a second name/u
        ],
        [(folder) => execFileSync("mkfifo", [join(folder, "pipe")]), /pipe: neither a file nor a folder/u],
        [
          (folder) => mkdirSync(join(folder, ...Array.from({ length: 20 }, () => "d")), { recursive: true }),
          /folders deep/u
        ],
        [(folder) => writeFileSync(join(folder, "big"), Buffer.alloc(9_000_000)), /more than 8\.0 MiB/u],
        [
          (folder) => {
            for (let at = 0; at < 520; at += 1) writeFileSync(join(folder, `f${at}`), "")
          },
          /more than 512 files/u
        ]
      ]
      for (const [index, [make, reason]] of hostile.entries()) {
        const folder = join(home, `hostile-${index}`)
        mkdirSync(folder)
        writeFileSync(join(folder, "SKILL.md"), TEXT)
        make(folder)
        const refused = yield* choirctl(home, ["skill", "add", folder, "--yes"])
        assert.match(refused.err, reason)
        assert.strictEqual(refused.code, 1)
      }
      assert.deepStrictEqual(names(), [])
      const linked = join(home, "linked")
      symlinkSync(join(home, "tidy"), linked)
      assert.match((yield* choirctl(home, ["skill", "add", linked, "--yes"])).err, /a symbolic link/u)
    })
  )

  it.live("takes from a site's index only the bytes whose digest it names, without following it elsewhere", () =>
    Effect.gen(function* () {
      const { home, names } = yield* open
      const digest = `sha256:${createHash("sha256").update(TEXT).digest("hex")}`
      const entry = { name: "tidy", type: "skill-md", description: "d", url: "tidy/SKILL.md", digest }
      const index = (...skills: ReadonlyArray<object>) => ({ body: JSON.stringify({ skills }) })
      const at = (name: string) => `/${name}/.well-known/agent-skills`
      const origin = yield* site({
        [`${at("good")}/index.json`]: index(entry),
        [`${at("good")}/tidy/SKILL.md`]: { body: TEXT },
        [`${at("many")}/index.json`]: index(entry, { ...entry, name: "other" }),
        [`${at("changed")}/index.json`]: index(entry),
        [`${at("changed")}/tidy/SKILL.md`]: { body: `${TEXT}Also this.` },
        [`${at("moved")}/index.json`]: { status: 302, location: `${at("good")}/index.json` },
        [`${at("archive")}/index.json`]: index({ ...entry, type: "archive" }),
        [`${at("file")}/index.json`]: index({ ...entry, url: "file:///etc/passwd" }),
        [`${at("broken")}/index.json`]: { body: "{}" },
        [`${at("large")}/index.json`]: { body: " ".repeat(1_100_000) }
      })
      const add = (name: string, ...more: ReadonlyArray<string>) =>
        choirctl(home, ["skill", "add", `${origin}${at(name)}`, ...DIGEST, ...more])
      assert.strictEqual((yield* add("good")).code, 0)
      assert.deepStrictEqual(names(), ["offer SKILL.md", "add abababab"])
      const refused: ReadonlyArray<readonly [string, RegExp]> = [
        ["many", /choose one with --skill: tidy, other/u],
        ["changed", /its index names another one/u],
        ["moved", /cannot be read/u],
        ["archive", /which choirctl does not unpack/u],
        ["file", /cannot be used/u],
        ["broken", /index of skills/u],
        ["large", /more than 1048576 bytes/u],
        ["none", /status 404/u]
      ]
      for (const [name, reason] of refused) assert.match((yield* add(name)).err, reason, name)
      const plain = yield* choirctl(home, ["skill", "add", "http://example.org/.well-known/agent-skills", "--yes"])
      assert.strictEqual(plain.code, 2)
      assert.lengthOf(names(), 2)
    })
  )
})
