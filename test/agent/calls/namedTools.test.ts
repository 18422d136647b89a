/** The texts that a job's model is sent name no tool that it is not offered, whatever its constraints leave out. */
import { mkdirSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import type { EventDraft } from "#schema/Event.ts"
import { JobName, LaneId } from "#schema/Ids.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { withoutOldResults } from "#src/agent/model/contextOverflow.ts"
import { offeredOf } from "#src/agent/model/offeredTools.ts"
import { corePrompt } from "#src/agent/model/prompt/Prompt.ts"
import { WriteRefused } from "#src/agent/tools/guardedWrite.ts"
import { PathRefused } from "#src/agent/workspace/PathRefused.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { draft, output, userMsg } from "../../support/drafts.ts"
import { placed } from "../../support/history.ts"
import { seeded } from "../../support/seeded.ts"
import { bookOf, carefulChange } from "../../support/skills.ts"
import { layerRegistry } from "../../support/toolRegistry.ts"
import { temporaryWorkspace } from "../../support/workspace.ts"

const LANE = "core:work"
const CONSTRAINTS = 100

const called = (call_id: string, tool: string, more: object, input: object = {}): ReadonlyArray<EventDraft> => [
  output(LANE, { tool_calls: [{ call_id, name: tool.replaceAll(".", "-"), input }] }),
  draft("ToolCallRequested", LANE, { call_id, tool, input, effect: "none", locks: [] }),
  draft("ToolCallCommitted", LANE, { call_id, locks: [] }),
  draft("ToolResultCommitted", LANE, { call_id, status: "success", summary: "ok", duration_ms: 1, ...more })
]

const LONG = "word ".repeat(8000)

/** A job with everything in its history that a text names a tool for. */
const history = (allowed_tools: ReadonlyArray<string>, isInSkill: boolean) => {
  const drafts = [
    userMsg("1", "go"),
    output("edge", { tool_calls: [{ call_id: "s", name: "choir-core-spawn", input: {} }] }),
    draft("ToolCallRequested", "edge", {
      call_id: "s",
      tool: "choir.core.spawn",
      input: {},
      effect: "none",
      locks: []
    }),
    draft("ToolCallCommitted", "edge", { call_id: "s", locks: [] }),
    draft("ToolResultCommitted", "edge", { call_id: "s", status: "success", summary: "started", duration_ms: 1 }),
    draft("CoreStarted", LANE, {
      job_id: "j",
      job_name: "work",
      start: {
        job_id: "j",
        job_name: "work",
        task_spec: "Make a careful change.",
        context_bundle: { facts: [], excerpts: [], constraints: [] },
        tool_constraints: { allowed_tools, time_budget_ms: 0 },
        verbosity: "normal"
      },
      model: "m",
      budgets: { max_steps: 99, max_tool_calls: 99, wall_time_ms: 99, max_injections: 9 }
    }),
    ...called("a", "test.first", { output: "first" }),
    ...called("b", "test.text", { output: LONG }),
    draft("CompactionCommitted", LANE, {
      delta: { mode: "overwrite", summary_update: "Goal: a change." },
      boundary_rev: 10
    }),
    ...called("c", "test.file", { output: LONG, artifact_ref: "0".repeat(64) }),
    ...called("d", "choir.exec", {
      output: { exit_code: 0, stdout: LONG, stderr: "", whole_output: "all of it is in F: read it with choir-fs-read" }
    }),
    ...called("e", "choir.fs.read", {
      output: {
        path: "a",
        content: LONG,
        first_line: 1,
        last_line: 1,
        lines_total: 1,
        sha256: "0".repeat(64),
        truncated: false
      }
    }),
    output(LANE, { tool_calls: [{ call_id: "f", name: "made-up", input: {} }] }),
    draft("ToolResultCommitted", LANE, {
      call_id: "f",
      status: "rejected",
      summary: "there is no tool made-up for this lane",
      duration_ms: 0,
      allowed: { tools: ["choir-fs-read", "choir-fs-edit", "choir-exec", "choir-memory-query"], transitions: [] }
    }),
    ...(isInSkill
      ? called("g", "choir.skill.start", {}).toSpliced(
          3,
          0,
          draft("SkillTransitionCommitted", LANE, {
            skill: "careful_change",
            from: "",
            to: carefulChange.initial_state,
            on: "start",
            step: 0,
            input: { goal: LONG }
          })
        )
      : [])
  ]
  const events = placed(initialState, drafts)
  const state = Result.getOrThrowWith(
    foldAll(initialState, events),
    ({ reason, rev }) => new Error(`${rev}: ${reason}`)
  )
  const core = state.cores.get(JobName.make("work"))
  if (core === undefined) throw new Error("the job does not run")
  return { core, find: (rev: number) => events[rev - 1], rev: state.rev }
}

const named = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/\bchoir-[a-z_]+(?:-[a-z_]+)*/gu)].map(([name]) => name).filter((name) => name !== "choir-note")

describe("the prompt of a constrained job", () => {
  it.effect("names no tool that the job is not offered", () =>
    Effect.gen(function* () {
      const { outside, root } = yield* temporaryWorkspace
      for (const scope of ["global", "agent"]) mkdirSync(`${outside}/tools/${scope}`, { recursive: true })
      const many = Array.from({ length: 30 }, (_, at) => ({
        ...carefulChange,
        name: `skill_${at}` as typeof carefulChange.name
      }))
      const random = seeded(7)
      for (const book of [bookOf(...BUILT_IN_SKILLS, carefulChange), bookOf(carefulChange, ...many)]) {
        const own = Layer.merge(Layer.mock(ControlPlane, {}), Layer.succeed(SkillRegistry, book))
        const registry = yield* Effect.provide(
          ToolRegistry,
          layerRegistry({ choir: outside, root, web: "browse" }, own)
        )
        const lane = LaneId.make(LANE)
        const all = registry.offered(lane).map(({ name }) => name.replaceAll("-", "."))
        for (let round = 0; round < CONSTRAINTS; round++) {
          const allowed = round === 0 ? [] : all.filter(() => random(CONSTRAINTS) < round)
          const tools = registry.offered(lane, allowed)
          const offered = offeredOf(tools)
          const { core, find, rev } = history(allowed, round % 2 === 1)
          const identity = { soul: "", soulCore: "", user: "" }
          const sources = { find, identity, isMasked: () => false, offered, skills: book, environment: "" }
          const { messages } = corePrompt(core, sources, rev)
          const texts = [
            ...tools.map((tool) => JSON.stringify(tool)),
            ...[...messages, ...(withoutOldResults(messages, offered) ?? [])].map(({ content }) => content ?? "")
          ]
          const missing = new Set(texts.flatMap(named).filter((name) => !offered.has(name)))
          assert.deepStrictEqual([...missing], [], `allowed: ${allowed.join(" ")}`)
        }
      }
    })
  )

  it("is answered by file tools without the name of another tool", () => {
    for (const refused of [PathRefused, WriteRefused])
      for (const reason of refused.fields.reason.literals)
        assert.notMatch(
          new (refused as typeof PathRefused)({ path: "a", reason, details: {} } as never).message,
          /choir-/u
        )
  })
})
