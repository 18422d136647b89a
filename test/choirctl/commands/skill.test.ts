import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { fakeChoird } from "../../support/fakeChoird.ts"
import { skillDetail, skillRows, toolRows } from "../../support/fakeSkills.ts"
import { skillText } from "../../support/skills.ts"

describe("choirctl skill", () => {
  it.effect("lists and shows the skills of an agent, for people and as JSON", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      assert.match(
        (yield* choirctl(home, ["skill", "list", "agent-1"])).out,
        /tidy +image +experimental 6\/9 +probabilistic +- +3 +12 +Put things in order\./u
      )
      assert.deepStrictEqual(document(yield* choirctl(home, ["skill", "list", "agent-1", "--json"])), skillRows)
      const shown = yield* choirctl(home, ["skill", "show", "agent-1", "tidy"])
      assert.match(shown.out, /look +complete: write +mem\.read +See what is there\./u)
      assert.match(shown.out, /done +the end/u)
      assert.deepStrictEqual(
        document(yield* choirctl(home, ["skill", "show", "agent-1", "tidy", "--json"])),
        skillDetail
      )
      assert.strictEqual((yield* choirctl(home, ["skill", "show", "agent-1", "No"])).code, 2)
      assert.deepStrictEqual(
        calls.map(({ name }) => name),
        ["skills", "skills", "skill tidy", "skill tidy"]
      )
    })
  )

  it.effect("shows what a skill takes, what begins it, and from which confidence on its result is taken", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home)
      const { out } = yield* choirctl(home, ["skill", "show", "agent-1", "summarize"])
      assert.match(out, /input +text: string, length\?\n/u)
      assert.match(out, /triggers +start on keyword "sum up"\n/u)
      assert.match(out, /threshold +0\.8: a less confident result is judged, at most 2 are sent back\n/u)
    })
  )

  it.effect(
    "checks nothing behind a symbolic link: not a file, a SKILL.md, a folder of a skill or the folder itself",
    () =>
      Effect.gen(function* () {
        const home = yield* temporaryFolder
        const [real, folder] = [join(home, "real"), join(home, "skills")]
        mkdirSync(join(folder, "b"), { recursive: true })
        mkdirSync(join(real, "c"), { recursive: true })
        writeFileSync(join(real, "a.json"), skillText("a"))
        writeFileSync(join(real, "c", "SKILL.md"), "---\nname: c\ndescription: d\nallowed-tools: Read\n---\nRead.\n")
        symlinkSync(join(real, "a.json"), join(folder, "a.json"))
        symlinkSync(join(real, "c", "SKILL.md"), join(folder, "b", "SKILL.md"))
        symlinkSync(join(real, "c"), join(folder, "c"))
        symlinkSync(real, join(home, "link"))
        for (const [path, count] of [
          [folder, 3],
          [join(folder, "a.json"), 1],
          [join(folder, "b"), 1],
          [join(folder, "c"), 1],
          [join(home, "link"), 1]
        ] as const) {
          const ran = yield* choirctl(home, ["skill", "check", path, "--json"])
          assert.strictEqual(ran.code, 1, path)
          const rows = document(ran) as ReadonlyArray<{ readonly problems: ReadonlyArray<string> }>
          const links = rows.filter(
            ({ problems }) => problems[0] === "a symbolic link is refused: copy what it points to"
          )
          assert.deepStrictEqual([rows.length, links.length], [count, count], path)
        }
      })
  )

  it.effect("checks files and folders without choird, by path and with what to do", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const folder = join(home, "skills")
      mkdirSync(folder)
      writeFileSync(join(folder, "a.json"), skillText("a"))
      writeFileSync(join(folder, "b.json"), skillText("b").replace('"to":"write"', '"to":"nowhere"'))
      writeFileSync(join(folder, "README.md"), "{")
      const good = yield* choirctl(home, ["skill", "check", join(folder, "a.json")])
      assert.strictEqual(good.code, 0)
      assert.match(good.out, /a\.json: experimental, 6 of 9 points/u)
      assert.match(good.out, /no +anchors +there is no contract/u)
      assert.match(good.out, /a run: at most 12 model calls, locks file:S, file:X\ncapabilities: fs:read, fs:write/u)
      const both = yield* choirctl(home, ["skill", "check", folder, "--json"])
      assert.strictEqual(both.code, 1)
      const rows = document(both) as ReadonlyArray<{ readonly ok: boolean; readonly problems: ReadonlyArray<string> }>
      assert.deepStrictEqual(
        rows.map(({ ok }) => ok),
        [true, false]
      )
      assert.match(rows[1]?.problems[0] ?? "", /\["look"\]\["transitions"\]\[0\]\["to"\]: there is no state "nowhere"/u)
      assert.strictEqual((yield* choirctl(home, ["skill", "check", join(home, "none.json")])).code, 2)
      for (const [text, place] of [
        ['{\n  "name": "c",', "line 2 column 15"],
        ['{\n  "name" "c"}', "line 2 column 10"]
      ] as const) {
        writeFileSync(join(home, "c.json"), text)
        const broken = yield* choirctl(home, ["skill", "check", join(home, "c.json")])
        assert.include(broken.out, `c.json: it is not valid JSON (${place})`)
      }
      mkdirSync(join(folder, "notes"))
      const file = join(folder, "notes/SKILL.md")
      writeFileSync(file, "---\nname: notes\ndescription: d\ntools: Read\n---\nWrite minutes.\n")
      const without = yield* choirctl(home, ["skill", "check", join(folder, "notes")])
      assert.deepStrictEqual([without.code, without.out.startsWith(`${file}: allowed-tools is missing`)], [1, true])
      writeFileSync(file, "---\nname: notes\ndescription: d\nallowed-tools: Read Write\n---\nWrite minutes.\n")
      for (const path of [file, join(folder, "notes")])
        assert.match((yield* choirctl(home, ["skill", "check", path])).out, /SKILL\.md: experimental, 6 of 9 points/u)
      assert.include((yield* choirctl(home, ["skill", "check", folder])).out, `${file}: experimental, 6 of 9 points`)
      // A public skill names no tools, or names those of another harness.
      const foreign = join(folder, "foreign")
      mkdirSync(foreign)
      const front = "---\nname: foreign\ndescription: Minutes. Use after a meeting.\nallowed-tools: Task\n---\nDo it.\n"
      writeFileSync(join(foreign, "SKILL.md"), front)
      const named = yield* choirctl(home, ["skill", "check", foreign])
      assert.deepStrictEqual([named.code, /there is no tool Task: .*--tools/u.test(named.out)], [1, true])
      const given = yield* choirctl(home, ["skill", "check", foreign, "--tools", "Read Bash"])
      assert.match(given.out, /SKILL\.md: experimental, 6 of 9 points/u)
      writeFileSync(join(foreign, "SKILL.md"), Buffer.from(front.replace("Do it.", "Gr\u00fc\u00dfe."), "latin1"))
      const latin = yield* choirctl(home, ["skill", "check", foreign, "--tools", "Read"])
      assert.deepStrictEqual([latin.code, /not UTF-8: save it as UTF-8/u.test(latin.out)], [1, true])
    })
  )
})

