import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { BUILT_IN_TOOLS } from "#src/shared/image/builtInTools.ts"
import { merge, type MergeOptions, REQUEST_TOOLS_MAX } from "#src/choird/repos/Merge.ts"
import { isHeld, type RepoFile } from "#src/choird/repos/Tree.ts"
import { summarize, todoFlagger } from "../../support/contracts.ts"
import { skillText } from "../../support/skills.ts"

const manifest = (name: string, runtime: Record<string, unknown> = { exec_path: name }) =>
  JSON.stringify({ llm: { name, description: "does it", input_schema: { type: "object" } }, runtime })

const files = (contents: Record<string, string>): ReadonlyArray<RepoFile> =>
  Object.entries(contents).map(([path, text]) => ({ path, executable: false, bytes: Buffer.from(text) }))

const IDENTITY = { "identity/USER.md": "user", "identity/SOUL.md": "soul", "identity/SOUL-CORE.md": "core" }

const mergeOf = (global: Record<string, string>, agent: Record<string, string> = {}, options: MergeOptions = {}) =>
  merge({ label: "global", files: files({ ...IDENTITY, ...global }) }, { label: "agent", files: files(agent) }, options)

const planOf = (global: Record<string, string>, agent: Record<string, string> = {}) => {
  const merged = mergeOf(global, agent)
  if (Result.isFailure(merged)) throw merged.failure
  const { files, warnings } = merged.success
  return {
    warnings,
    texts: Object.fromEntries(files.filter(isHeld).map(({ path, bytes }) => [path, Buffer.from(bytes).toString()])),
    executables: files.flatMap(({ path, executable }) => (executable ? [path] : []))
  }
}

const problemsOf = (global: Record<string, string>, agent: Record<string, string> = {}) => {
  const merged = mergeOf(global, agent)
  return Result.isFailure(merged)
    ? merged.failure.problems.map(({ repo, path, reason }) => `${repo}: ${path}: ${reason}`)
    : []
}

const guide = (description: string, name = "guide", tools = "Read") =>
  `---\nname: ${name}\ndescription: ${description}\nallowed-tools: ${tools}\n---\nHelp.\n`

const SCHEMA = JSON.stringify({ type: "array" })
const PROFILE = JSON.stringify({ agent_type: "reviewer", pool: "review" })

