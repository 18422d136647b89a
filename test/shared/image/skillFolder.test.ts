import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { readSkillFolder, SKILL_FILE_BYTES_MAX } from "#src/shared/image/skillFolder.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"
import { OBJECTIVE_CHARS_MAX } from "#schema/Skill.ts"

const skill = (front: string, body = "# Steps\n\n1. Read the notes.") => `---\n${front}\n---\n\n${body}\n`
const named = (more = "allowed-tools: Read") =>
  `name: notes\ndescription: Turn a recording's notes into minutes. Use after a meeting.\n${more}`

/** The tools of a folder that is read, or its problems. */
const toolsOf = (text: string, folder = "notes"): ReadonlyArray<string> | string =>
  Result.match(
    Result.flatMap(readSkillFolder(folder, text), (spec) => readSkill(folder, JSON.stringify(spec))),
    {
      onFailure: (problems) => problems.join("; "),
      onSuccess: ({ states }) => Object.values(states)[0]?.allowed_tools ?? []
    }
  )

/** Front matter as public skills write it, and the tools that it allows here. */
const READ: ReadonlyArray<readonly [string, string, ReadonlyArray<string>]> = [
  ["one tool of another harness", "allowed-tools: Read", ["choir.fs.read"]],
  ["tools apart by spaces", "allowed-tools: Read Write Edit", ["choir.fs.read", "choir.fs.write", "choir.fs.edit"]],
  ["tools apart by commas", "allowed-tools: Read, Grep, Glob", ["choir.fs.read", "choir.fs.search", "choir.fs.find"]],
  ["a list in brackets", "allowed-tools: [Read, Bash]", ["choir.fs.read", "choir.exec"]],
  ["a list in lines", "allowed-tools:\n  - Read\n  - LS", ["choir.fs.read", "choir.fs.find"]],
  ["Choir's own names", "allowed-tools: choir.fs.read choir-fs-search", ["choir.fs.read", "choir.fs.search"]],
  ["two names of one tool", "allowed-tools: Edit MultiEdit", ["choir.fs.edit"]],
  ["no tools", "allowed-tools: []", []],
  ["no word about tools", "", ["choir.fs.read", "choir.fs.find", "choir.fs.search"]],
  ["an empty value", "allowed-tools:", []],
  ["a licence and a version", "license: MIT\nversion: 1.2.0\nallowed-tools: Read", ["choir.fs.read"]],
  ["metadata", "metadata:\n  author: someone\n  version: '1.0'\nallowed-tools: Read", ["choir.fs.read"]],
  ["compatibility", "compatibility: needs git\nallowed-tools: Read", ["choir.fs.read"]],
  ["keys of other harnesses", "model: inherit\nuser-invocable: true\nallowed-tools: Read", ["choir.fs.read"]],
  ["tools of the web", "allowed-tools: WebFetch WebSearch", ["choir.web.fetch", "choir.web.search"]],
  ["a colon within a sentence", "argument-hint: one of: all, some\nallowed-tools: Read", ["choir.fs.read"]],
  ["words behind brackets", 'argument-hint: [action] — e.g. "list"\nallowed-tools: Read', ["choir.fs.read"]],
  ["comments", "# for people\nallowed-tools: Read # only", ["choir.fs.read"]]
]

