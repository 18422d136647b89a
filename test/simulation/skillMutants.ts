/** Planted bugs of skills (K1 to K9, J5). docs/evidence/simulation.md says which seeds have which skills. */
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
    knownSeed: 28,
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
  },
  {
    name: "pass-on-a-judges-error",
    file: "src/agent/arbiter/moveSkill.ts",
    find: "return failed(step, `the judge could not be asked: ${verdict.problem}`, evidence)",
    replace: "return take(evidence)",
    knownSeed: 27,
    breaks: ["K6"]
  },
  {
    name: "unreadable-verdict-passes",
    file: "src/agent/arbiter/skillVerdict.ts",
    find: `if (verdict.type === "unreadable") return "the judge's answer cannot be read"`,
    replace: `if (verdict.type === "unreadable") return undefined`,
    knownSeed: 520,
    breaks: ["K6"]
  },
  {
    name: "write-outside-scope",
    file: "src/agent/arbiter/skillState.ts",
    find: "return beyond.length > 0",
    replace: "return beyond.length > 99",
    knownSeed: 317,
    breaks: ["K5"]
  },
  {
    name: "retry-resets-a-budget",
    file: "src/shared/session/skills.ts",
    find: "attempt: skill.attempt + 1",
    replace: "attempt: 0",
    knownSeed: 201,
    breaks: ["K7"]
  },
  {
    name: "untrusted-text-starts-a-skill",
    file: "src/agent/arbiter/decideTriggers.ts",
    find: "if (!isTrusted) return undefined",
    replace: "if (!isTrusted && found.length > 99) return undefined",
    knownSeed: 30,
    breaks: ["K9"]
  },
  {
    name: "orphan-is-not-marked",
    file: "src/agent/arbiter/decideCores.ts",
    find: "return owesWriteback(find(core.started_rev)) ? { orphan: true } : {}",
    replace: "return {}",
    knownSeed: 61,
    breaks: ["J5"]
  },
  {
    name: "orphan-is-not-told",
    file: "src/shared/session/jobText.ts",
    find: "const account = orphan === true ?",
    replace: "const account = orphan === false ?",
    knownSeed: 154,
    breaks: ["J5"]
  },
  {
    name: "script-asks-a-model",
    file: "src/agent/session/scripts.ts",
    find: "if (scriptOf(lane) === undefined) return false",
    replace: "if (lane !== undefined) return false",
    knownSeed: 27,
    breaks: ["K8"]
  }
]
