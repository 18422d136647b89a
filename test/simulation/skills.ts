/** The skills of simulated agents: one that can be left at any time and mends itself, one that must go to its end. */
import { Schema } from "effect"
import { JobProfile } from "#schema/JobProfile.ts"
import { SkillSpec } from "#schema/Skill.ts"
import { SkillRegistryEntry } from "#schema/SkillRegistryEntry.ts"
import { scriptMachine } from "#src/shared/image/scriptStates.ts"

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

const failing = [{ on: "error", to: "failed" }]
const ENDS = { done: { terminal: true }, failed: { terminal: true } }

/** Has a STATE, a result that is checked, and a judge. */
const WEIGH = decode({
  name: "weigh",
  description: "Weigh things and report.",
  initial_state: "weigh",
  contract: {
    execution_class: "probabilistic",
    does: "weighs goods",
    does_not: "send them",
    state: {
      goods: { schema: { type: "string" } },
      weight: { schema: { type: "number" } },
      report: { schema: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] } }
    },
    state_read: ["goods", "weight"],
    state_write: ["weight", "report"],
    assertions: [{ statement: "the report is good", path: "report.ok", op: "==", value: true }],
    confidence_threshold: 0.7,
    retries: 2,
    capabilities: ["fs:read", "fs:write"],
    judge: { sources: ["weight"] }
  },
  states: {
    weigh: {
      objective: "Weigh.",
      allowed_tools: ["sim.look"],
      transitions: [{ on: "complete", to: "sum" }, ...failing],
      state_read: ["goods"],
      state_write: ["weight"]
    },
    sum: {
      objective: "Report.",
      allowed_tools: ["sim.look", "sim.edit"],
      transitions: [{ on: "complete", to: "done" }, { on: "revise", to: "weigh" }, ...failing],
      state_read: ["weight"],
      state_write: ["report"]
    },
    ...ENDS
  },
  max_steps: 12
})

const TALLY = {
  version: "1.0.0",
  tier: "task",
  triggers: [],
  required_tools: [],
  verification: [],
  workflow: [
    { step: "Look.", tool: "sim.look", params: { path: "a", ms: 700, note: "${goods}" }, writes: { seen: "note" } },
    { step: "Send.", tool: "sim.send", params: { path: "b", ms: 900, note: "${seen}" }, writes: { sent: "." } },
    { step: "Edit.", tool: "sim.edit", params: { path: "dir/a", ms: 300 }, writes: {} }
  ]
} as const
const decodeEntry = Schema.decodeSync(SkillRegistryEntry)

/** Run without a model: looks, sends, and edits. */
const tally = decode({
  name: "tally",
  description: "Look, send and edit.",
  contract: {
    execution_class: "deterministic",
    does: "tells the world what there is",
    does_not: "ask a model",
    state: { goods: { schema: { type: "string" } }, seen: { schema: { type: "string" } }, sent: { schema: {} } },
    state_read: ["goods", "seen"],
    state_write: ["seen", "sent"],
    capabilities: ["fs:read", "fs:write", "net"]
  },
  registry: TALLY,
  ...scriptMachine(decodeEntry(TALLY))
})

/** Begun by words of a message or of a job's task; for others models may begin it. */
const HEED = decode({
  name: "heed",
  description: "Do what was asked for nicely.",
  initial_state: "look",
  registry: {
    version: "1.0.0",
    tier: "task",
    triggers: [{ kind: "keyword", match: "please", mode: "start" }]
  },
  states: {
    look: {
      objective: "Look.",
      allowed_tools: ["sim.look"],
      transitions: [{ on: "complete", to: "done" }]
    },
    done: { terminal: true }
  },
  max_steps: 6
})

/** The word that begins it. */
export const ASKED_NICELY = "please"

const decodeProfile = Schema.decodeSync(JobProfile)

/** The profile of jobs that owe an account of their work. */
const SCOUT = decodeProfile({
  agent_type: "scout",
  pool: "research",
  permissions: { write_access: true },
  limits: { max_concurrent_tasks: 3 }
})

/** Skills with contracts, and the input that each begins with. */
export const CONTRACT_INPUT: Readonly<Record<string, { readonly goods: string }>> = {
  weigh: { goods: "apples" },
  tally: { goods: "pears" }
}

/** Seeds with such skills. */
export const hasContracts = (seed: number): boolean => seed % 29 === 27

/** Seeds whose people forward messages, whose skill begins by a trigger, and whose jobs have a profile. */
export const hasTriggers = (seed: number): boolean => seed % 31 === 30 && !hasContracts(seed) && !isLarge(seed)

export const profilesOf = (seed: number): ReadonlyMap<string, JobProfile> =>
  hasTriggers(seed) ? new Map([[SCOUT.agent_type, SCOUT]]) : new Map()

const SIM_SKILLS: ReadonlyMap<string, SkillSpec> = new Map([SIFT, SHIP].map((spec) => [spec.name, spec]))

/** Some seeds have them and the others are what they were before there were skills. */
export const skillsOf = (seed: number): ReadonlyMap<string, SkillSpec> => {
  if (hasContracts(seed)) return new Map([WEIGH, tally].map((spec) => [spec.name, spec]))
  if (hasTriggers(seed)) return new Map([[HEED.name, HEED]])
  if (isLarge(seed)) return new Map([...SIM_SKILLS, [HAND.name, HAND]])
  return seed % 7 === 0 ? SIM_SKILLS : new Map()
}

/** Seeds in which the limits of events are met, and in which a skill hands its work to jobs. */
export const isLarge = (seed: number): boolean => seed % 23 === 0