/** Texts that are refused, with the reason. */
const REFUSED: ReadonlyArray<readonly [string, string, RegExp]> = [
  ["no front matter", "# Notes", /does not begin with front matter/u],
  ["an empty file", "", /does not begin with front matter/u],
  ["front matter without an end", "---\nname: notes\n", /has no end/u],
  ["front matter that is no YAML", skill(named("allowed-tools: [Read")), /not YAML: line \d+: /u],
  ["no name", skill("description: d\nallowed-tools: Read"), /\["name"\]/u],
  ["no description", skill("name: notes\nallowed-tools: Read"), /\["description"\]/u],
  ["an empty description", skill("name: notes\ndescription: ''\nallowed-tools: Read"), /\["description"\]/u],
  ["a long description", skill(`name: notes\ndescription: ${"x".repeat(1025)}\nallowed-tools: Read`), /1024/u],
  ["a name of capitals", skill("name: Notes\ndescription: d\nallowed-tools: Read"), /its name has "N": write n/u],
  [
    "a name of another alphabet",
    skill("name: für\ndescription: d\nallowed-tools: Read"),
    /its name has "ü": a name has a-z/u
  ],
  ["the key of another harness", skill(named("tools: Read")), /the key "tools" is not read/u],
  ["another folder's name", skill("name: other\ndescription: d\nallowed-tools: Read"), /name the folder other/u],
  ["a part of a tool", skill(named("allowed-tools: Bash(git:*)")), /allows only part of a tool.*write choir\.exec/u],
  [
    "a tool that nobody has",
    skill(named("allowed-tools: Task")),
    /there is no tool Task: leave it out, or name the tools with --tools/u
  ],
  ["every tool", skill(named("allowed-tools: '*'")), /there is no tool \*/u],
  ["the tool that starts skills", skill(named("allowed-tools: choir.skill.start")), /cannot be allowed/u],
  ["tools as a map", skill(named("allowed-tools: {Read: true}")), /allowed-tools/u],
  ["tools of numbers", skill(named("allowed-tools: [1, 2]")), /allowed-tools/u],
  ["a tool by an inherited name", skill(named("allowed-tools: constructor toString")), /there is no tool/u],
  ["no text", skill(named(), ""), /says nothing below/u],
  [
    "a long text that it cannot read itself",
    skill(named("allowed-tools: Bash"), "x".repeat(OBJECTIVE_CHARS_MAX + 1)),
    /allow it choir\.fs\.read/u
  ],
  ["a huge file", skill(named(), "x".repeat(SKILL_FILE_BYTES_MAX)), /larger than 65536 bytes/u],
  ["huge front matter", skill(named(`x: ${"y".repeat(9000)}`)), /front matter is larger than/u],
  ["a key twice", skill(named("name: other")), /not YAML/u],
  ["tabs as indents", skill(named("metadata:\n\tauthor: x")), /not YAML/u],
  ["an alias", skill(named("a: &a [Read]\nallowed-tools: *a")), /anchors/u],
  ["an alias of aliases", skill(named(`a: &a [x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nallowed-tools: Read`)), /anchors/u],
  ["a merge key", skill(named("a: &a {x: 1}\nb: {<<: *a}\nallowed-tools: Read")), /anchors/u],
  ["a tag of a program", skill(named("x: !!js/function 'f'\nallowed-tools: Read")), /not YAML|tags/u],
  ["a binary tag", skill(named("x: !!binary aGk=\nallowed-tools: Read")), /not YAML|tags/u],
  ["a second document", skill(named("allowed-tools: Read\n...\nname: other")), /not YAML/u],
  ["a list for a map", skill("- name: notes"), /name|object|record/iu],
  ["a scalar for a map", skill("notes"), /name|object|record/iu],
  ["deep brackets", skill(named(`x: ${"[".repeat(4000)}`)), /cannot be read|not YAML/u],
  [
    "closed deep brackets",
    skill(named(`x: ${"[".repeat(3900)}${"]".repeat(3900)}`)),
    /missing|cannot be read|not YAML/u
  ],
  ["a prototype", skill("__proto__:\n  name: notes\ndescription: d\nallowed-tools: Read"), /\["name"\]/u],
  [
    "a zero-width space",
    skill(named(), "Read\u200B the notes"),
    /line 7 has a character that cannot be seen, U\+200B/u
  ],
  ["text that runs backwards", skill(named(), "\u202Esecret\u202C"), /U\+202E/u],
  ["letters of the plane of tags", skill(named(), "go\u{E0069}\u{E0067}"), /U\+E0069/u],
  ["a control character", skill(named(), "go\u001B[2K"), /U\+001B/u],
  ["a hidden character in the name", skill("name: not\u200Des\ndescription: d\nallowed-tools: Read"), /U\+200D/u],
  ["a line separator", skill(named(), "a\u2028b"), /U\+2028/u],
  ["a variation selector that hides a letter", skill(named(), "go\u{E0101}\u{E0102}"), /U\+E0101/u],
  ["a filler of Hangul", skill(named(), "go \u3164 on"), /U\+3164/u],
  ["a grapheme joiner", skill(named(), "pass\u034Fword"), /U\+034F/u],
  ["a selector after a letter", skill(named(), "a\uFE0F"), /U\+FE0F/u],
  ["two selectors after an emoji", skill(named(), "✅\uFE0F\uFE0F"), /U\+FE0F/u],
  ["an empty Braille pattern", skill(named(), "a\u2800b"), /U\+2800/u],
  ["a private character", skill(named(), "a\uE000b"), /U\+E000/u],
  [
    "an escaped zero-width space",
    skill('name: notes\ndescription: "Read\\u200b notes"\nallowed-tools: Read'),
    /\["description"\]: line 1 .*U\+200B/u
  ],
  [
    "an escaped letter of the plane of tags",
    skill(named('metadata: { author: "\\U000E0041" }\nallowed-tools: Read')),
    /\["metadata"\]\["author"\]: .*U\+E0041/u
  ],
  [
    "an escaped character in a key",
    skill(named('metadata: { "a\\u202e": x }\nallowed-tools: Read')),
    /a key of \["metadata"\]: .*U\+202E/u
  ],
  ["a built-in skill's name", skill("name: tool-builder\ndescription: d\nallowed-tools: Read"), /name the folder/u]
]

