/** The beginning of a skill by one of its triggers, in the batch of the event that it matches. Text from outside begins nothing. */
import type { Schema } from "effect"
import type { EventDraft } from "#schema/Event.ts"
import type { LaneId } from "#schema/Ids.ts"
import type { SkillBook } from "#src/agent/image/SkillRegistry.ts"
import { type Triggered, triggerText } from "#src/shared/session/skillTriggers.ts"
import { beginning } from "./decideSkills.ts"

/** The inputs that a skill may be begun with, the first that fits: the words that it was triggered by, or nothing. */
const inputsOf = (text: string): ReadonlyArray<Schema.Json | undefined> => [{ message: text }, undefined]

/** The first skill that a matching trigger begins. `isTrusted`: a person or the agent itself wrote the words, and nothing from outside is in them. */
export const triggered = (
  lane: LaneId,
  found: ReadonlyArray<Triggered>,
  text: string,
  isTrusted: boolean,
  skills: SkillBook
): EventDraft | undefined => {
  if (!isTrusted) return undefined
  for (const each of found.filter(({ trigger }) => trigger.mode === "start"))
    for (const input of inputsOf(text)) {
      const begun = beginning(lane, each.skill, input, skills)
      if (typeof begun !== "string" && begun.event_type === "SkillTransitionCommitted")
        return { ...begun, payload: { ...begun.payload, trigger: triggerText(each) } }
    }
  return undefined
}
