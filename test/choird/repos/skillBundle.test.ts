import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { readBundle } from "#src/choird/repos/skillBundle.ts"
import { HOSTILE_FOLDERS, ORDERS } from "../../support/hostileSkills.ts"
import { bundleFiles, PUBLIC_SKILLS } from "../../support/skillCorpus.ts"

const toolsOf = (files: Parameters<typeof readBundle>[0]) =>
  Result.map(readBundle(files), ({ spec }): ReadonlyArray<string> => spec.states["do"]?.allowed_tools ?? [])

describe("a skill from elsewhere", () => {
  it.each(PUBLIC_SKILLS)("is read, or refused with a path and a reason: %s", (_, folder, outcome) => {
    const found = toolsOf(bundleFiles(folder))
    if ("path" in outcome) {
      assert.isTrue(Result.isFailure(found))
      const problems = Result.isFailure(found) ? found.failure : []
      const named = problems.filter(({ path, reason }) => path === outcome.path && outcome.reason.test(reason))
      assert.isNotEmpty(named, JSON.stringify(problems))
    } else assert.deepStrictEqual<unknown>(Result.isSuccess(found) ? found.success : found.failure, outcome)
  })

  it("has a corpus of fifty public folders and of more than thirty hostile ones", () => {
    assert.lengthOf(PUBLIC_SKILLS, 50)
    assert.isAtLeast(HOSTILE_FOLDERS.length + ORDERS.length, 30)
  })

  it.each(HOSTILE_FOLDERS)("is refused with %s", (_, folder, path, reason) => {
    const files = Array.isArray(folder)
      ? (folder as Parameters<typeof readBundle>[0])
      : bundleFiles(folder as Record<string, string>)
    const read = readBundle(files)
    assert.isTrue(Result.isFailure(read))
    const problems = Result.isFailure(read) ? read.failure : []
    assert.isTrue(
      problems.some((problem) => problem.path === path && reason.test(problem.reason)),
      JSON.stringify(problems)
    )
    assert.isAtMost(problems.length, 20)
  })

  it("has another digest for every changed byte, path and mode", () => {
    const base = bundleFiles({
      "SKILL.md": "---\nname: notes\ndescription: d\nallowed-tools: Read\n---\nDo.\n",
      "a.md": "a"
    })
    const change = (path: string, more: object) =>
      base.map((file) => (file.path === path ? { ...file, ...more } : file))
    const digests = [
      base,
      change("a.md", { bytes: Buffer.from("b") }),
      change("a.md", { path: "b.md" }),
      change("a.md", { executable: true }),
      base.slice(0, 1),
      [...base].toReversed()
    ].map((files) => Result.getOrThrow(readBundle(files)).sha256)
    assert.strictEqual(new Set(digests).size, 5)
    assert.strictEqual(digests[0], digests[5])
  })

  it("may be given tools, also in place of those that it names", () => {
    const files = (front: string) => bundleFiles({ "SKILL.md": `---\nname: notes\ndescription: d\n${front}---\nDo.\n` })
    const given = Result.getOrThrow(readBundle(files(""), { allow: ["Read", "Write"] }))
    assert.deepStrictEqual<unknown>(given.spec.states["do"]?.allowed_tools, ["choir.fs.read", "choir.fs.write"])
    assert.include(Buffer.from(given.files[0]?.bytes ?? []).toString(), 'allowed-tools: ["Read","Write"]')
    for (const named of [
      "allowed-tools: Task, Read\n",
      "allowed-tools:\n  - Task\n- Read\nlicense: MIT\n",
      "allowed-tools: []\n"
    ]) {
      const { files: written, spec } = Result.getOrThrow(readBundle(files(named), { allow: ["Bash"] }))
      assert.deepStrictEqual<unknown>(spec.states["do"]?.allowed_tools, ["choir.exec"])
      assert.notMatch(Buffer.from(written[0]?.bytes ?? []).toString(), /Task|Read/u)
    }
    assert.isTrue(Result.isFailure(readBundle(files(""), { allow: ["Read\n---\nevil"] })))
  })

  it("may have the fonts and templates that the best known ones bring, and not more than 8 MiB", () => {
    const SKILL = "---\nname: fonts\ndescription: d\nallowed-tools: Read\n---\nDo.\n"
    const files = [
      ...bundleFiles({ "SKILL.md": SKILL }),
      { path: "a.ttf", executable: false, bytes: Buffer.alloc(6_000_000) }
    ]
    assert.isTrue(Result.isSuccess(readBundle(files)))
    const more = [...files, { path: "b.ttf", executable: false, bytes: Buffer.alloc(3_000_000) }]
    assert.match(JSON.stringify(Result.flip(readBundle(more))), /more than 8\.0 MiB/u)
  })

  it.prop(
    "is refused or read, whatever its files are",
    [Schema.Array(Schema.Struct({ path: Schema.String, text: Schema.String }))],
    ([files]) => {
      const read = readBundle(files.map(({ path, text }) => ({ path, executable: false, bytes: Buffer.from(text) })))
      if (Result.isSuccess(read)) assert.isTrue(read.success.files.every(({ path }) => path.startsWith("skills/")))
    }
  )
})