describe("choirctl skill list and export", () => {
  it.effect("narrows the list by grade, class and tier", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home)
      const listed = (...flags: ReadonlyArray<string>) =>
        Effect.map(choirctl(home, ["skill", "list", "agent-1", "--json", ...flags]), document)
      assert.deepStrictEqual(yield* listed("--grade", "experimental", "--class", "probabilistic"), skillRows)
      assert.deepStrictEqual(yield* listed("--grade", "verified"), [])
      assert.deepStrictEqual(yield* listed("--tier", "audit"), [])
    })
  )

  it.effect("writes a folder that is read again, and replaces nothing", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home)
      const exported = ["skill", "export", "agent-1", "tidy", join(home, "out")]
      const refused = yield* choirctl(home, exported)
      assert.strictEqual(refused.code, 1, refused.err)
      assert.include(
        refused.err,
        "a SKILL.md cannot hold all of tidy:\n- states: its 2 have their own tools and transitions"
      )
      assert.include(refused.err, "- max_steps: 12")
      assert.include(refused.err, "--as-text")
      assert.isFalse(existsSync(join(home, "out")))
      const written = yield* choirctl(home, [...exported, "--as-text"])
      assert.strictEqual(written.code, 0)
      assert.match(written.out, /tidy\/SKILL\.md and 1 more\n$/u)
      const guide = join(home, "out/tidy/references/guide.md")
      assert.strictEqual(readFileSync(guide, "utf8"), "Begin with the date.\n")
      assert.strictEqual((yield* choirctl(home, ["skill", "check", join(home, "out/tidy")])).code, 0)
      assert.strictEqual((yield* choirctl(home, [...exported, "--as-text"])).code, 2)
    })
  )
})

describe("choirctl tool", () => {
  it.effect("lists the tools of an agent, each on one line", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home)
      const { out } = yield* choirctl(home, ["tool", "list", "agent-1"])
      assert.match(out, /words\.count +agent +2\.1 +none +both +Count words\./u)
      assert.include(out, "(not available: it has no search engine) Search the web.")
      assert.deepStrictEqual(document(yield* choirctl(home, ["tool", "list", "agent-1", "--json"])), toolRows)
    })
  )
})
