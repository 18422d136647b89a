/** The skills that every agent has: they lead to a proposal, which a person decides on. */
import { Schema } from "effect"
import { SkillSpec } from "#schema/Skill.ts"

const TOOL_BUILDER: typeof SkillSpec.Encoded = {
  name: "tool-builder",
  description: "Design and propose a new tool for the agent.",
  initial_state: "understand",
  states: {
    understand: {
      objective: "Clarify what the tool should do, its inputs/outputs, and side effects.",
      allowed_tools: ["choir.memory.query", "choir.fs.read"],
      transitions: [{ on: "complete", to: "design" }]
    },
    design: {
      objective:
        "Draft the tool manifest: LLM view (name, description, input schema) and runtime view (lock requirements, secret_resources, timeout, side_effect classification).",
      allowed_tools: ["choir.memory.query"],
      transitions: [
        { on: "complete", to: "validate" },
        { on: "revise", to: "understand" }
      ]
    },
    validate: {
      objective:
        "Review the manifest for correctness, check for conflicts with existing tools, and verify the schema is well-formed.",
      allowed_tools: ["choir.memory.query"],
      transitions: [
        { on: "complete", to: "propose" },
        { on: "fail", to: "design" }
      ]
    },
    propose: {
      objective: "Submit the tool proposal via choir-propose, kind tool, for human approval.",
      allowed_tools: ["choir.propose.tool"],
      transitions: [{ on: "complete", to: "done" }]
    },
    done: { terminal: true }
  },
  contract: {
    execution_class: "probabilistic",
    does: "designs one tool with the user and proposes it for approval",
    does_not: "build, run or approve the tool, or change any file",
    state: {
      request: { schema: { type: "string" } },
      manifest: { schema: { type: "object" } },
      problems: { schema: { type: "array", items: { type: "string" } } }
    },
    state_read: ["request", "manifest", "problems"],
    state_write: ["request", "manifest", "problems"],
    assertions: [{ statement: "no problem is left", path: "problems", op: "count", value: 0 }],
    golden_anchors: [
      {
        input: {},
        output: { request: "Count the words of a file.", manifest: { llm: { name: "words.count" } }, problems: [] }
      }
    ],
    capabilities: ["fs:read", "human"]
  },
  registry: { version: "1.0.0", tier: "infrastructure" },
  max_steps: 15,
  interruptible: true
}

const SKILL_BUILDER: typeof SkillSpec.Encoded = {
  name: "skill-builder",
  description: "Design and propose a new skill state machine.",
  initial_state: "understand",
  states: {
    understand: {
      objective: "Clarify the workflow the skill should orchestrate, its phases, and expected outcomes.",
      allowed_tools: ["choir.memory.query", "choir.fs.read"],
      transitions: [{ on: "complete", to: "design" }]
    },
    design: {
      objective:
        "Draft the SkillSpec: states, transitions, per-state objectives, allowed tools, input/output schemas, and max_steps. Give it a contract: does, does_not, the state fields with state_read and state_write, assertions about the result, one golden anchor, and exactly the capabilities of its tools. Let no state read files or memory, read text of strangers and act outside at once.",
      allowed_tools: ["choir.memory.query"],
      transitions: [
        { on: "complete", to: "validate" },
        { on: "revise", to: "understand" }
      ]
    },
    validate: {
      objective:
        "Verify the state machine is well-formed: all transitions reference valid states, terminal states exist, allowed tools are registered, and no unreachable states.",
      allowed_tools: ["choir.memory.query"],
      transitions: [
        { on: "complete", to: "propose" },
        { on: "fail", to: "design" }
      ]
    },
    propose: {
      objective: "Submit the skill proposal via choir-propose, kind skill, for human approval.",
      allowed_tools: ["choir.propose.skill"],
      transitions: [{ on: "complete", to: "done" }]
    },
    done: { terminal: true }
  },
  contract: {
    execution_class: "probabilistic",
    does: "designs one skill with the user and proposes it for approval",
    does_not: "build, run or approve the skill, or change any file",
    state: {
      request: { schema: { type: "string" } },
      skill: { schema: { type: "object" } },
      problems: { schema: { type: "array", items: { type: "string" } } }
    },
    state_read: ["request", "skill", "problems"],
    state_write: ["request", "skill", "problems"],
    assertions: [{ statement: "no problem is left", path: "problems", op: "count", value: 0 }],
    golden_anchors: [
      {
        input: {},
        output: { request: "Turn notes into minutes.", skill: { name: "meeting-notes" }, problems: [] }
      }
    ],
    capabilities: ["fs:read", "human"]
  },
  registry: { version: "1.0.0", tier: "infrastructure" },
  max_steps: 15,
  interruptible: true
}

const decode = Schema.decodeUnknownSync(SkillSpec)

export const BUILT_IN_SKILLS: ReadonlyArray<SkillSpec> = [decode(TOOL_BUILDER), decode(SKILL_BUILDER)]
