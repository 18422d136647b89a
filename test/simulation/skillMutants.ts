/** Planted bugs of skills (K1 to K4). Only seeds that 7 divides have skills, and those that 23 divides one that hands its work to a job. */
import type { Mutant } from "./Mutant.ts"

export const SKILL_MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: "any-tool-in-a-skill",
    file: "src/agent/arbiter/decideSkills.ts",
    find: "if (rules.tools.some((allowed) => allowed === tool)) return undefined",
    replace: "return undefined",
    knownSeed: 7,
    breaks: ["K1"]
  },
  {
    name: "skill-moves-before-its-calls-end",
    file: "src/agent/arbiter/decideSkills.ts",
    find: "(isSkillCall(other) ? index < own : true)",
    replace: "isSkillCall(other) && index < own",
    knownSeed: 91,
    breaks: ["K1"]
  },
  {
    name: "two-transitions-in-one-answer",
    file: "src/agent/arbiter/moveSkill.ts",
    find: "if (call.output_rev < skill.entered_rev)",
    replace: "if (call.output_rev < 0)",
    knownSeed: 77,
    breaks: ["K2"]
  },
  {
    name: "skill-steps-unlimited",
    file: "src/agent/arbiter/decideSkills.ts",
    find: "if (skill.step >= spec.max_steps)",
    replace: "if (skill.step < 0)",
    knownSeed: 91,
    breaks: ["K3"]
  },
  {
    name: "skill-violations-uncounted",
    file: "src/shared/session/skills.ts",
    find: "violations: skill.violations + 1",
    replace: "violations: skill.violations",
    knownSeed: 7,
    breaks: ["K3"]
  },
  {
    name: "skill-within-a-skill-by-a-job",
    file: "src/agent/arbiter/startSkill.ts",
    find: `if ("job_id" in memory && memory.in_skill !== undefined)`,
    replace: "if (false)",
    knownSeed: 161,
    breaks: ["K4"]
  },
  {
    name: "job-leaves-the-tools-of-its-skill",
    file: "src/agent/arbiter/decideCores.ts",
    find: "if (rules === undefined) return wanted",
    replace: "if (rules !== undefined || rules === undefined) return wanted",
    knownSeed: 161,
    breaks: ["K4"]
  }
]
