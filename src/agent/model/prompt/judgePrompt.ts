/** The question to a judge: what the skill is for, worked examples, the sources and the result, all of it as data. */
import type { SkillContract } from "#schema/SkillContract.ts"
import type { Command, Find } from "#src/agent/arbiter/Command.ts"
import { stateValues } from "#src/agent/arbiter/skillState.ts"
import { withoutNotes } from "#src/agent/model/choirNote.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import type { ActiveSkill } from "#src/shared/session/State.ts"
import { JUDGE_INSTRUCTIONS } from "./instructions.ts"
import { shownValues } from "./shownValues.ts"

/** The result of a step that is to be judged. */
type Result = Pick<Extract<Command, { type: "MoveSkill" }>, "judge_blocks" | "writes">

export const judgePrompt = (
  { does, does_not, golden_anchors, judge }: SkillContract,
  skill: ActiveSkill,
  { judge_blocks = [], writes = {} }: Result,
  find: Find
): ReadonlyArray<Message> => {
  const sources = stateValues(skill, find, judge?.sources ?? [])
  const data = {
    does,
    does_not,
    ...(golden_anchors.length === 0 ? {} : { examples: golden_anchors }),
    sources: shownValues(sources),
    result: shownValues(writes),
    ...(judge_blocks.length === 0 ? {} : { blocks: shownValues({ blocks: [...judge_blocks] })["blocks"] ?? [] })
  }
  return [
    { role: "system", content: JUDGE_INSTRUCTIONS },
    { role: "user", content: withoutNotes(`Judge this result:\n${JSON.stringify(data)}`) }
  ]
}
