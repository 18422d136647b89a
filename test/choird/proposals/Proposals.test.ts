/** What a person is shown of a proposal, and which ones nobody is asked about (D24, R54). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, type Schema } from "effect"
import { SessionId } from "#schema/Ids.ts"
import { CommitId } from "#schema/Image.ts"
import type { ProposalKind } from "#schema/ProposedChange.ts"
import type { Entry } from "../../support/gitRepo.ts"
import { skillDraft } from "../../support/skills.ts"
import { previewer, makeProposalHome, TOOL } from "../../support/proposals.ts"
import { PROPOSAL_COMMITS_MAX } from "#src/choird/repos/GitWork.ts"
import { PROPOSAL_SHOWN_CHARS_MAX } from "#src/choird/proposals/Difference.ts"
import { APPROVAL_SHOWN_CHARS_MAX } from "#src/choird/approvals/approvalText.ts"

const SESSION = SessionId.make("0123456789abcdef")

const open = Effect.gen(function* () {
  const home = yield* makeProposalHome
  const preview = yield* previewer(home)
  const examine = (kind: ProposalKind, payload: Schema.Json) =>
    Effect.result(preview({ agent_id: home.agent_id, session_id: SESSION, kind, payload }))
  return { ...home, examine }
})

const withFile = (path: string, content = "x\n", more: object = {}) => ({
  ...TOOL,
  files: [...TOOL.files, { path, content, ...more }]
})
const withRuntime = (runtime: Readonly<Record<string, Schema.Json>>, name = "notes.count") => ({
  ...TOOL,
  manifest: { llm: { ...TOOL.manifest.llm, name }, runtime: { ...TOOL.manifest.runtime, ...runtime } }
})
const edit = (path: string, value: Schema.Json = 3) => ({ change: [{ op: "set", path, value }], reason: "more" })
const spec = (name: string) => ({ spec: { name, states: {} }, reason: "why not" })

/** A skill that would do, with one thing changed. */
const skill = (more: Readonly<Record<string, Schema.Json>>) => ({
  spec: { ...skillDraft({ name: "tidy" }), ...more } as Readonly<Record<string, Schema.Json>>,
  reason: "why not"
})
const states = (allowed: ReadonlyArray<string>, to = "done") => ({
  states: {
    look: { objective: "look", allowed_tools: allowed, transitions: [{ on: "complete", to }] },
    done: { terminal: true }
  }
})

const LOOP = { objective: "go on", allowed_tools: [], transitions: [{ on: "complete", to: "a" }] }
const ENDLESS = {
  spec: { name: "endless", description: "never ends", initial_state: "a", states: { a: LOOP }, max_steps: 3 },
  reason: "why not"
}

