/** choir.skill.list: finds skills by words and tier, where an agent has more than its fixed prompt describes. */
import { Effect, Schema } from "effect"
import type { SkillSpec } from "#schema/Skill.ts"
import { SkillTier } from "#schema/SkillRegistryEntry.ts"
import { withShownNames } from "#schema/Tool.ts"
import type { SkillBook } from "#src/agent/image/SkillRegistry.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { CONTROL_TIMEOUT_MS } from "./coreTools.ts"
import { decodeInput, type Tool } from "./Tool.ts"

/** Skills of one answer. */
const FOUND_MAX = 10
/** Skills of an answer with their input schemas. */
const WITH_SCHEMAS_MAX = 4
const QUERY_CHARS_MAX = 200

const SKILL_LIST = "choir.skill.list"

const Input = Schema.Struct({
  query: Schema.optionalKey(
    Schema.String.check(Schema.isMaxLength(QUERY_CHARS_MAX)).annotate({ description: "Words of the task, or a name" })
  ),
  tier: Schema.optionalKey(SkillTier)
})
const decode = decodeInput(Input)

/** The input as models see it: words find what a tier would, which is accepted all the same. */
const Offered = Schema.Struct({ query: Input.fields.query })

const wordsOf = (text: string): ReadonlyArray<string> => text.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? []

/** The number of words that a skill's own words begin with; its name counts twice. */
const score = ({ contract, description, name, registry }: SkillSpec, words: ReadonlyArray<string>): number => {
  const named = wordsOf(name)
  const own = wordsOf(
    [description, contract?.does ?? "", ...(registry?.triggers ?? []).map(({ match }) => match)].join(" ")
  )
  return words.reduce(
    (sum, word) =>
      sum + (named.some((one) => one.startsWith(word)) ? 2 : 0) + (own.some((one) => one.startsWith(word)) ? 1 : 0),
    0
  )
}

/** The skills of a tier that a query names, the best first. */
export const foundSkills = (skills: SkillBook, { query = "", tier }: typeof Input.Type): ReadonlyArray<SkillSpec> => {
  const words = wordsOf(query)
  const all = [...skills.values()].filter(({ registry }) => tier === undefined || registry?.tier === tier)
  if (words.length === 0) return all
  return all
    .map((spec) => [spec, score(spec, words)] as const)
    .filter(([, points]) => points > 0)
    .toSorted(([, a], [, b]) => b - a)
    .map(([spec]) => spec)
}

const shown =
  (withSchema: boolean) =>
  ({ contract, description, input_schema, name, registry }: SkillSpec) => ({
    name,
    description: withShownNames(description),
    ...(contract === undefined ? {} : { does_not: contract.does_not }),
    ...(registry === undefined ? {} : { tier: registry.tier }),
    ...(withSchema ? { input: input_schema ?? {} } : {})
  })

export const skillList = (skills: SkillBook): Tool => ({
  llm: llmView(SKILL_LIST, "Find skills, what they do not do, and their input.", Offered),
  effect: "none",
  lanes: "both",
  prepare: (raw) =>
    Effect.map(decode(raw), (input) => ({
      locks: [],
      timeout_ms: CONTROL_TIMEOUT_MS,
      run: () =>
        Effect.sync(() => {
          const found = foundSkills(skills, input)
          const kept = found.slice(0, FOUND_MAX).map(shown(found.length <= WITH_SCHEMAS_MAX))
          return {
            status: "success",
            summary: `${found.length} of ${skills.size} skills`,
            output: { skills: kept, more: found.length - kept.length }
          }
        })
    }))
})
