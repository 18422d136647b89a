/** Skills with contracts: a script that flags marks in files, and one whose result is judged. */
import { Result } from "effect"
import type { SkillSpec } from "#schema/Skill.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"

export const todoFlagger = {
  name: "todo-flagger",
  description: "Flag lines with TODO, FIXME or XXX.",
  contract: {
    execution_class: "deterministic",
    does: "finds lines of the workspace that hold TODO, FIXME or XXX",
    does_not: "change files, judge the marks, or call a model",
    state: { path: { schema: { type: "string" } }, flags: { schema: "todo-flag@1.0" } },
    state_read: ["path"],
    state_write: ["flags"],
    assertions: [{ statement: "each flag names its file", path: "flags.*.path", op: "exists" }],
    capabilities: ["fs:read"]
  },
  registry: {
    version: "1.0.0",
    tier: "audit",
    workflow: [
      {
        step: "Search for the marks.",
        tool: "choir.fs.search",
        params: { pattern: "TODO|FIXME|XXX", path: "${path}" },
        writes: { flags: "matches" }
      }
    ]
  }
} as const

export const summarize = {
  name: "summarize",
  description: "Sum up a text.",
  initial_state: "do",
  max_steps: 20,
  contract: {
    execution_class: "probabilistic",
    does: "sums up a text in a few sentences",
    does_not: "add what the text does not say, or change files",
    state: { text: { schema: { type: "string" } }, summary: { schema: { type: "string" } } },
    state_read: ["text"],
    state_write: ["summary"],
    assertions: [{ statement: "the summary is not empty", path: "summary", op: "matches", value: "?*" }],
    confidence_threshold: 0.8,
    judge: { sources: ["text"] }
  },
  states: {
    do: {
      objective: "Sum up the text.",
      allowed_tools: [],
      transitions: [
        { on: "complete", to: "done" },
        { on: "error", to: "failed" }
      ]
    },
    done: { terminal: true },
    failed: { terminal: true }
  }
} as const

/** A skill as an agent has it, its pins in place. */
export const contractSpec = (draft: { readonly name: string; readonly [key: string]: unknown }): SkillSpec =>
  Result.getOrThrowWith(
    readSkill(draft.name, JSON.stringify(draft), { schemas: new Map([["todo-flag@1.0", { type: "array" }]]) }),
    (problems) => new Error(problems.join("; "))
  )
