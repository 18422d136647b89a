/** Tools and skills that an operator tries, on the whole program: no session, real containers, and nothing left. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { BRAVE_KEY, braveServer } from "../support/braveServer.ts"
import { choirctl, document } from "../support/choirctl.ts"
import { temporaryFolder } from "../support/engines.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { callTools, makeProvider, offlineModel } from "../support/testing/Provider.ts"
import { LAYER_MS_MAX } from "../support/size.ts"
import { skillSpec } from "../support/skills.ts"
import { BUILT_IN_TOOLS } from "#src/shared/image/builtInTools.ts"

const SECRET_TOOL = [
  "key.show",
  {
    llm: { name: "key.show", description: "Say how long the key is.", input_schema: { type: "object" } },
    runtime: { exec_path: "key.show", effect: "none", secret_resources: ["search-key"] }
  },
  `#!/usr/bin/env python3
import json, os
key = json.load(os.fdopen(int(os.environ["CHOIR_SECRETS_FD"])))["search-key"]
print(json.dumps({"summary": "key " + key, "output": {"length": len(key), "files": os.listdir(".")}}))
`
] as const

const make = Effect.gen(function* () {
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const brave = yield* braveServer([{ title: "Gardens", url: "https://garden.example/", description: "Roses." }])
  const choir = yield* makeTestInstallation({
    endpoint: provider.endpoint,
    runtime: "sandbox",
    tools: [SECRET_TOOL],
    secrets: { "search-key": BRAVE_KEY },
    config: { search: { brave: { secret: "search-key", endpoint: `${brave.origin}/res/v1/web/search` } } }
  })
  yield* choir.start
  yield* choir.build
  const ctl = (...args: ReadonlyArray<string>) => choirctl(choir.home, args)
  return { ...choir, brave, ctl, provider }
})

/** Inputs for the tools that this agent is offered and that need no session; a trial's workspace is empty. */
const INPUTS: Readonly<Record<string, object>> = {
  "choir.exec": { command: "echo hello" },
  "choir.fs.write": { path: "a.txt", content: "a", mode: "overwrite" },
  "choir.fs.search": { pattern: "a" },
  "choir.fs.find": { glob: "*" },
  "choir.web.search": { query: "roses" }
}

/** The other tools that it is offered, each with an input that it cannot do without. Those of accounts are in triedServices.test.ts. */
const LACKING: Readonly<Record<string, string>> = {
  "choir.fs.read": "path",
  "choir.fs.edit": "path",
  "choir.fs.send": "paths",
  "choir.web.fetch": "url",
  "choir.web.browse": "action"
}

class Choir extends Context.Service<Choir, Effect.Success<typeof make>>()("choir/test/TriedChoir") {
  static readonly layer = Layer.effect(Choir, make)
}

interface Tried {
  readonly type: string
  readonly status: string
  readonly effect: string
  readonly summary: string
  readonly output?: unknown
  readonly sources?: ReadonlyArray<string>
  readonly acted?: string
}

/** Nothing of a trial stays in the home. */
const nothingLeft = (home: string) => {
  assert.deepStrictEqual(readdirSync(join(home, "trials")), [])
  assert.deepStrictEqual(readdirSync(join(home, "socks/agents")), [])
}

const GREETING = skillSpec({
  name: "greet",
  states: {
    look: {
      objective: "Read the note, and write a greeting.",
      allowed_tools: ["choir.fs.read", "choir.fs.write", "ledger.append", "choir.exec"],
      transitions: [{ on: "complete", to: "done" }]
    },
    done: { terminal: true }
  }
})

