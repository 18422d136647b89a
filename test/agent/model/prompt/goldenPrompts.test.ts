/**
 * Prompts as models read them, in files that a reviewer can read as well: `CHOIR_GOLDEN=write npx vitest run goldenPrompts` renews them. The
 * tools, which stand in front of each, are in a file for each kind of lane.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { encode } from "gpt-tokenizer/encoding/o200k_base"
import type { EventDraft } from "#schema/Event.ts"
import { EDGE, JobName, LaneId } from "#schema/Ids.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import type { Message, Tool } from "#src/shared/model/Conversation.ts"
import { ofPlace } from "#src/agent/model/prompt/Environment.ts"
import { corePrompt, edgePrompt, type Prompt } from "#src/agent/model/prompt/Prompt.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { draft, output, userMsg } from "../../../support/drafts.ts"
import { placed } from "../../../support/history.ts"
import { bookOf, carefulChange } from "../../../support/skills.ts"
import { layerRegistry } from "../../../support/toolRegistry.ts"
import { temporaryWorkspace } from "../../../support/workspace.ts"
import { PLACE } from "../../../support/testing/TestAgent.ts"
import { EVERY_TOOL } from "../../../support/offered.ts"

const IDENTITY = {
  user: "Ada, who keeps a garden shop and answers in short words.",
  soul: "Kind and dry.",
  soulCore: "Exact."
}
/** Tokens of a lane's instructions and environment; with its tools at most 3,000 (context). */
const INSTRUCTION_TOKENS_MAX = 900

const calling = (lane: string, call_id: string, name: string, input: object) =>
  output(lane, { tool_calls: [{ call_id, name, input }] })
const result = (lane: string, call_id: string, tool: string, more: object) => [
  draft("ToolCallRequested", lane, { call_id, tool, input: {}, effect: "none", locks: [] }),
  draft("ToolCallCommitted", lane, { call_id, locks: [] }),
  draft("ToolResultCommitted", lane, { call_id, status: "success", summary: "ok", duration_ms: 1, ...more })
]
const reply = (text: string, in_reply_to: string) => draft("AgentMessage", "edge", { kind: "reply", text, in_reply_to })
const started = (job_name: string, task_spec: string) =>
  draft("CoreStarted", `core:${job_name}`, {
    job_id: `id-${job_name}`,
    job_name,
    start: {
      job_id: `id-${job_name}`,
      job_name,
      task_spec,
      context_bundle: {
        facts: ["The prices are in prices.csv."],
        excerpts: [],
        constraints: ["Change no other file."]
      },
      tool_constraints: { allowed_tools: [], time_budget_ms: 0 },
      verbosity: "normal"
    },
    model: "m",
    budgets: { max_steps: 9, max_tool_calls: 9, wall_time_ms: 9, max_injections: 9 }
  })
const LANE = LaneId.make("core:prices")
const TASK = "Raise each price in prices.csv by 5 %, rounded to cents. Verify that the sum of the column grew by 5 %."
const ASKED = userMsg("1", "Raise all prices by five percent, please.")

const history = (drafts: ReadonlyArray<EventDraft>) => {
  const events = placed(initialState, drafts)
  const state = Result.getOrThrowWith(
    foldAll(initialState, events),
    ({ reason, rev }) => new Error(`${rev}: ${reason}`)
  )
  const environment = Effect.runSync(ofPlace(PLACE).text("test-model", false))
  return {
    state,
    sources: {
      find: (rev: number) => events[rev - 1],
      identity: IDENTITY,
      isMasked: () => false,
      offered: EVERY_TOOL,
      skills: bookOf(carefulChange),
      environment: environment.replace(/\n?today: .*/u, "\ntoday: Monday, 2026-01-05 (UTC)")
    }
  }
}
const edge = (drafts: ReadonlyArray<EventDraft>) => {
  const { sources, state } = history(drafts)
  return edgePrompt(state, sources)
}
const core = (drafts: ReadonlyArray<EventDraft>) => {
  const { sources, state } = history(drafts)
  const lane = state.cores.get(JobName.make("prices"))
  if (lane === undefined) throw new Error("no job")
  return corePrompt(lane, sources, state.rev)
}

