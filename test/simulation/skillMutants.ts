/** Planted bugs of skills (K1 to K3). Only seeds that 7 divides have skills. */
import type { Mutant } from "./Mutant.ts"

export const SKILL_MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: "any-tool-in-a-skill",
    file: "src/agent/decideSkills.ts",
    find: "if (rules.tools.some((allowed) => allowed === tool)) return undefined",
    replace: "return undefined",
    knownSeed: 7,
    breaks: ["K1"]
  },
  {
    name: "skill-moves-before-its-calls-end",
    file: "src/agent/decideSkills.ts",
    find: "(isSkillCall(other) ? index < own : true)",
    replace: "isSkillCall(other) && index < own",
    knownSeed: 35,
    breaks: ["K1"]
  },
  {
    name: "two-transitions-in-one-answer",
    file: "src/agent/decideSkills.ts",
    find: "if (call.output_rev < skill.entered_rev)",
    replace: "if (call.output_rev < 0)",
    knownSeed: 77,
    breaks: ["K2"]
  },
  {
    name: "skill-steps-unlimited",
    file: "src/agent/decideSkills.ts",
    find: "if (skill.step >= spec.max_steps)",
    replace: "if (skill.step < 0)",
    knownSeed: 7,
    breaks: ["K3"]
  },
  {
    name: "skill-violations-uncounted",
    file: "src/shared/session/skills.ts",
    find: "violations: skill.violations + 1",
    replace: "violations: skill.violations",
    knownSeed: 7,
    breaks: ["K3"]
  }
]
