/** A skill run apart from every agent, with the real arbiter, prompts and registry, a scripted model and a record of calls. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { existsSync, readdirSync } from "node:fs"
import { Effect, Layer, Schema } from "effect"
import { SkillName } from "#schema/Skill.ts"
import { ToolManifest, ToolName } from "#schema/Tool.ts"
import type { RecordedCall, TrialTask } from "#schema/Trial.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { runTrial } from "#src/agent/trial/Trial.ts"
import { skillSpec } from "../../support/skills.ts"
import { calls, inOrder, layerScriptedModel, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { agentConfig } from "../../support/testing/TestAgent.ts"
import { temporaryWorkspace } from "../../support/workspace.ts"

const tool = ToolName.make
const SEND = Schema.decodeSync(ToolManifest)({
  llm: { name: "letters.send", description: "Send a letter.", input_schema: { type: "object" } },
  runtime: { exec_path: "letters.send", effect: "external" }
})

const SKILL = skillSpec({
  states: {
    look: {
      objective: "Read the note.",
      allowed_tools: ["choir.fs.read", "choir.core.report"],
      transitions: [{ on: "complete", to: "write" }]
    },
    write: {
      objective: "Answer it.",
      allowed_tools: ["choir.fs.read", "choir.fs.write", "letters.send", "choir.exec"],
      transitions: [{ on: "complete", to: "done" }]
    },
    done: { terminal: true }
  }
})

const NOTE: RecordedCall = {
  tool: tool("choir.fs.read"),
  input: { path: "note.md" },
  status: "success",
  summary: "lines 1-1 of 1 of note.md",
  output: {
    path: "note.md",
    content: "call the plumber",
    first_line: 1,
    last_line: 1,
    lines_total: 1,
    truncated: false
  }
}

const move = (output = {}) => calls(["choir.skill.transition", { on: "complete", output }])

const trial = Effect.fnUntraced(
  function* (script: Script, more: Partial<TrialTask> = {}) {
    const { root } = yield* temporaryWorkspace
    const task: TrialTask = {
      config: agentConfig(),
      secrets: {},
      skills: [SKILL],
      manifests: [SEND],
      skill: SkillName.make(SKILL.name),
      record: [NOTE],
      ...more
    }
    return { outcome: yield* runTrial(task, { root, model: layerScriptedModel(script) }), root }
  },
  Effect.provide(Layer.merge(TokenCount.layer, NodeServices.layer))
)

describe("a trial", () => {
  it.effect("runs a skill to its end on what was recorded, and does nothing", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const told = inOrder(
        calls(["choir.fs.read", { path: "note.md" }]),
        move(),
        calls(
          ["choir.fs.write", { path: "answer.md", content: "done", mode: "overwrite" }],
          ["letters.send", { to: "ann" }]
        ),
        calls(["choir.fs.read", { path: "answer.md" }]),
        move({ sent: true })
      )
      const { outcome, root } = yield* trial((messages, tools) => {
        seen.push(JSON.stringify(messages))
        return told(messages, tools)
      })
      assert.deepInclude(outcome, {
        outcome: "completed",
        output: { sent: true },
        path: ["look", "write", "done"],
        steps: 5,
        tool_calls: 6,
        refusals: 0,
        external: { [tool("letters.send")]: 1 }
      })
      assert.include(seen[1] ?? "", "call the plumber")
      assert.include(seen[4] ?? "", "1\\tdone")
      assert.deepStrictEqual(readdirSync(root), [])
    })
  )

  it.effect("counts what the skill refuses and what the record does not know", () =>
    Effect.gen(function* () {
      const { outcome, root } = yield* trial(
        inOrder(
          calls(["choir.fs.write", { path: "x", content: "x", mode: "overwrite" }]),
          move(),
          calls(["choir.exec", { command: "touch escaped" }]),
          move()
        )
      )
      assert.deepInclude(outcome, { outcome: "completed", refusals: 1, unanswered: 1 })
      assert.isFalse(existsSync(`${root}/escaped`))
    })
  )

  it.effect("ends a skill that cannot end, with the reason", () =>
    Effect.gen(function* () {
      const { outcome } = yield* trial(() => Effect.succeed(says("I am done")))
      assert.strictEqual(outcome.outcome, "error")
      assert.match(outcome.summary, /the rules of its step look were broken 3 times/u)
    })
  )

  it.effect("answers a question of the job, since nobody else will", () =>
    Effect.gen(function* () {
      const { outcome } = yield* trial(
        inOrder(calls(["choir.core.report", { kind: "need_info", text: "which plumber?" }]), move(), move())
      )
      assert.strictEqual(outcome.outcome, "completed")
    })
  )

  it.effect("ends at its budget", () =>
    Effect.gen(function* () {
      const config = agentConfig({ total_session_tokens: 20 })
      const { outcome } = yield* trial(() => Effect.succeed(says("hm")), { config })
      assert.strictEqual(outcome.outcome, "budget")
      assert.match(outcome.summary, /total_session_tokens/u)
    })
  )

  it.effect("says why a skill cannot begin", () =>
    Effect.gen(function* () {
      const strict = { ...SKILL, input_schema: { type: "object", required: ["goal"] } }
      const { outcome } = yield* trial(inOrder(), { skills: [strict] })
      assert.strictEqual(outcome.outcome, "error")
      assert.match(outcome.summary, /goal/u)
    })
  )
})
