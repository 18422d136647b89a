/** The skills of simulated agents: one that can be left at any time and mends itself, one that must go to its end. */
import { Schema } from "effect"
import { SkillSpec } from "#schema/Skill.ts"

const decode = Schema.decodeSync(SkillSpec)

const SIFT = decode({
  name: "sift",
  description: "Look through things and put them in order.",
  initial_state: "look",
  states: {
    look: { objective: "Look.", allowed_tools: ["sim.look"], transitions: [{ on: "complete", to: "edit" }] },
    edit: {
      objective: "Put in order.",
      allowed_tools: ["sim.look", "sim.edit"],
      transitions: [
        { on: "complete", to: "done" },
        { on: "revise", to: "look" },
        { on: "error", to: "mend" }
      ]
    },
    mend: { objective: "Mend.", allowed_tools: ["sim.move"], transitions: [{ on: "complete", to: "edit" }] },
    done: { terminal: true }
  },
  max_steps: 9
})

const SHIP = decode({
  name: "ship",
  description: "Pack and send.",
  initial_state: "pack",
  output_schema: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] },
  states: {
    pack: { objective: "Pack.", allowed_tools: ["sim.edit"], transitions: [{ on: "complete", to: "send" }] },
    send: {
      objective: "Send.",
      allowed_tools: ["sim.send", "sim.post"],
      transitions: [{ on: "complete", to: "sent" }]
    },
    sent: { terminal: true }
  },
  max_steps: 6,
  interruptible: false
})

/** Hands its work to a job. */
const HAND = decode({
  name: "hand",
  description: "Let a job do it.",
  initial_state: "spawn",
  states: {
    spawn: {
      objective: "Start a job.",
      allowed_tools: ["choir.core.spawn", "choir.skill.start", "sim.look"],
      transitions: [{ on: "complete", to: "done" }]
    },
    done: { terminal: true }
  },
  max_steps: 9
})

export const SIM_SKILLS: ReadonlyMap<string, SkillSpec> = new Map([SIFT, SHIP].map((spec) => [spec.name, spec]))

/** Some seeds have them and the others are what they were before there were skills. */
export const skillsOf = (seed: number): ReadonlyMap<string, SkillSpec> => {
  if (isLarge(seed)) return new Map([...SIM_SKILLS, [HAND.name, HAND]])
  return seed % 7 === 0 ? SIM_SKILLS : new Map()
}

/** Seeds in which the limits of events are met, and in which a skill hands its work to jobs. */
export const isLarge = (seed: number): boolean => seed % 23 === 0
