/** A skill that was made worse on purpose is shown as worse, by trials of it and of today's on the same record. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { SkillName, SkillSpec } from "#schema/Skill.ts"
import { ToolManifest, ToolName } from "#schema/Tool.ts"
import type { RecordedCall } from "#schema/Trial.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { runTrial } from "#src/agent/trial/Trial.ts"
import { compareTrials, type Comparison } from "#src/choird/trials/compareTrials.ts"
import { contractSpec } from "../../support/contracts.ts"
import { MARKS, marks } from "../../support/marks.ts"
import { obedient } from "./obedientModel.ts"
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

/** A skill with a contract, whose input is the first of its STATE. */
const CONTRACT = {
  execution_class: "probabilistic",
  does: "answers a note",
  does_not: "send the answer",
  state: { note: { schema: { type: "string" } }, seen: { schema: {} }, kept: { schema: {} } },
  state_read: ["note", "seen"],
  state_write: ["seen", "kept"],
  assertions: [{ statement: "the answer is kept", path: "kept", op: "==", value: true }],
  capabilities: ["fs:read", "fs:write"]
} as const

const REPLY = {
  ...TODAY,
  name: "reply",
  input_schema: { type: "object", properties: { note: { type: "string" } }, required: ["note"] },
  output_schema: { type: "object", required: ["kept"] },
  contract: CONTRACT,
  states: {
    look: { ...LOOK, transitions: ON("write") },
    write: {
      objective: "Write <answer.md>. Say {kept}.",
      allowed_tools: ["choir.fs.write"],
      transitions: [...ON("done"), ...ON("failed", "error")]
    },
    done: DONE,
    failed: DONE
  }
} as const

const reply = (contract: object, more: object = {}) => ({ ...REPLY, ...more, contract: { ...CONTRACT, ...contract } })

const WORSE_CONTRACTS: ReadonlyArray<readonly [string, object]> = [
  ["may not read", reply({}, { states: { ...REPLY.states, look: { ...REPLY.states.look, allowed_tools: [] } } })],
  ["wants another input", reply({}, { input_schema: { type: "object", required: ["goal"] } })],
  ["asserts what never holds", reply({ assertions: [{ statement: "it is 3", path: "kept", op: "==", value: 3 }] })],
  ["may not write its result", reply({ state_write: ["seen"], assertions: [] }, { output_schema: { type: "object" } })],
  ["has two steps", reply({}, { max_steps: 2 })]
]

const WORSE_SCRIPTS: ReadonlyArray<readonly [string, object]> = [
  ["has a pattern that finds nothing", marks({ params: { pattern: "HACK", path: "${path}" } })],
  ["has a pattern that cannot be read", marks({ params: { pattern: "(", path: "${path}" } })],
  ["searches elsewhere", marks({ params: { pattern: "TODO|FIXME", path: "no/such/folder" } })],
  ["takes what is not there", marks({ writes: { flags: "paths" } })],
  ["asserts a number", marks({}, { assertions: [{ statement: "nine", path: "flags", op: "count", value: 9 }] })]
]

const found = (text: string, line: number) => ({ path: "a.ts", line, text })

const RECORD: ReadonlyArray<RecordedCall> = [
  {
    tool: ToolName.make("choir.fs.search"),
    input: { pattern: "TODO|FIXME", path: "." },
    status: "success",
    summary: "2 matching lines",
    output: { matches: [found("// TODO: tidy up", 3), found("// FIXME: slow", 9)], truncated: false }
  },
  {
    tool: ToolName.make("choir.fs.read"),
    input: { path: "note.md" },
    status: "success",
    summary: "1 line",
    output: { path: "note.md", content: "call", first_line: 1, last_line: 1, lines_total: 1, truncated: false }
  }
]

const trial = Effect.fnUntraced(
  function* (spec: SkillSpec, input?: Schema.Json) {
    const { root } = yield* temporaryWorkspace
    return yield* runTrial(
      {
        config: agentConfig(),
        secrets: {},
        skills: [spec],
        manifests: [manifest("letters.send")],
        skill: SkillName.make(spec.name),
        ...(input === undefined ? {} : { input }),
        record: RECORD
      },
      { root, model: layerScriptedModel(obedient) }
    )
  },
  Effect.provide(Layer.merge(TokenCount.layer, NodeServices.layer))
)

const decode = Schema.decodeSync(SkillSpec)

const compared = Effect.fnUntraced(function* (draft: Draft) {
  const today = yield* trial(decode(TODAY))
  assert.strictEqual(today.outcome, "completed", today.summary)
  return compareTrials(today, yield* trial(decode(draft)), "completed", OUTPUT)
})

/** The same of skills with contracts, on the input that their run was recorded with. */
const comparedTo = Effect.fnUntraced(function* (
  old: { readonly name: string },
  draft: { readonly name: string },
  input: Schema.Json
) {
  const today = yield* trial(contractSpec(old), input)
  assert.strictEqual(today.outcome, "completed", today.summary)
  return compareTrials(today, yield* trial(contractSpec(draft), input), "completed")
})

const assertWorse = ({ reasons, verdict }: Comparison) => {
  assert.strictEqual(verdict, "worse")
  assert.isNotEmpty(reasons)
}

describe("a skill that was made worse on purpose", () => {
  it.effect.each(WORSE)("is shown as worse: it %s", ([, draft]) => Effect.map(compared(draft), assertWorse))

  it.effect.each(WORSE_CONTRACTS)("is shown as worse, with a contract: it %s", ([, draft]) =>
    Effect.map(comparedTo(REPLY, draft as never, { note: "call" }), assertWorse)
  )

  it.effect.each(WORSE_SCRIPTS)("is shown as worse, without a model: it %s", ([, draft]) =>
    Effect.map(comparedTo(MARKS, draft as never, { path: "." }), assertWorse)
  )
})

describe("a skill that was changed and is not worse", () => {
  it.effect.each(NO_WORSE)("is not called worse: %s", ([, draft]) =>
    Effect.gen(function* () {
      const { reasons, verdict } = yield* compared(draft)
      assert.notStrictEqual(verdict, "worse", reasons.join("; "))
    })
  )

  it.effect.each([
    ["today's with a contract", REPLY, REPLY, { note: "call" }],
    ["today's without a model", MARKS, MARKS, { path: "." }],
    ["a wider pattern", MARKS, marks({ params: { pattern: "TODO|FIXME|XXX", path: "${path}" } }), { path: "." }]
  ] as const)("is the same: %s", ([, old, draft, input]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* comparedTo(old, draft, input), { verdict: "same", reasons: [] })
    })
  )
})
