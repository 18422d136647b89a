/** A skill that was made worse on purpose is shown as worse, by trials of it and of today's on the same record. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { SkillName, SkillSpec } from "#schema/Skill.ts"
import { ToolManifest, ToolName } from "#schema/Tool.ts"
import type { RecordedCall } from "#schema/Trial.ts"
import { Tokens } from "#src/agent/model/Tokens.ts"
import { runTrial } from "#src/agent/trial/Trial.ts"
import { compareTrials } from "#src/choird/rehearsals/compareTrials.ts"
import { obedient } from "../../support/obedientModel.ts"
import { layerScriptedModel } from "../../support/testing/ScriptedModel.ts"
import { agentConfig } from "../../support/testing/TestAgent.ts"
import { temporaryWorkspace } from "../../support/workspace.ts"

const manifest = (name: string) =>
  Schema.decodeSync(ToolManifest)({
    llm: { name, description: name, input_schema: { type: "object" } },
    runtime: { exec_path: name, effect: "external" }
  })

type Draft = typeof SkillSpec.Encoded
type States = Draft["states"]

const LOOK = { objective: "Read [note.md]. Say {seen}.", allowed_tools: ["choir.fs.read"] }
const WRITE = {
  objective: "Write <answer.md>, send it to @ann. Say {sent}.",
  allowed_tools: ["choir.fs.read", "choir.fs.write", "letters.send"]
}
const ON = (to: string, on = "complete") => [{ on, to }]
const DONE = { terminal: true }

const STATES = {
  look: { ...LOOK, transitions: ON("write") },
  write: { ...WRITE, transitions: ON("done") },
  done: DONE
} satisfies States

const OUTPUT = { type: "object", properties: { sent: { type: "boolean" } }, required: ["sent"] }

const TODAY: Draft = {
  name: "answer",
  description: "Answer a note.",
  initial_state: "look",
  output_schema: OUTPUT,
  states: STATES,
  max_steps: 12
}

const look = (more: Partial<States[string]>) => ({ states: { ...STATES, look: { ...STATES.look, ...more } } })
const write = (more: Partial<States[string]>) => ({ states: { ...STATES, write: { ...STATES.write, ...more } } })
const { output_schema: _, ...WITHOUT_SCHEMA } = TODAY

const WORSE: ReadonlyArray<readonly [string, Draft]> = [
  ["may not read", { ...TODAY, ...look({ allowed_tools: [] }) }],
  ["may not write", { ...TODAY, ...write({ allowed_tools: ["letters.send"] }) }],
  ["may not send", { ...TODAY, ...write({ allowed_tools: ["choir.fs.write"] }) }],
  ["may do nothing", { ...TODAY, ...write({ allowed_tools: [] }) }],
  ["has two steps", { ...TODAY, max_steps: 2 }],
  ["has three steps", { ...TODAY, max_steps: 3 }],
  ["wants a key that nobody gives", { ...TODAY, output_schema: { type: "object", required: ["date"] } }],
  ["wants another type", { ...TODAY, output_schema: { type: "object", properties: { sent: { type: "string" } } } }],
  ["asks for no output", { ...TODAY, ...write({ objective: "Write <answer.md>, send it to @ann." }) }],
  ["asks for another output", { ...TODAY, ...write({ objective: "Write <answer.md>, send it to @ann. Say {ok}." }) }],
  ["loses a key of the output", { ...WITHOUT_SCHEMA, ...write({ objective: "Write <answer.md>, send it to @ann." }) }],
  [
    "sends to one more",
    { ...TODAY, ...write({ objective: "Write <answer.md>, send it to @ann and @bob. Say {sent}." }) }
  ],
  [
    "sends to two more",
    { ...TODAY, ...write({ objective: "Write <answer.md>, send to @ann @bob @carl. Say {sent}." }) }
  ],
  ["goes back for ever", { ...TODAY, ...write({ transitions: ON("look") }) }],
  ["turns in its first step", { ...TODAY, ...look({ transitions: [...ON("look"), ...ON("write", "next")] }) }],
  ["ends in its error", { ...TODAY, ...write({ transitions: ON("done", "error") }) }],
  ["wants an input", { ...TODAY, input_schema: { type: "object", required: ["goal"] } }],
  ["writes too early", { ...TODAY, ...look({ objective: "Read [note.md], write <draft.md>. Say {seen}." }) }],
  ["sends too early", { ...TODAY, ...look({ objective: "Read [note.md], tell @ann. Say {seen}." }) }],
  ["ends before the letter", { ...TODAY, states: { ...STATES, look: { ...STATES.look, transitions: ON("done") } } }]
]

const NO_WORSE: ReadonlyArray<readonly [string, Draft]> = [
  ["today's", TODAY],
  ["other words", { ...TODAY, ...look({ objective: "First of all read [note.md], then say {seen}." }) }],
  ["one more tool", { ...TODAY, ...look({ allowed_tools: ["choir.fs.read", "choir.fs.search"] }) }],
  ["more steps", { ...TODAY, max_steps: 20 }],
  [
    "a state between",
    {
      ...TODAY,
      states: {
        ...STATES,
        look: { ...STATES.look, transitions: ON("think") },
        think: { objective: "Think.", transitions: ON("write") }
      }
    }
  ]
]

const RECORD: ReadonlyArray<RecordedCall> = [
  {
    tool: ToolName.make("choir.fs.read"),
    input: { path: "note.md" },
    status: "success",
    summary: "1 line",
    output: { path: "note.md", content: "call", first_line: 1, last_line: 1, lines_total: 1, truncated: false }
  }
]

const trial = Effect.fnUntraced(
  function* (draft: Draft) {
    const { root } = yield* temporaryWorkspace
    const spec = Schema.decodeSync(SkillSpec)(draft)
    return yield* runTrial(
      {
        config: agentConfig(),
        secrets: {},
        skills: [spec],
        manifests: [manifest("letters.send")],
        skill: SkillName.make(spec.name),
        record: RECORD
      },
      { root, model: layerScriptedModel(obedient) }
    )
  },
  Effect.provide(Layer.merge(Tokens.layer, NodeServices.layer))
)

const compared = Effect.fnUntraced(function* (draft: Draft) {
  const today = yield* trial(TODAY)
  assert.strictEqual(today.outcome, "completed", today.summary)
  return compareTrials(today, yield* trial(draft), OUTPUT)
})

describe("a skill that was made worse on purpose", () => {
  it.effect.each(WORSE)("is shown as worse: it %s", ([, draft]) =>
    Effect.gen(function* () {
      const { reasons, verdict } = yield* compared(draft)
      assert.strictEqual(verdict, "worse")
      assert.isNotEmpty(reasons)
    })
  )
})

describe("a skill that was changed and is no worse", () => {
  it.effect.each(NO_WORSE)("is not called worse: %s", ([, draft]) =>
    Effect.gen(function* () {
      const { reasons, verdict } = yield* compared(draft)
      assert.notStrictEqual(verdict, "worse", reasons.join("; "))
    })
  )
})