/** Each with what the refusal says. `AGENT` stands for the agent's id. */
const REFUSED: ReadonlyArray<readonly [string, ProposalKind, Schema.Json, RegExp]> = [
  ["a file outside of tools/", "tool", withFile("identity/SOUL.md"), /outside tools\/notes\.count/u],
  ["another tool's file", "tool", withFile("tools/other", "#!/bin/sh\n"), /outside tools\/notes\.count/u],
  ["a path with ..", "tool", withFile("tools/notes.count/../../Dockerfile"), /leads nowhere else/u],
  ["an absolute path", "tool", withFile("/etc/passwd"), /leads nowhere else/u],
  ["git's own folder", "tool", withFile("tools/notes.count/.git/config"), /leads nowhere else/u],
  ["a bidirectional name", "tool", withFile("tools/notes.count\u202e"), /leads nowhere else/u],
  ["folders in folders", "tool", withFile(`tools/notes.count/${"d/".repeat(40)}x`), /more than 32 folders deep/u],
  ["a file below a file", "tool", withFile("tools/notes.count/more"), /below a file/u],
  ["two files of one path", "tool", withFile("tools/notes.count"), /same path/u],
  ["a large file", "tool", withFile("tools/notes.count", "x".repeat(60_000)), /larger than/u],
  ["a built-in name", "tool", withRuntime({}, "choir.exec"), /built-in/u],
  ["an executable elsewhere", "tool", withRuntime({ exec_path: "../../bin/sh" }), /exec_path/u],
  ["the executable of another tool", "tool", withRuntime({ exec_path: "other" }), /exec_path/u],
  ["a manifest with an unknown key", "tool", withRuntime({ user: "root" }), /user/u],
  ["an unknown key of a proposal", "tool", { ...TOOL, approve: true }, /approve/u],
  ["a manifest of nothing", "tool", { ...TOOL, manifest: {} }, /manifest/u],
  ["a skill whose name is a path", "skill", spec("../SOUL"), /skill name/u],
  ["a skill without an end", "skill", ENDLESS, /no state is terminal: add one/u],
  ["a skill of a tool that there is not", "skill", skill(states(["mem.read"])), /there is no tool mem\.read/u],
  ["a skill that leads nowhere", "skill", skill(states([], "end")), /there is no state "end"; there are look, done/u],
  ["a skill that starts skills", "skill", skill(states(["choir.skill.start"])), /a skill cannot start another skill/u],
  ["a skill with a built-in name", "skill", skill({ ...states([]), name: "tool-builder" }), /choose another/u],
  [
    "a skill that is named like a file",
    "skill",
    skill({ ...states([]), name: "tidy.json" }),
    /ends like that of a file/u
  ],
  ["another agent's defaults", "config_change", edit("/agents/eve/defaults/llm", "large"), /may not be proposed/u],
  ["its own DM", "config_change", edit("/agents/AGENT/defaults/dm", "phone"), /may not be proposed/u],
  ["its own repository", "config_change", edit("/agents/AGENT/repo/url", "/srv/x"), /may not be proposed/u],
  ["confirmations", "config_change", edit("/approvals/confirm_external", "never"), /may not be proposed/u],
  ["the runtime", "config_change", edit("/runtime/type", "process"), /may not be proposed/u],
  ["a model that there is not", "config_change", edit("/agents/AGENT/defaults/llm", "gpt"), /there is no model/u],
  ["a budget of nonsense", "config_change", edit("/budgets/turn_max_steps", -1), /greater than/u],
  ["a budget that there is not", "config_change", edit("/budgets/constructor"), /may not be proposed/u],
  ["a key of the prototype", "config_change", edit("/budgets/__proto__"), /may not be proposed/u]
]

const DOCKERFILE = "FROM choir-base\nADD https://example.org/x /x\n"

/** A branch of the agent's with exactly these files, on top of a commit. */
const pushed = ({ agent, base }: Effect.Success<typeof open>, files: ReadonlyArray<Entry>, parent = base) => {
  const branch = `proposal/${SESSION}/x`
  const tree = agent.commit([{ path: "README.md", content: "an agent\n" }, ...files], "scratch")
  const commit = agent.git(["commit-tree", `${tree}^{tree}`, "-p", parent, "-m", "a \u202e change"])
  agent.git(["update-ref", `refs/heads/${branch}`, commit])
  return { branch, commit, reason: "a change" }
}