describe("Merge", () => {
  it("bakes schemas and profiles below the skills, whose hash covers them", () => {
    const { texts } = planOf(
      {
        "skills/todo-flagger.json": JSON.stringify(todoFlagger),
        "schemas/todo-flag@1.0.json": SCHEMA,
        "profiles/reviewer.json": PROFILE,
        "profiles/writer.json": PROFILE.replace("reviewer", "writer")
      },
      { "profiles/reviewer.json": PROFILE.replace("review", "research").replace("researcher", "reviewer") }
    )
    assert.deepStrictEqual(
      Object.keys(texts)
        .filter((path) => path.startsWith("skills/_"))
        .sort(),
      [
        "skills/_index.json",
        "skills/_profiles/reviewer.json",
        "skills/_profiles/writer.json",
        "skills/_schemas/todo-flag@1.0.json"
      ]
    )
    assert.strictEqual(texts["skills/_schemas/todo-flag@1.0.json"], SCHEMA)
  })

  it("refuses a schema that takes away, one that both repositories have, and a skill that pins none", () => {
    assert.deepStrictEqual(
      problemsOf(
        {
          "schemas/a@1.0.json": '{"type":"object","properties":{"x":{}}}',
          "schemas/a@1.1.json": '{"type":"object","properties":{}}',
          "schemas/b@1.0.json": SCHEMA,
          "schemas/c.json": "{}"
        },
        { "schemas/b@1.0.json": "{}", "skills/todo-flagger.json": JSON.stringify(todoFlagger), "skills/_x/a.md": "" }
      ),
      [
        `agent: skills/_x/a.md: names that begin with _ are Choir's own: choose another`,
        `agent: skills/todo-flagger.json: at ["contract"]["state"]["flags"]["schema"]: there is no schema todo-flag@1.0: add schemas/todo-flag@1.0.json`,
        "global: schemas/c.json: name the file <name>@<major>.<minor>.json, such as todo-flag@1.0.json",
        "agent: schemas/b@1.0.json: global has this schema: remove it here, or give it another version",
        "global: schemas/a@1.1.json: a minor version only adds to a@1.0, but here x is gone: raise the major version"
      ]
    )
  })

  it("refuses a profile with a tool that is not there, and a skill that can do more than it declares", () => {
    const poster = manifest("post", { exec_path: "post", network: true, secret_resources: ["key"] })
    const contract = { ...summarize.contract, capabilities: ["fs:read"] }
    const states = { ...summarize.states, do: { ...summarize.states.do, allowed_tools: ["post"] } }
    assert.deepStrictEqual(
      problemsOf({
        "tools/post.json": poster,
        "tools/post": "x",
        "skills/summarize.json": JSON.stringify({ ...summarize, contract, states }),
        "profiles/reviewer.json": JSON.stringify({
          agent_type: "reviewer",
          pool: "review",
          permissions: { tools: ["a.b"] }
        })
      }),
      [
        `global: skills/summarize.json: at ["contract"]["capabilities"]: post needs fs:write, net, env:read: declare it, or do without the tool`,
        `global: profiles/reviewer.json: at ["permissions"]["tools"][0]: there is no tool a.b`
      ]
    )
  })

  it("bakes tools by scope, skills together, and makes the executables executable", () => {
    const { texts, executables, warnings } = planOf(
      { "tools/a.b.json": manifest("a.b"), "tools/a.b": "run a", "tools/a.b/data.txt": "x", "README.md": "no" },
      {
        "tools/c.json": manifest("c", { exec_path: "/choir/tools/agent/c" }),
        "tools/c": "run c",
        "skills/.gitkeep": ""
      }
    )
    assert.deepStrictEqual(Object.keys(texts).sort(), [
      "SOUL-CORE.md",
      "SOUL.md",
      "USER.md",
      "tools/agent/c",
      "tools/agent/c.json",
      "tools/global/a.b",
      "tools/global/a.b.json",
      "tools/global/a.b/data.txt"
    ])
    assert.deepStrictEqual(executables.sort(), ["tools/agent/c", "tools/global/a.b"])
    assert.deepStrictEqual(warnings, [])
  })

  it("leaves out a global tool, its executable and its folder when the agent has one of its name", () => {
    const { texts } = planOf(
      {
        "tools/x.json": manifest("x"),
        "tools/x": "old",
        "tools/x/src.c": "old",
        "tools/y.json": manifest("y"),
        "tools/y": "y"
      },
      { "tools/x.json": manifest("x"), "tools/x": "new" }
    )
    assert.deepStrictEqual(
      Object.keys(texts)
        .filter((path) => path.startsWith("tools/"))
        .sort(),
      ["tools/agent/x", "tools/agent/x.json", "tools/global/y", "tools/global/y.json"]
    )
  })

  it("lets the agent's skill replace a global one of its name, folders included", () => {
    const skill = (text: string) => ({ "skills/s.json": skillText("s", text) })
    const { texts } = planOf(
      {
        ...skill("old"),
        "skills/guide/SKILL.md": guide("old"),
        "skills/guide/more.md": "old",
        "skills/t.json": skillText("t")
      },
      { ...skill("new"), "skills/guide/SKILL.md": guide("new") }
    )
    const { "skills/_index.json": index = "", "skills/guide.json": made = "", ...others } = texts
    assert.match(index, /"name": "guide"[^]*"name": "s"[^]*"name": "t"/u)
    assert.include(JSON.parse(made), { name: "guide", description: "new" })
    assert.deepStrictEqual(Object.fromEntries(Object.entries(others).filter(([path]) => path.startsWith("skills/"))), {
      "skills/guide/SKILL.md": guide("new"),
      "skills/s.json": skillText("s", "new"),
      "skills/t.json": skillText("t")
    })
  })

  const identities: ReadonlyArray<[string, Record<string, string>, Record<string, string>, ReadonlyArray<string>]> = [
    ["all from global", {}, { "SOUL.md": "soul", "SOUL-CORE.md": "core", "USER.md": "user" }, []],
    ["SOUL.md from the agent", { "identity/SOUL.md": "mine" }, { "SOUL.md": "mine", "SOUL-CORE.md": "core" }, []],
    [
      "SOUL-CORE.md from the agent",
      { "identity/SOUL-CORE.md": "mine" },
      { "SOUL.md": "soul", "SOUL-CORE.md": "mine" },
      []
    ],
    [
      "USER.md never from the agent",
      { "identity/USER.md": "mine" },
      { "USER.md": "user" },
      ["agent: identity/USER.md is not used, the user is described in the global"]
    ]
  ]
  it.each(identities)("takes identity files: %s", (_, agent, expected, warned) => {
    const { texts, warnings } = planOf({}, agent)
    for (const [path, text] of Object.entries(expected)) assert.strictEqual(texts[path], text)
    assert.deepStrictEqual(warnings, warned)
  })

  it("leaves out a tool that has sources and no executable, and says so", () => {
    const { texts, warnings } = planOf({ "tools/x.json": manifest("x"), "tools/x/main.c": "int main;" })
    assert.deepStrictEqual(
      Object.keys(texts).filter((path) => path.startsWith("tools/")),
      []
    )
    assert.match(warnings[0] ?? "", /^global: the tool x has sources and no executable/u)
  })

  it("refuses a skill that needs a tool which the image would not have, and says why it has not", () => {
    const sources = {
      "tools/x.json": manifest("x", { exec_path: "x" }),
      "tools/x/main.c": "int main;",
      "skills/use.json": skillText("use").replace("choir.fs.write", "x")
    }
    const problems = problemsOf(sources)
    assert.isTrue(
      problems.some((line) => /skills\/use\.json.*there is no tool x/u.test(line)),
      problems.join("\n")
    )
    assert.isTrue(
      problems.some((line) => /tools\/x\.json.*commit the executable/u.test(line)),
      problems.join("\n")
    )
    assert.deepStrictEqual(problemsOf({ ...sources, "tools/x": "#!/bin/sh\n" }), [])
  })

  it("warns of keys and folders that nothing follows from", () => {
    const { warnings } = planOf({
      "tools/x.json": manifest("x", { exec_path: "x", version: "2", idempotent: true, network: false }),
      "tools/x": "",
      "tools/y.json": manifest("y", { exec_path: "y", network: true }),
      "tools/y": "",
      "skills/review/README.md": "# Review"
    })
    assert.deepStrictEqual(warnings, [
      "global: runtime.network of tools/*.json has no effect (this version): x",
      "global: skills/review/ is ignored: a skill is a file skills/<name>.json or a folder with a SKILL.md"
    ])
  })

  it("takes an executable inside the tool's folder", () => {
    const { executables } = planOf({ "tools/x.json": manifest("x", { exec_path: "x/bin/run" }), "tools/x/bin/run": "" })
    assert.deepStrictEqual(executables, ["tools/global/x/bin/run"])
  })

  it.each([
    ["#!/bin/sh\r\necho 1\r\n", "its program tools/x cannot be run: its lines end as those of Windows do"],
    ["\u{feff}#!/bin/sh\n", "its program tools/x cannot be run: it begins with a byte order mark"],
    [
      "version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
      "its program tools/x cannot be run: it is a pointer of Git LFS"
    ]
  ])("names a program that no system can run: %j", (program, words) => {
    const merged = mergeOf({}, { "tools/x.json": manifest("x"), "tools/x": program }, {})
    const reasons = Result.isFailure(merged) ? merged.failure.problems.map(({ reason }) => reason).join("\n") : ""
    assert.include(reasons, words)
  })

  it("names every mistake of a tool at once: in its manifest, its secrets, its name and its executable", () => {
    const text = manifest("words.count", {
      exec_path: "count",
      locks: [{ resource: "bogus", mode: "X" }],
      secret_resources: ["nowhere"]
    })
    const secretProblem = (name: string) => `there is no secret ${name}`
    const tool = { "tools/words.json": text.replace('"object"', '"object","typ":"x"') }
    const merged = mergeOf({}, tool, { secretProblem })
    const reasons = Result.isFailure(merged) ? merged.failure.problems.map(({ reason }) => reason).join("\n") : ""
    for (const wanted of [
      '"bogus" cannot be locked',
      '"typ" is not a keyword',
      "runtime.secret_resources.0: there is no secret nowhere",
      "name the file words.count.json",
      "its executable tools/count is missing"
    ])
      assert.include(reasons, wanted)
  })

  const refused: ReadonlyArray<[string, Record<string, string>, RegExp]> = [
    ["no JSON", { "tools/x.json": "{" }, /tools\/x\.json: /u],
    [
      "an unknown key",
      { "tools/x.json": manifest("x", { exec_path: "x", sudo: true }), "tools/x": "" },
      /runtime\.sudo: "sudo" is not a known key$/u
    ],
    ["a wrong type", { "tools/x.json": manifest("x", { exec_path: 1 }) }, /runtime\.exec_path: it must be a string$/u],
    [
      "both effect spellings",
      { "tools/x.json": manifest("x", { exec_path: "x", effect: "none", side_effect: "none" }), "tools/x": "" },
      /effect or side_effect/u
    ],
    [
      "another name than its file's",
      { "tools/x.json": manifest("y", { exec_path: "x" }), "tools/x": "" },
      /name the file y\.json/u
    ],
    [
      "a lock that means nothing",
      { "tools/x.json": manifest("x", { exec_path: "x", locks: [{ resource: "bogus", mode: "X" }] }), "tools/x": "" },
      /runtime\.locks\.0\.resource: "bogus" cannot be locked: no such resource/u
    ],
    [
      "a misspelt keyword in its schema",
      {
        "tools/x.json": manifest("x").replace('"object"', '"object","properties":{"a":{"typ":"string"}}'),
        "tools/x": ""
      },
      /llm\.input_schema\.properties\.a\.typ: "typ" is not a keyword of JSON Schema; did you mean type\?$/u
    ],
    [
      "a keyword that no agent can check",
      {
        "tools/x.json": manifest("x").replace('"object"', '"object","properties":{"a":{"$dynamicRef":"#a"}}'),
        "tools/x": ""
      },
      /properties\.a\.\$dynamicRef: the agent cannot check "\$dynamicRef"/u
    ],
    [
      "an input that is no object",
      { "tools/x.json": manifest("x").replace('"object"', '"string"'), "tools/x": "" },
      /llm\.input_schema\.type: write "object"/u
    ],
    [
      "a built-in tool's name",
      { "tools/choir.exec.json": manifest("choir.exec"), "tools/choir.exec": "" },
      /llm\.name: a built-in tool has the name choir\.exec/u
    ],
    [
      "two tools whose names differ in separators",
      {
        "tools/word.count.json": manifest("word.count"),
        "tools/word.count": "",
        "tools/word_count.json": manifest("word_count"),
        "tools/word_count": ""
      },
      /word_count\.json: its name and that of the tool word\.count of the \S.* differ in separators alone/u
    ],
    [
      "a tool whose name is like a built-in one",
      { "tools/choir_exec.json": manifest("choir_exec"), "tools/choir_exec": "" },
      /that of the built-in tool choir\.exec differ in separators/u
    ],
    ["no executable", { "tools/x.json": manifest("x") }, /executable tools\/x is missing/u],
    ["an executable outside", { "tools/x.json": manifest("x", { exec_path: "/bin/sh" }), "tools/x": "" }, /exec_path/u],
    ["an executable above", { "tools/x.json": manifest("x", { exec_path: "../x" }), "tools/x": "" }, /exec_path/u],
    [
      "the other scope's executable",
      { "tools/x.json": manifest("x", { exec_path: "/choir/tools/agent/x" }), "tools/x": "" },
      /exec_path/u
    ],
    ["a manifest that is too large", { "tools/x.json": `"${"x".repeat(300_000)}"` }, /larger than/u],
    ["a skill of another name", { "skills/x.json": skillText("y") }, /name the file y\.json/u],
    ["a built-in skill's name", { "skills/tool-builder.json": skillText("tool-builder") }, /built-in skill/u],
    [
      "a skill that leads nowhere",
      { "skills/x.json": skillText("x").replace('"to":"write"', '"to":"nowhere"') },
      /there is no state "nowhere"/u
    ],
    [
      "a skill with an unknown tool",
      { "skills/x.json": skillText("x").replace("choir.fs.write", "no.such") },
      /no tool no\.such/u
    ],
    [
      "a SKILL.md without front matter",
      { "skills/x/SKILL.md": "# X" },
      /skills\/x\/SKILL\.md: it does not begin with front/u
    ],
    [
      "a SKILL.md with an unknown tool",
      { "skills/x/SKILL.md": guide("x", "x", "no.such") },
      /SKILL\.md: .*no tool no\.such/u
    ],
    [
      "a folder and a file of one skill",
      { "skills/x/SKILL.md": guide("x", "x"), "skills/x.json": skillText("x") },
      /there is a skill file x\.json too/u
    ],
    ["a skill without a name", { "skills/x.json": "{}" }, /\["name"\]/u],
    ["a skill that is no object", { "skills/x.json": "[]" }, /skills\/x\.json/u]
  ]
  it.each(refused)("refuses a file with %s, by its path", (_, global, problem) => {
    const problems = problemsOf(global)
    assert.strictEqual(problems.length, 1)
    assert.match(problems[0] ?? "", problem)
  })

  it("refuses identity files that are missing, too large or no text", () => {
    const bytes = { path: "identity/SOUL.md", executable: false, bytes: Buffer.from([0xff, 0xfe]) }
    const large = { path: "identity/USER.md", executable: false, bytes: Buffer.alloc(65_537, 97) }
    const merged = merge({ label: "global", files: [bytes, large] }, { label: "agent", files: [] })
    assert.deepStrictEqual(
      Result.isFailure(merged) && merged.failure.problems.map(({ path, reason }) => [path, reason]),
      [
        ["identity/USER.md", "larger than 65536 bytes"],
        ["identity/SOUL.md", "not UTF-8"],
        ["identity/SOUL-CORE.md", "the file is missing"]
      ]
    )
  })

  it("refuses more tools than a request to a model may have, the built-in ones included", () => {
    const tools = (scope: string, count: number) =>
      Object.fromEntries(
        Array.from({ length: count }, (_, index) => [
          [`tools/${scope}${index}.json`, manifest(`${scope}${index}`)],
          [`tools/${scope}${index}`, "#!/bin/sh"]
        ]).flat()
      )
    const room = REQUEST_TOOLS_MAX - BUILT_IN_TOOLS.length
    assert.deepStrictEqual(problemsOf(tools("g", 60), tools("a", room - 60)), [])
    const [problem, ...more] = problemsOf(tools("g", 60), tools("a", room - 58))
    assert.deepStrictEqual(more, [])
    assert.match(
      problem ?? "",
      /^global and agent: tools\/: 130 tools are too many, .*at most 128\. Remove 2 of them$/u
    )
    // A tool of the agent that replaces a global one counts once.
    assert.deepStrictEqual(problemsOf(tools("g", room), tools("g", room)), [])
  })

  it("reports the problems of both repositories at once", () => {
    const problems = problemsOf({ "tools/x.json": "{", "skills/s.json": "{" }, { "tools/y.json": manifest("y") })
    assert.deepStrictEqual(
      problems.map((problem) => problem.split(": ").slice(0, 2).join(" ")),
      ["global tools/x.json", "agent tools/y.json", "global skills/s.json"]
    )
  })
})