/** A SKILL.md that reads one file. */
const guideSkill = (path: string) => `---
name: guide
description: Read the guide.
allowed-tools: Read
metadata:
  contract:
    execution_class: deterministic
    does: reads its guide
    does_not: change files
    state: { text: { schema: { type: string } } }
    state_read: []
    state_write: [text]
    assertions: [{ statement: there are words, path: text, op: matches, value: "?*" }]
    capabilities: ["fs:read"]
  registry:
    version: 1.0.0
    tier: task
    workflow: [{ step: Read it., tool: choir.fs.read, params: { path: ${path} }, writes: { text: content } }]
---

Read the guide.
`

layer(Choir.layer, { excludeTestServices: true, timeout: LAYER_MS_MAX })("choirctl tool try and skill try", (it) => {
  it.effect("checks the key of a search engine, with the result, its source and no session", () =>
    Effect.gen(function* () {
      const { api, ctl, home } = yield* Choir
      const ran = yield* ctl("tool", "try", "choir.web.search", "--input", '{"query":"roses"}', "--json")
      assert.strictEqual(ran.code, 0, ran.out + ran.err)
      const tried = document(ran) as Tried
      assert.deepInclude(tried, { type: "ran", status: "success", effect: "none", sources: ["search"] })
      assert.deepInclude(tried.output, {
        results: [{ title: "Gardens", url: "https://garden.example/", text: "Roses." }]
      })
      assert.isUndefined(tried.acted)
      const shown = yield* ctl("tool", "try", "choir-web-search", "--input", '{"query":"roses"}')
      assert.match(
        shown.out,
        /result +success in .*\nsummary +1 result\(s\)\neffect +none\nsource +untrusted, from search\n/u
      )
      assert.deepStrictEqual(yield* api.sessions.list({ query: {} }), [])
      nothingLeft(home)
    })
  )

  it.effect("calls a tool that acts outside only after a yes, and says how sure it acted", () =>
    Effect.gen(function* () {
      const { ctl, home } = yield* Choir
      const call = ["tool", "try", "ledger.append", "--input", '{"note":"x"}']
      const asked = yield* ctl(...call)
      assert.strictEqual(asked.code, 2)
      assert.include(asked.err, "This calls ledger.append for real: it acts outside this machine.")
      assert.include(asked.err, `tool try ledger.append --agent demo --input '{"note":"x"}' --yes`)
      const done = document(yield* ctl(...call, "--yes", "--json")) as Tried
      assert.deepInclude(done, { status: "success", effect: "external", acted: "accepted" })
      nothingLeft(home)
    })
  )

  it.effect("gives a tool of the image its own secrets and an empty workspace, and shows no secret", () =>
    Effect.gen(function* () {
      const { ctl, workspace } = yield* Choir
      writeFileSync(join(workspace, "diary.md"), "dear diary")
      const tried = yield* ctl("tool", "try", "key.show", "--json")
      assert.deepInclude(document(tried), { status: "success", output: { length: BRAVE_KEY.length, files: [] } })
      assert.notInclude(tried.out, BRAVE_KEY)
      assert.deepInclude(document(yield* ctl("tool", "try", "page.read", "--json")), { sources: ["tool:page.read"] })
    })
  )

  it.effect("says what is missing, and what to do about it", () =>
    Effect.gen(function* () {
      const { ctl } = yield* Choir
      for (const [args, problem, fix] of [
        [["key.shwo"], "demo has no tool key.shwo; did you mean key.show?", "tool list demo"],
        [["search"], "did you mean choir.fs.search or choir.web.search?", "tool list demo"],
        [
          ["choir.email.check"],
          "demo is not offered choir.email.check: demo is bound to no e-mail account",
          "agents.demo.defaults.email"
        ],
        [["choir.tts.speak"], "bound to no voice profile", "agents.demo.defaults.voice_profile"],
        [["choir.notion.query"], "bound to no Notion integration", "agents.demo.defaults.notion"],
        [["choir.core.spawn"], "needs a session; trials have none", "chat demo"],
        [["choir.web.search", "--agent", "nobody"], "there is no agent nobody", "known: demo"]
      ] as const) {
        const ran = yield* ctl("tool", "try", ...args)
        assert.strictEqual(ran.code, 1, ran.out + ran.err)
        assert.include(ran.err, problem)
        assert.include(ran.err, fix)
      }
      const wrong = document(yield* ctl("tool", "try", "choir.web.search", "--input", "{}", "--json")) as Tried
      assert.deepInclude(wrong, { status: "rejected" })
      assert.include(wrong.summary, "query")
    })
  )

  it.effect("runs a tool of the host in choird, by the rules of the web", () =>
    Effect.gen(function* () {
      const { ctl } = yield* Choir
      const ran = yield* ctl("tool", "try", "choir.web.fetch", "--input", '{"url":"http://127.0.0.1:1/"}', "--json")
      assert.strictEqual(ran.code, 1)
      assert.deepInclude(document(ran), { status: "error", effect: "none" })
      assert.include(ran.out, "this port is not allowed")
    })
  )

  it.effect(
    "answers for every built-in tool: it runs, names the input that it lacks, or says why it is not offered and what would change that",
    () =>
      Effect.gen(function* () {
        const { ctl, home } = yield* Choir
        const answers = yield* Effect.forEach(
          BUILT_IN_TOOLS,
          Effect.fnUntraced(function* (tool) {
            const ran = yield* ctl(
              "tool",
              "try",
              tool,
              "--input",
              JSON.stringify(INPUTS[tool] ?? {}),
              "--yes",
              "--json"
            )
            const { error, status, summary, type } = document(ran) as Tried & { error?: { hint?: string } }
            const lacks = LACKING[tool]
            if (type === "ran" && status === "rejected" && lacks !== undefined)
              return [tool, summary.includes(lacks) ? "names it" : summary] as const
            if (type === "ran") return [tool, status] as const
            return [tool, ran.code === 1 && (error?.hint ?? "") !== "" ? "refused" : ran.out] as const
          })
        )
        const expected = (tool: string) =>
          Object.hasOwn(INPUTS, tool) ? "success" : Object.hasOwn(LACKING, tool) ? "names it" : "refused"
        assert.deepStrictEqual(
          answers,
          BUILT_IN_TOOLS.map((tool) => [tool, expected(tool)] as const)
        )
        nothingLeft(home)
      })
  )

  it.effect("says that a secret has no value, with the command that sets it", () =>
    Effect.gen(function* () {
      const { ctl, home } = yield* Choir
      const file = join(home, "secrets.json")
      const before = readFileSync(file, "utf8")
      writeFileSync(file, "{}")
      assert.strictEqual((yield* ctl("secret", "apply")).code, 0)
      const ran = yield* ctl("tool", "try", "choir.web.search", "--input", '{"query":"x"}')
      assert.strictEqual(ran.code, 1)
      assert.include(ran.err, `the secret "search-key" has no value`)
      assert.include(ran.err, "secret set search-key")
      writeFileSync(file, before)
      yield* ctl("secret", "apply")
    })
  )

  it.effect("writes each try to the audit, and is not to be had from a sandbox", () =>
    Effect.gen(function* () {
      const { ctl } = yield* Choir
      const seen = document(
        yield* ctl("tool", "try", "choir.exec", "--input", '{"command":"ls -A /run/choir; ls -A /"}', "--json")
      ) as Tried
      assert.include(JSON.stringify(seen.output), "choird.sock")
      assert.notInclude(JSON.stringify(seen.output), "config.json")
      const audit = yield* ctl("audit", "--last", "5", "--json")
      assert.include(audit.out, '"action":"tool.try"')
    })
  )

  it.effect("runs a skill that is in no image, on a copy, with effects held back, and tells each phase and call", () =>
    Effect.gen(function* () {
      const { api, ctl, home, provider } = yield* Choir
      const place = yield* temporaryFolder
      mkdirSync(join(place, "notes"))
      writeFileSync(join(place, "notes/note.md"), "Ann")
      writeFileSync(join(place, "greet.json"), JSON.stringify(GREETING))
      yield* provider.script(
        callTools([
          { name: "choir-fs-read", input: { path: "note.md" } },
          { name: "choir-fs-write", input: { path: "hello.md", content: "Hello Ann", mode: "overwrite" } },
          { name: "ledger-append", input: { note: "greeted" } },
          { name: "choir-exec", input: { command: "cat hello.md; ls" } }
        ]),
        callTools([{ name: "choir-skill-transition", input: { on: "complete", output: { greeted: true } } }])
      )
      const tried = yield* ctl("skill", "try", join(place, "greet.json"), "--files", join(place, "notes"))
      assert.strictEqual(tried.code, 0, tried.out + tried.err)
      assert.match(tried.out, /^phase look/u)
      assert.match(tried.out, /choir\.fs\.read \{"path":"note\.md"\}\n {4}success/u)
      assert.match(tried.out, /ledger\.append .*\n {4}not called, since it acts outside; answered as done/u)
      assert.match(tried.out, /choir\.exec .*\n {4}success: exit code 0/u)
      assert.match(tried.out, /end \(completed\) in done by complete/u)
      assert.match(tried.out, /changed +hello\.md \(of the copy\)/u)
      assert.match(tried.out, /cost +2 model calls/u)
      assert.include(tried.out, '"greeted": true')
      assert.isFalse(existsSync(join(place, "notes/hello.md")))
      assert.deepStrictEqual(yield* api.sessions.list({ query: {} }), [])
      nothingLeft(home)
    })
  )

  it.effect("reads the references of a folder that is in no image, and nothing beside them", () =>
    Effect.gen(function* () {
      const { ctl } = yield* Choir
      const place = yield* temporaryFolder
      const write = (path: string) => {
        mkdirSync(join(place, "guide/references"), { recursive: true })
        writeFileSync(join(place, "guide/references/guide.md"), "Begin with the date.\n")
        writeFileSync(join(place, "guide/SKILL.md"), guideSkill(path))
        return ctl("skill", "try", join(place, "guide"))
      }
      const tried = yield* write("references/guide.md")
      assert.strictEqual(tried.code, 0, tried.out + tried.err)
      assert.include(tried.out, "Begin with the date.")
      const other = yield* write("/choir/skills/todo-flagger.json")
      assert.strictEqual(other.code, 1, other.out)
    })
  )

  it.effect("runs a script of the starter without any request to a model", () =>
    Effect.gen(function* () {
      const { ctl, provider } = yield* Choir
      const place = yield* temporaryFolder
      writeFileSync(join(place, "a.ts"), "// TODO: prune the roses\n")
      const before = (yield* provider.requests.all).length
      const tried = yield* ctl("skill", "try", "todo-flagger", "--input", '{"path":"."}', "--files", place)
      assert.strictEqual(tried.code, 0, tried.out + tried.err)
      assert.include(tried.out, "no model was asked")
      assert.include(tried.out, "prune the roses")
      assert.strictEqual((yield* provider.requests.all).length, before)
    })
  )

  it.effect(
    "ends with the reason and exit code 1 where the skill fails, and names a skill or model that is nearly right",
    () =>
      Effect.gen(function* () {
        const { ctl } = yield* Choir
        const failed = yield* ctl("skill", "try", "todo-flagger", "--input", '{"path":"nowhere"}')
        assert.strictEqual(failed.code, 1)
        assert.match(failed.out, /outcome +error/u)
        const misspelt = yield* ctl("skill", "try", "todo-flager")
        assert.include(misspelt.err, "demo has no skill todo-flager; did you mean todo-flagger?")
        const model = yield* ctl("skill", "try", "summarize", "--model", "tset")
        assert.include(model.err, "config.json has no model tset; did you mean test?")
        assert.include((yield* ctl("skill", "try", "./nothing")).err, "there is no file or folder ./nothing")
      })
  )
})