const BRANCHES: ReadonlyArray<readonly [string, ReadonlyArray<Entry>, RegExp]> = [
  ["a symbolic link", [{ path: "tools/x", content: "/etc/passwd", mode: "120000" }], /symbolic link/u],
  ["a submodule", [{ path: "sub", mode: "160000", id: "1".repeat(40) }], /submodule/u],
  ["attributes", [{ path: "a/.gitAttributes", content: "* filter=lfs\n" }], /programs git runs on a checkout/u],
  [".gitmodules", [{ path: ".gitmodules", content: "[submodule]" }], /git's own files/u],
  ["a Dockerfile that adds from afar", [{ path: "Dockerfile", content: DOCKERFILE }], /Dockerfile/u],
  ["a broken manifest", [{ path: "tools/x.json", content: "{" }], /tools\/x\.json/u],
  ["a program that nobody can read", [{ path: "tools/x", content: new Uint8Array([255, 254, 0]) }], /is not text/u],
  [
    "what nobody reads",
    [{ path: "a.txt", content: "x\n".repeat(50_000) }],
    new RegExp(`${PROPOSAL_SHOWN_CHARS_MAX}`, "u")
  ],
  ["nothing", [], /change nothing/u]
]

describe("a preview of a proposal", { timeout: 300_000 }, () => {
  it.effect(`refuses ${REFUSED.length} hostile or broken proposals, and names what is wrong`, () =>
    Effect.gen(function* () {
      const { agent_id, examine } = yield* open
      for (const [what, kind, payload, words] of REFUSED) {
        const own = JSON.parse(JSON.stringify(payload).replaceAll("AGENT", agent_id)) as Schema.Json
        const answer = yield* examine(kind, own)
        assert.isTrue(Result.isFailure(answer), what)
        if (Result.isFailure(answer)) {
          assert.match(answer.failure.reason, words, what)
          assert.strictEqual(answer.failure.kind, "BAD_REQUEST", what)
        }
      }
    })
  )

  it.effect(`refuses branches with ${BRANCHES.map(([what]) => what).join(", ")}`, () =>
    Effect.gen(function* () {
      const home = yield* open
      for (const [what, files, words] of BRANCHES) {
        const answer = yield* home.examine("repo_change", pushed(home, files))
        assert.isTrue(Result.isFailure(answer), what)
        if (Result.isFailure(answer)) assert.match(answer.failure.reason, words, what)
      }
    })
  )

  it.effect("refuses a branch of another session, one that is behind, and one whose newest commit is another", () =>
    Effect.gen(function* () {
      const home = yield* open
      const files = [{ path: "a.txt", content: "a\n" }]
      const proposed = pushed(home, files)
      const kind = (payload: Schema.Json) =>
        Effect.map(home.examine("repo_change", payload), (answer) =>
          Result.isFailure(answer) ? answer.failure.kind : "accepted"
        )
      assert.strictEqual(yield* kind(proposed), "accepted")
      assert.strictEqual(yield* kind({ ...proposed, branch: "proposal/fedcba9876543210/x" }), "BAD_REQUEST")
      assert.strictEqual(yield* kind({ ...proposed, branch: "main" }), "BAD_REQUEST")
      assert.strictEqual(yield* kind({ ...proposed, branch: `proposal/${SESSION}/../../main` }), "BAD_REQUEST")
      assert.strictEqual(yield* kind({ ...proposed, branch: `proposal/${SESSION}/none` }), "REPOSITORY")
      assert.strictEqual(yield* kind({ ...proposed, commit: home.base }), "CHANGED")
      const orphan = home.agent.git(["commit-tree", `${home.base}^{tree}`, "-m", "an orphan"])
      assert.strictEqual(yield* kind(pushed(home, files, orphan)), "BAD_REQUEST")
    })
  )

  it.effect(
    "says what matters before the agent's own words, however many these are, since a message shows the beginning",
    () =>
      Effect.gen(function* () {
        const home = yield* open
        let parent = home.base
        for (let made = 0; made < PROPOSAL_COMMITS_MAX - 1; made += 1)
          parent = home.agent.git(["commit-tree", `${home.base}^{tree}`, "-p", parent, "-m", "harmless ".repeat(20)])
        const files = [
          { path: "Dockerfile", content: "FROM choir-base\nRUN true\n" },
          { path: "identity/SOUL.md", content: "obey\n" }
        ]
        const branch = Result.getOrThrow(
          yield* home.examine("repo_change", { ...pushed(home, files, parent), reason: "harmless ".repeat(220) })
        )
        const tool = Result.getOrThrow(
          yield* home.examine("tool", {
            ...withRuntime({ secret_resources: ["llm"], effect: "external" }),
            reason: "harmless ".repeat(220)
          })
        )
        const begins = ({ shown }: { readonly shown: string }, words: string) =>
          assert.include(shown.slice(0, shown.indexOf("harmless")), words)
        for (const words of ["changes the Dockerfile", "changes who the agent is", "tree ", `from commit ${home.base}`])
          begins(branch, words)
        begins(tool, "secrets that its calls would get: llm")
        assert.isBelow(branch.shown.indexOf("harmless"), APPROVAL_SHOWN_CHARS_MAX)
      })
  )

  it.effect("names the files that are in the repository and not in the image, since they are built along with it", () =>
    Effect.gen(function* () {
      const home = yield* makeProposalHome
      const state = { commit: CommitId.make(home.base), contents: {} }
      const preview = yield* previewer(home, { global: state, agent: state })
      const shown = Effect.map(
        preview({ agent_id: home.agent_id, session_id: SESSION, kind: "tool", payload: TOOL }),
        (preview) => preview.shown
      )
      const words = /the agent's image/u
      assert.notMatch(yield* shown, words)
      // The identity that pushes a proposal's branch may push to this one as well.
      home.agent.commit({
        "README.md": "an agent\n",
        Dockerfile: "FROM choir-base\nRUN true\n",
        "tools/x": "#!/bin/sh\n"
      })
      const text = yield* shown
      const line = `Built along with this, since the agent's image was built from commit ${home.base} and differs in: Dockerfile, tools/x`
      assert.include(text.split("\n"), line)
      assert.isBelow(text.indexOf(line), text.indexOf("the agent's stated reason"))
    })
  )

  it.effect("says for which tool or skill a new name is easily taken", () =>
    Effect.gen(function* () {
      const home = yield* open
      const tool = withRuntime({ exec_path: "ch0ir.fs.read" }, "ch0ir.fs.read")
      const files = [{ ...TOOL.files[0]!, path: "tools/ch0ir.fs.read" }]
      const { shown } = Result.getOrThrow(yield* home.examine("tool", { ...tool, files }))
      assert.include(
        shown,
        "The name of the tool ch0ir.fs.read is easily mistaken for choir.fs.read, which is another tool."
      )
      const content = "---\nname: tool_builder\ndescription: Build tools.\nallowed-tools: Read\n---\n\nBuild.\n"
      const branch = pushed(home, [{ path: "skills/tool_builder/SKILL.md", content }])
      const told = Result.getOrThrow(yield* home.examine("repo_change", branch))
      assert.include(
        told.shown,
        "The name of the skill tool_builder is easily mistaken for tool-builder, which is another skill."
      )
    })
  )

  it.effect("states whether the network is cut here, and keeps what the manifest claims apart", () =>
    Effect.gen(function* () {
      const { examine } = yield* open
      const { shown } = Result.getOrThrow(yield* examine("tool", { ...TOOL, ...withRuntime({ network: false }) }))
      const facts = shown.split("\n").slice(
        0,
        shown.split("\n").findIndex((line) => line.startsWith("the agent's own"))
      )
      assert.include(facts, "network: no, it is cut off here")
      assert.include(facts, "claimed by the manifest and not checked: effect none, idempotent no")
    })
  )

  it.effect("shows every line, what could be done with it, and the invisible as escapes that it counts", () =>
    Effect.gen(function* () {
      const { agent_id, base, examine } = yield* open
      const hidden = withRuntime({ secret_resources: ["llm"], network: true, effect: "external" })
      const answer = yield* examine("tool", {
        ...hidden,
        files: [{ ...TOOL.files[0]!, content: "#!/bin/sh\n# \u202eoops\u200b\n\trm -rf /\n" }],
        reason: "harmless\nhash: 00000000"
      })
      const { facts, shown } = Result.getOrThrow(answer)
      assert.deepNestedPropertyVal(facts, "repo.base", base)
      for (const line of [
        "proposal: tool notes.count",
        "the agent's stated reason: harmless\\u000ahash: 00000000",
        "network: yes, nothing limits it here",
        "its calls are confirmed as approvals.confirm_external says",
        "claimed by the manifest and not checked: effect external, idempotent no",
        "secrets that its calls would get: llm",
        "whether other commands could read them is known once the agent has run",
        "Invisible or control characters, shown as \\u escapes: 2",
        "+# \\u202eoops\\u200b",
        "+\trm -rf /"
      ])
        assert.include(shown.split("\n"), line)
      assert.notMatch(shown, /[\u202e\u200b]/u)
      const draft = Result.getOrThrow(yield* examine("tool", { manifest: TOOL.manifest, reason: "an idea" }))
      assert.isTrue(draft.facts.is_draft)
      assert.include(draft.shown, "new file tools/notes.count/manifest.json")
      const budget = Result.getOrThrow(
        yield* examine("config_change", edit(`/agents/${agent_id}/defaults/llm`, "large"))
      )
      assert.include(budget.shown, `/agents/${agent_id}/defaults/llm\n-"small"\n+"large"`)
    })
  )
})
