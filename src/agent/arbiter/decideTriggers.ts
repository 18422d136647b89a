/** The beginning of a skill by one of its triggers, in the batch of the event that it matches. Text from outside begins nothing. */
import { Result, type Schema } from "effect"
import type { LaneId } from "#schema/Ids.ts"
import { type Triggered, triggerText } from "./skillTriggers.ts"
import type { SkillDraft } from "./decideSkills.ts"
import { beginning, type BeginSituation } from "./startSkill.ts"

/** The inputs that a skill may be begun with, the first that fits: the words that it was triggered by, or nothing. */
const inputsOf = (text: string): ReadonlyArray<Schema.Json | undefined> => [{ message: text }, undefined]

/** The first skill that a matching trigger begins. `isTrusted`: a person or the agent wrote the words, and edge had read nothing from outside before it wrote its own. */
export const triggered = (
  lane: LaneId,
  found: ReadonlyArray<Triggered>,
  text: string,
  isTrusted: boolean,
  situation: BeginSituation
): SkillDraft | undefined => {
  if (!isTrusted) return undefined
  for (const each of found.filter(({ trigger }) => trigger.mode === "start"))
    for (const input of inputsOf(text)) {
      const begun = beginning(lane, each.skill, input, situation, triggerText(each))
      if (Result.isSuccess(begun)) return begun.success
    }
  return undefined
}