const spawning = [
  ASKED,
  calling("edge", "c0", "choir-core-spawn", { job_name: "prices", task_spec: TASK }),
  ...result("edge", "c0", "choir.core.spawn", { summary: "job prices started" }),
  started("prices", TASK)
]
const reading = [
  calling("core:prices", "c1", "choir-fs-read", { path: "prices.csv" }),
  ...result("core:prices", "c1", "choir.fs.read", { output: "name,price\nspade,12.00\nhose,20.00" })
]
const PROMPTS: Readonly<Record<string, () => Prompt>> = {
  "edge-idle": () =>
    edge([
      userMsg("1", "Good morning!"),
      output("edge", { text: "Good morning, Ada." }),
      reply("Good morning, Ada.", "1"),
      userMsg("2", "What is in the shed?")
    ]),
  "edge-with-jobs": () =>
    edge([
      ...spawning,
      output("edge", { text: "I started the job prices." }),
      reply("I started the job prices.", "1"),
      calling("core:prices", "r", "choir-core-report", {}),
      draft("ToolCallRequested", "core:prices", {
        call_id: "r",
        tool: "choir.core.report",
        input: { kind: "progress", text: "12 of 40 prices are changed", percent: 30 },
        effect: "none",
        locks: []
      }),
      draft("ToolCallCommitted", "core:prices", { call_id: "r", locks: [] }),
      draft("ToolResultCommitted", "core:prices", { call_id: "r", status: "success", summary: "ok", duration_ms: 1 }),
      userMsg("2", "How far are you?")
    ]),
  "core-start": () => core(spawning),
  "core-after-compaction": () =>
    core([
      ...spawning,
      ...reading,
      calling("core:prices", "c2", "choir-fs-write", { path: "prices.csv", mode: "overwrite" }),
      ...result("core:prices", "c2", "choir.fs.write", { writes: [{ path: "prices.csv", after: "0".repeat(64) }] }),
      draft("InjectedInstruction", "core:prices", {
        target: "core:prices",
        source: "edge",
        content: "Leave seeds as they are."
      }),
      calling("core:prices", "c3", "choir-fs-search", { pattern: "seeds" }),
      ...result("core:prices", "c3", "choir.fs.search", { output: "prices.csv\n3: seeds,2.00" }),
      draft("CompactionCommitted", "core:prices", {
        delta: {
          mode: "overwrite",
          summary_update:
            "Goal: every price 5 % higher, seeds excepted.\nDone: prices.csv is read and written.\nNext: check seeds and the sum.",
          add_fact: { key: "rounding", value: "to cents", pinned: true }
        },
        boundary_rev: 15,
        words: ["Leave seeds as they are."]
      })
    ]),
  "skill-step": () =>
    edge([
      ASKED,
      calling("edge", "c0", "choir-skill-start", { skill: "careful_change", input: { goal: "higher prices" } }),
      draft("ToolCallRequested", "edge", {
        call_id: "c0",
        tool: "choir.skill.start",
        input: {},
        effect: "workspace",
        locks: []
      }),
      draft("ToolCallCommitted", "edge", { call_id: "c0", locks: [] }),
      draft("SkillTransitionCommitted", "edge", {
        skill: "careful_change",
        from: "",
        to: carefulChange.initial_state,
        on: "start",
        step: 0,
        input: { goal: "higher prices" }
      }),
      draft("ToolResultCommitted", "edge", {
        call_id: "c0",
        status: "success",
        summary: "the skill careful_change began",
        duration_ms: 0
      })
    ])
}

const shown = (message: Message): string => {
  const calls =
    message.role === "assistant"
      ? (message.calls ?? []).map(({ arguments: args, id, name }) => `[${id}] ${name} ${args}`)
      : []
  const about = message.role === "tool" ? ` ${message.call_id}` : ""
  return [`--- ${message.role}${about}`, ...(message.content === null ? [] : [message.content]), ...calls].join("\n")
}

const shownTool = ({ description, name, parameters }: Tool): string =>
  `--- ${name}\n${description}\n${JSON.stringify(parameters, undefined, 1)}\n`

const isWriting = process.env["CHOIR_GOLDEN"] === "write"

describe("prompts as models read them", () => {
  for (const [name, make] of Object.entries(PROMPTS)) {
    it(`${name} is as the file says (CHOIR_GOLDEN=write renews it)`, () => {
      const path = join(import.meta.dirname, "golden", `${name}.txt`)
      const text = `${make().messages.map(shown).join("\n\n")}\n`
      if (isWriting) writeFileSync(path, text)
      assert.strictEqual(text, readFileSync(path, "utf8"))
    })
  }

  it.effect("begin with the tools of the lane, as the files say", () =>
    Effect.gen(function* () {
      const { outside, root } = yield* temporaryWorkspace
      for (const scope of ["global", "agent"]) mkdirSync(`${outside}/tools/${scope}`, { recursive: true })
      const own = Layer.merge(Layer.mock(ControlPlane, {}), Layer.succeed(SkillRegistry, bookOf(carefulChange)))
      const registry = yield* Effect.provide(ToolRegistry, layerRegistry({ choir: outside, root }, own))
      const lanes: Readonly<Record<string, ReadonlyArray<Tool>>> = {
        "edge-tools": registry.offered(EDGE),
        "core-tools": registry.offered(LANE),
        // A job like the profile "scout" of docs/agent.md.
        "core-tools-of-a-scout": registry.offered(LANE, ["choir.fs.read", "choir.fs.search", "choir.fs.find"])
      }
      for (const [name, tools] of Object.entries(lanes)) {
        const path = join(import.meta.dirname, "golden", `${name}.txt`)
        const text = tools.map(shownTool).join("\n")
        if (isWriting) writeFileSync(path, text)
        assert.strictEqual(text, readFileSync(path, "utf8"), name)
      }
    })
  )

  it("spend few tokens on instructions", () => {
    for (const make of [PROMPTS["edge-idle"], PROMPTS["core-start"]])
      assert.isAtMost(encode(make?.().messages[0]?.content ?? "").length, INSTRUCTION_TOKENS_MAX)
  })
})
