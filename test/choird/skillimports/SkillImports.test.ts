/** Skills from elsewhere against real git: what is shown, what is committed, and that nothing of a hostile one starts or is stored. */
import { execFileSync } from "node:child_process"
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import type { OfferSkill, SkillSource, SkillTarget } from "#schema/SkillOffer.ts"
import { SkillImports } from "#src/choird/skillimports/SkillImports.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Git } from "#src/choird/repos/Git.ts"
import { GitWork } from "#src/choird/repos/GitWork.ts"
import { layerRepoAccess } from "#src/choird/repos/RepoAccess.ts"
import { Repos } from "#src/choird/repos/Repos.ts"
import { type Entry, makeGitRepo } from "../../support/gitRepo.ts"
import { folders } from "../../support/images.ts"
import { makeProposalHome } from "../../support/proposals.ts"
import { HOSTILE_FOLDERS, ORDERS } from "../../support/hostileSkills.ts"
import { bundleFiles } from "../../support/skillCorpus.ts"

const TEXT =
  "---\nname: notes\ndescription: Turn notes into minutes.\nallowed-tools: Read Write\n---\n\nWrite minutes.\n"
const NOTES = { "SKILL.md": TEXT, "references/form.md": "# Form\n", "scripts/count.sh": "#!/bin/sh\nwc -l\n" }

const open = Effect.gen(function* () {
  const home = yield* makeProposalHome
  const context = yield* Layer.build(
    SkillImports.layer.pipe(
      Layer.provide(Layer.merge(GitWork.layer, folders)),
      Layer.provide(Repos.layer(home.home)),
      Layer.provide(Layer.merge(Git.layer, layerRepoAccess)),
      Layer.provide(Layer.mergeAll(ConfigStore.layer({ home: home.home }), NodeServices.layer))
    )
  )
  const imports = yield* Effect.provide(SkillImports, context)
  const elsewhere = makeGitRepo(join(home.home, "..", "elsewhere"))
  const target: SkillTarget = { type: "agent", agent_id: home.agent_id }
  const from = (more: Partial<Extract<SkillSource, { type: "git" }>> = {}): OfferSkill => ({
    source: { type: "git", url: elsewhere.path, ref: "HEAD", ...more },
    target
  })
  const sent = (files: ReturnType<typeof bundleFiles>): OfferSkill => ({
    source: {
      type: "files",
      from: "/tmp/a skill",
      files: files.map(({ bytes, executable, path }) => ({
        path,
        executable,
        base64: Buffer.from(bytes).toString("base64")
      }))
    },
    target
  })
  const show = (path: string) => home.agent.git(["show", `main:${path}`])
  const listed = () => home.agent.git(["ls-tree", "-r", "--name-only", "main"]).split("\n")
  return { ...home, imports, elsewhere, from, sent, show, listed }
})

const failure = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.map(Effect.result(effect), (result) => (Result.isFailure(result) ? result.failure : undefined))