describe("a folder with a SKILL.md", () => {
  it.each(READ)("is read with %s", (_, front, tools) => {
    assert.deepStrictEqual(toolsOf(skill(named(front))), tools)
  })

  it("may have a colon in its description, which is taken as it is written", () => {
    const front = "name: notes\ndescription: Minutes: who, what. Triggers on: '/notes'\nallowed-tools: Read"
    const { description } = Result.getOrThrow(readSkillFolder("notes", skill(front)))
    assert.strictEqual(description, "Minutes: who, what. Triggers on: '/notes'")
    const problem = Result.getFailure(readSkillFolder("notes", skill(`${front}\nallowed-tools: Write`)))
    assert.match(JSON.stringify(problem), /not YAML: line 5: Map keys must be unique/u)
  })

  it("becomes a skill of one task, which is its text, and fails where the model says so", () => {
    const spec = Result.getOrThrow(readSkillFolder("notes", skill(named()).replaceAll("\n", "\r\n")))
    assert.strictEqual(spec.states?.["do"]?.objective, "# Steps\n\n1. Read the notes.")
    assert.deepStrictEqual(spec.states?.["do"]?.transitions, [
      { on: "done", to: "done" },
      { on: "error", to: "failed" }
    ])
    assert.include(spec.description, "Use after a meeting.")
  })

  it("shows of a long text the beginning, and the line of its file from which the rest is to be read", () => {
    const lines = Array.from({ length: 1000 }, (_, at) => `${at + 1}. A line of advice, as real ones are.`)
    const text = skill(named(), lines.join("\n"))
    const spec = Result.getOrThrow(readSkillFolder("notes", text))
    const objective = spec.states?.["do"]?.objective ?? ""
    assert.isAtMost(objective.length, OBJECTIVE_CHARS_MAX)
    const [, line = ""] =
      /choir-fs-read of \/choir\/skills\/notes\/SKILL\.md from line (\d+) on\.\]$/u.exec(objective) ?? []
    const last = objective.split("\n").findLast((one) => /^\d/u.test(one)) ?? ""
    assert.strictEqual(lines.indexOf(last) > 400, true)
    assert.strictEqual(text.split("\n")[Number(line) - 1], lines[lines.indexOf(last) + 1])
    assert.deepStrictEqual(toolsOf(text), ["choir.fs.read"])
  })

  it("may have emoji, a byte order mark and a line of dashes in its text", () => {
    const text = `\u{FEFF}${skill(named(), "Mark it \u{1F469}\u{1F3FD}\u200D\u{1F4BB} ✅\uFE0F\n\n---\n\nEnd.")}`
    assert.deepStrictEqual(toolsOf(text), ["choir.fs.read"])
    assert.include(JSON.stringify(Result.getOrThrow(readSkillFolder("notes", text))), "---")
  })

  it.each(REFUSED)("is refused with %s", (_, text, reason) => {
    const found = toolsOf(text)
    assert.isString(found)
    assert.match(String(found), reason)
    assert.isBelow(String(found).length, 2000)
  })

  it.prop(
    "is never read into a skill that its check refuses, whatever stands in it",
    [Schema.String, Schema.String, Schema.Json],
    ([front, body, value]) => {
      for (const more of [front, `allowed-tools: ${JSON.stringify(value)}`]) {
        const read = readSkillFolder("notes", skill(named(more), body))
        if (Result.isSuccess(read)) assert.isTrue(Result.isSuccess(readSkill("notes", JSON.stringify(read.success))))
      }
    }
  )
})
