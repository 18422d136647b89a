/** Skills of tests: one of four steps without a contract, and small ones. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Result, Schema } from "effect"
import { SkillSpec } from "#schema/Skill.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"

/** A skill of four steps without a contract, as an image brings it. */
export const carefulChange: SkillSpec = Result.getOrThrowWith(
  readSkill("careful_change", readFileSync(join(import.meta.dirname, "careful_change.json"), "utf8")),
  (problems) => new Error(problems.join("; "))
)

type Draft = Partial<typeof SkillSpec.Encoded>

/** A small skill: `look` with mem.read, then `write` with ws.write, then done. */
export const skillDraft = (more: Draft = {}): typeof SkillSpec.Encoded => ({
  name: "tidy",
  description: "Put things in order.",
  initial_state: "look",
  states: {
    look: {
      objective: "See what is there.",
      allowed_tools: ["mem.read"],
      transitions: [{ on: "complete", to: "write" }]
    },
    write: {
      objective: "Put it in order.",
      allowed_tools: ["mem.read", "ws.write"],
      transitions: [
        { on: "complete", to: "done" },
        { on: "revise", to: "look" }
      ]
    },
    done: { terminal: true }
  },
  max_steps: 12,
  ...more
})

export const skillSpec = (more: Draft = {}): SkillSpec => Schema.decodeSync(SkillSpec)(skillDraft(more))

/** The text of a skill file of this name, with tools that every agent has. */
export const skillText = (name: string, description = "Nothing."): string =>
  JSON.stringify(skillDraft({ name, description }))
    .replaceAll("mem.read", "choir.fs.read")
    .replaceAll("ws.write", "choir.fs.write")

export const bookOf = (...specs: ReadonlyArray<SkillSpec>): ReadonlyMap<string, SkillSpec> =>
  new Map(specs.map((spec) => [spec.name, spec]))