describe("a skill from elsewhere", () => {
  it.effect("is shown whole with its commit, tree and digest, and added as one commit of exactly these bytes", () =>
    Effect.gen(function* () {
      const { base, elsewhere, from, head, imports, listed, show } = yield* open
      const commit = elsewhere.commit(NOTES)
      const offer = yield* imports.offer(from())
      assert.deepStrictEqual(
        [offer.name, offer.pin.commit, offer.pin.tree],
        ["notes", commit, elsewhere.git(["rev-parse", `${commit}^{tree}`])]
      )
      for (const words of [offer.pin.sha256, "choir.fs.read, choir.fs.write", "Write minutes.", "wc -l", "executable"])
        assert.include(offer.text, words)
      assert.strictEqual(head(), base)
      const added = yield* imports.add({ ...from(), sha256: offer.pin.sha256 })
      assert.strictEqual(head(), added.commit)
      assert.deepStrictEqual(listed(), [
        "README.md",
        "skills.lock.json",
        "skills/notes/SKILL.md",
        "skills/notes/references/form.md",
        "skills/notes/scripts/count.sh"
      ])
      assert.strictEqual(`${show("skills/notes/SKILL.md")}\n`, TEXT)
      assert.deepStrictEqual(JSON.parse(show("skills.lock.json")), { skills: { notes: offer.pin } })
    })
  )

  it.effect("is refused once a byte of it is another one, and replaced whole by a new decision", () =>
    Effect.gen(function* () {
      const { base, elsewhere, from, head, imports, listed } = yield* open
      elsewhere.commit(NOTES)
      const { pin } = yield* imports.offer(from())
      elsewhere.commit({ ...NOTES, "references/form.md": "# form\n" })
      const changed = yield* failure(imports.add({ ...from(), sha256: pin.sha256 }))
      assert.strictEqual(changed?.kind, "CHANGED")
      assert.strictEqual(head(), base)
      const second = yield* imports.offer(from())
      yield* imports.add({ ...from(), sha256: second.pin.sha256 })
      elsewhere.commit({ "SKILL.md": TEXT })
      const third = yield* imports.offer(from())
      assert.include(third.text, "It replaces 3 files that are there")
      yield* imports.add({ ...from(), sha256: third.pin.sha256 })
      assert.deepStrictEqual(listed(), ["README.md", "skills.lock.json", "skills/notes/SKILL.md"])
    })
  )

  it.effect("is found in a repository of many by its name, whatever links are beside it", () =>
    Effect.gen(function* () {
      const { elsewhere, from, imports } = yield* open
      elsewhere.commit([
        ...Object.entries(NOTES).map(([path, content]) => ({ path: `skills/notes/${path}`, content })),
        { path: "skills/other/SKILL.md", content: TEXT.replace("notes", "other") },
        { path: "link", content: "/etc/passwd", mode: "120000" }
      ])
      const many = yield* failure(imports.offer(from()))
      assert.match(many?.reason ?? "", /it has 2 skills: choose one with --skill: skills\/notes, skills\/other/u)
      const none = yield* failure(imports.offer(from({ skill: "third" })))
      assert.match(none?.reason ?? "", /has no skill third/u)
      const offer = yield* imports.offer(from({ skill: "notes" }))
      assert.strictEqual(offer.pin.tree, elsewhere.git(["rev-parse", "main:skills/notes"]))
      assert.strictEqual((yield* imports.offer(from({ skill: "skills/other" }))).name, "other")
    })
  )

  it.effect("takes no other file's place unseen: git would leave out a file that is in the way of a folder", () =>
    Effect.gen(function* () {
      const { agent, elsewhere, from, head, imports, listed } = yield* open
      agent.commit({ "README.md": "an agent\n", "skills/notes": "mine\n", "skills/review.json/old.md": "mine\n" })
      const base = head()
      elsewhere.commit(NOTES)
      const folder = yield* failure(imports.offer(from()))
      assert.match(folder?.reason ?? "", /skills\/notes\/SKILL\.md would be below a file/u)
      elsewhere.commit({ "SKILL.md": TEXT.replace("name: notes", "name: review.json") })
      const named = yield* failure(imports.offer(from()))
      assert.match(named?.reason ?? "", /the name review\.json ends like that of a file/u)
      assert.strictEqual(head(), base)
      assert.deepStrictEqual(listed(), ["README.md", "skills/notes", "skills/review.json/old.md"])
    })
  )

  it.effect("says for which other one its name is easily taken", () =>
    Effect.gen(function* () {
      const { agent, elsewhere, from, imports } = yield* open
      agent.commit({ "skills/note-s/SKILL.md": TEXT.replace("name: notes", "name: note-s") })
      elsewhere.commit(NOTES)
      const { text } = yield* imports.offer(from())
      assert.include(text, "The name of the skill notes is easily mistaken for note-s, which is another skill.")
    })
  )

  it.effect("that uses a tool which the agent does not have is refused, by path", () =>
    Effect.gen(function* () {
      const { elsewhere, from, imports } = yield* open
      elsewhere.commit({ "SKILL.md": TEXT.replace("Read Write", "crm.search") })
      const refused = yield* failure(imports.offer(from()))
      assert.match(refused?.reason ?? "", /SKILL\.md: .*there is no tool crm\.search/u)
    })
  )

  it.effect(
    `starts and stores nothing while it is hostile: ${HOSTILE_FOLDERS.length} folders as choirctl sends them`,
    () =>
      Effect.gen(function* () {
        const { base, head, home, imports, sent } = yield* open
        for (const [what, folder] of HOSTILE_FOLDERS) {
          const files = Array.isArray(folder)
            ? (folder as ReturnType<typeof bundleFiles>)
            : bundleFiles(folder as Record<string, string>)
          const refused = yield* failure(imports.offer(sent(files)))
          assert.strictEqual(refused?.kind, "BAD_SKILL", what)
        }
        assert.strictEqual(head(), base)
        assert.deepStrictEqual(
          readdirSync(join(home, "repos")).includes("work") ? readdirSync(join(home, "repos/work")) : [],
          []
        )
      })
  )

  it.effect("starts nothing while a repository of it is hostile: links, submodules, attributes and broken trees", () =>
    Effect.gen(function* () {
      const { base, elsewhere, from, head, home, imports } = yield* open
      const marker = join(home, "MARKER")
      const file = { path: "SKILL.md", content: TEXT }
      const trees: ReadonlyArray<readonly [ReadonlyArray<Entry>, RegExp]> = [
        [[file, { path: "a", content: "/etc/passwd", mode: "120000" }], /a: a symbolic link/u],
        [[{ path: "SKILL.md", content: "/etc/passwd", mode: "120000" }], /SKILL\.md: a symbolic link/u],
        [[file, { path: "sub", mode: "160000", id: "1".repeat(40) }], /sub: a submodule/u],
        [[file, { path: ".gitattributes", content: "* filter=evil" }], /hidden files/u],
        [[file, { path: ".gitmodules", content: "[submodule]" }], /git's own files/u],
        [[file, { path: "a.md", content: "a" }, { path: "A.md", content: "b" }], /only in case/u]
      ]
      for (const [files, reason] of trees) {
        elsewhere.commit(files)
        const refused = yield* failure(imports.offer(from()))
        assert.match(refused?.reason ?? "", reason)
      }
      elsewhere.commit([file, { path: "evil.sh", content: `#!/bin/sh\ntouch ${marker}\n` }])
      for (const key of ["core.fsmonitor", "core.sshCommand", "uploadpack.packObjectsHook"])
        elsewhere.git(["config", key, join(elsewhere.path, "evil.sh")])
      execFileSync("sh", [
        "-c",
        `mkdir -p ${elsewhere.path}/.git/hooks && printf '#!/bin/sh\\ntouch ${marker}\\n' > ${elsewhere.path}/.git/hooks/post-upload-pack && chmod +x ${elsewhere.path}/.git/hooks/*`
      ])
      yield* imports.offer(from())
      assert.isFalse(existsSync(marker))
      assert.strictEqual(head(), base)
    })
  )

  it.effect("that orders a model to fetch is shown with the hosts that it names, and changes nothing", () =>
    Effect.gen(function* () {
      const { base, head, imports, sent } = yield* open
      for (const [what, folder] of ORDERS) {
        const offer = yield* imports.offer(sent(bundleFiles(folder)))
        assert.include(offer.text, "hosts that its text names: evil.example", what)
      }
      assert.strictEqual(head(), base)
    })
  )

  it.effect("is refused from an address that git is not allowed to reach", () =>
    Effect.gen(function* () {
      const { from, imports } = yield* open
      for (const url of [
        "ext::sh -c id",
        "http://example.org/x.git",
        "--upload-pack=id",
        "file:///etc",
        "https://user:pw@example.org/x"
      ])
        assert.strictEqual((yield* failure(imports.offer(from({ url }))))?.kind, "UNREACHABLE", url)
      assert.strictEqual((yield* failure(imports.offer(from({ ref: "--output=x" }))))?.kind, "UNREACHABLE")
    })
  )

  it.effect(
    "that somebody changes afterwards is refused by the next build, until it is added again or made one's own",
    () =>
      Effect.gen(function* () {
        const { agent, elsewhere, from, imports } = yield* open
        elsewhere.commit(NOTES)
        const { pin } = yield* imports.offer(from())
        yield* imports.add({ ...from(), sha256: pin.sha256 })
        const tree = agent
          .git(["ls-tree", "-r", "main"])
          .split("\n")
          .map((line) => {
            const [mode = "", , id = "", path = ""] = line.split(/[ \t]/u)
            return { mode, id, path }
          })
        agent.commit([
          ...tree.filter(({ path }) => path !== "skills/notes/SKILL.md"),
          { path: "skills/notes/SKILL.md", content: `${TEXT}Also delete it.\n` }
        ])
        elsewhere.commit({ "SKILL.md": TEXT.replace("name: notes", "name: other") })
        const refused = yield* failure(imports.offer(from()))
        assert.match(refused?.reason ?? "", /skills\.lock\.json: skills\/notes is not what was added from/u)
      })
  )
})
