/** The files of a skill's folder, read with the real tools by a lane that is in the skill, and by lanes that are not. */
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { rgPath } from "@vscode/ripgrep"
import { Effect, Layer } from "effect"
import { fsFind } from "#src/agent/tools/fsFind.ts"
import { fsRead } from "#src/agent/tools/fsRead.ts"
import { fsSearch } from "#src/agent/tools/fsSearch.ts"
import { fsWrite } from "#src/agent/tools/fsWrite.ts"
import { layerSkillFiles } from "#src/agent/workspace/SkillFiles.ts"

import { laneThatSaw, OUTSIDE_TEXT, temporaryWorkspace, toolServices } from "../../support/workspace.ts"

const GUIDE = "/choir/skills/notes/references/guide.md"

const tools = Effect.gen(function* () {
  const { outside, root } = yield* temporaryWorkspace
  const choir = join(outside, "choir")
  const skills = join(choir, "skills")
  for (const folder of ["notes/references", "other"]) mkdirSync(join(skills, folder), { recursive: true })
  writeFileSync(join(skills, "notes/references/guide.md"), "Begin with the date.\n")
  writeFileSync(join(skills, "notes/SKILL.md"), "Read references/guide.md.\n")
  writeFileSync(join(skills, "other/secret.md"), OUTSIDE_TEXT)
  writeFileSync(join(skills, "_index.json"), OUTSIDE_TEXT)
  symlinkSync(join(outside, "file"), join(skills, "notes/references/link.md"))
  symlinkSync("../other", join(skills, "notes/elsewhere"))
  symlinkSync("other", join(skills, "linked"))
  linkSync(join(skills, "other/secret.md"), join(skills, "notes/second.md"))
  const files = yield* Layer.build(layerSkillFiles(choir))
  const made = yield* Effect.all({
    read: fsRead,
    find: fsFind(rgPath),
    search: fsSearch(rgPath),
    write: fsWrite
  }).pipe(Effect.provideContext(files), Effect.provideContext(yield* toolServices(root)))
  const call = Effect.fnUntraced(function* (
    name: keyof typeof made,
    input: object,
    skill: string | undefined = "notes"
  ) {
    const prepared = yield* Effect.result(made[name].prepare(input))
    if (prepared._tag === "Failure") return { status: "error", summary: prepared.failure.problem, output: undefined }
    assert.isTrue(name === "write" || prepared.success.locks.every(({ mode }) => mode === "S"))
    return yield* prepared.success.run({ ...laneThatSaw(), skill })
  })
  return { call, root }
})

describe("the folder of the skill at work", () => {
  it.live("is read, listed, and searched by name and by text", () =>
    Effect.gen(function* () {
      const { call } = yield* tools
      const whole = yield* call("read", { path: GUIDE })
      assert.deepInclude(whole.output, { path: GUIDE, content: "Begin with the date.\n" })
      // A file of the image is no version of the workspace's.
      assert.notProperty(whole, "reads")
      const folder = yield* call("read", { path: "/choir/skills/notes" })
      assert.deepInclude(folder.output, { entries: ["SKILL.md", "elsewhere@", "references/", "second.md"] })
      const found = yield* call("find", { glob: "*.md", path: "/choir/skills/notes" })
      assert.includeMembers((found.output as { paths: Array<string> }).paths, [GUIDE])
      const line = { path: GUIDE, line: 1, text: "Begin with the date." }
      for (const path of ["/choir/skills/notes", GUIDE]) {
        const matches = yield* call("search", { pattern: "date", path })
        assert.deepStrictEqual(matches.output, { matches: [line], truncated: false })
      }
    }).pipe(Effect.scoped)
  )

  it.live("is where a relative path leads that the workspace does not have", () =>
    Effect.gen(function* () {
      const { call, root } = yield* tools
      const input = { path: "references/guide.md" }
      assert.deepInclude((yield* call("read", input)).output, { path: GUIDE })
      assert.deepInclude((yield* call("search", { pattern: "date", path: "references" })).output, { truncated: false })
      assert.deepInclude((yield* call("find", { glob: "*.md", path: "references" })).output, { paths: [GUIDE] })
      mkdirSync(join(root, "references"))
      writeFileSync(join(root, "references/guide.md"), "mine\n")
      assert.deepInclude((yield* call("read", input)).output, { path: "references/guide.md", content: "mine\n" })
    }).pipe(Effect.scoped)
  )

  it.live.each([
    ["another skill's", "/choir/skills/other/secret.md", /outside/u],
    ["another skill's, back from its own", "/choir/skills/notes/../other/secret.md", /outside/u],
    ["the folder of all skills", "/choir/skills", /outside/u],
    ["a file beside its folder", "/choir/skills/_index.json", /outside/u],
    ["the image", "/choir/skills/notes/../../version.json", /outside/u],
    ["the machine", "/choir/skills/../../etc/passwd", /outside/u],
    ["a relative path out of it", "../other/secret.md", /leaves the workspace/u],
    ["a link to a file", "/choir/skills/notes/references/link.md", /symbolic link/u],
    ["a link to a folder", "/choir/skills/notes/elsewhere/secret.md", /symbolic link/u],
    ["a link by a relative path", "elsewhere/secret.md", /symbolic link/u],
    ["a file with a second name", "second.md", /hard link/u]
  ] as const)("refuses %s", ([, path, why]) =>
    Effect.gen(function* () {
      const { call } = yield* tools
      for (const [name, input] of [
        ["read", { path }],
        ["search", { pattern: ".", path }],
        ["find", { glob: "*", path }]
      ] as const) {
        const { output, status, summary } = yield* call(name, input)
        assert.strictEqual(status, "error", `${name} ${path}`)
        assert.notInclude(JSON.stringify(output ?? null), OUTSIDE_TEXT)
        if (name === "read") assert.match(summary, why)
      }
    }).pipe(Effect.scoped)
  )

  it.live("is closed to lanes outside the skill, to a skill that is a link, and to writes", () =>
    Effect.gen(function* () {
      const { call } = yield* tools
      assert.match((yield* call("read", { path: GUIDE }, "other")).summary, /outside/u)
      assert.match((yield* call("read", { path: GUIDE }, "")).summary, /outside/u)
      assert.match(
        (yield* call("read", { path: "/choir/skills/linked/secret.md" }, "linked")).summary,
        /symbolic link/u
      )
      assert.strictEqual((yield* call("write", { path: GUIDE, content: "x", mode: "overwrite" })).status, "error")
    }).pipe(Effect.scoped)
  )
})
