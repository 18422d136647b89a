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
      objective: "Submit the tool proposal via choir-propose-tool for human approval.",
      allowed_tools: ["choir.propose.tool"],
      transitions: [{ on: "complete", to: "done" }]
    },
    done: { terminal: true }
  },
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
        "Draft the SkillSpec: states, transitions, per-state objectives, allowed tools, input/output schemas, and max_steps.",
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
      objective: "Submit the skill proposal via choir-propose-skill for human approval.",
      allowed_tools: ["choir.propose.skill"],
      transitions: [{ on: "complete", to: "done" }]
    },
    done: { terminal: true }
  },
  max_steps: 15,
  interruptible: true
}

const decode = Schema.decodeUnknownSync(SkillSpec)

export const BUILT_IN_SKILLS: ReadonlyArray<SkillSpec> = [decode(TOOL_BUILDER), decode(SKILL_BUILDER)]
