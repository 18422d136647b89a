/** The judge of skills' results: a call of another model than the worker's, which sees the result and its sources and can do nothing but judge. */
import { Context, Effect, Layer } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { AgentSettings, boundModel } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import type { Command, Find } from "#src/agent/arbiter/Command.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { VERDICT_TOOL, VerdictInput } from "#src/agent/arbiter/skillVerdict.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { coreOf, laneOf } from "#src/shared/session/lanes.ts"
import type { Exhausted } from "#src/agent/model/Budget.ts"
import { answerTool } from "#src/agent/model/llmView.ts"
import { ModelCalls, presentModel } from "#src/agent/model/ModelCalls.ts"
import type { SkillContract } from "#schema/SkillContract.ts"
import { stateValues } from "#src/agent/arbiter/skillState.ts"
import { withoutNotes } from "#src/agent/model/choirNote.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import type { ActiveSkill } from "#src/shared/session/State.ts"
import { JUDGE_INSTRUCTIONS } from "#src/agent/model/prompt/instructions.ts"
import { shownValues } from "#src/agent/model/prompt/shownValues.ts"

const VERDICT = answerTool(VERDICT_TOOL, "Give your verdict on the result.", VerdictInput)

/** The one tool of a judge. */
export const verdictTool = VERDICT.tool

/** Two names of one model judge alike. */
const identity = (config: AgentConfig, name: string): string => {
  const model = boundModel(config, name)
  return JSON.stringify([model?.endpoint, model?.model])
}

/** The model that judges the work of another: the wanted one where the agent is bound to it, or else the first that is not the worker. */
export const judgeModel = (config: AgentConfig, worker: string, wanted: string | undefined): string => {
  if (wanted !== undefined && boundModel(config, wanted) !== undefined) return wanted
  const names = [config.llm, config.core_llm, ...Object.keys(config.models)]
  return names.find((name) => identity(config, name) !== identity(config, worker)) ?? worker
}

/** Has another model judge a skill's result, and commits the verdict. */
export class SkillJudge extends Context.Service<
  SkillJudge,
  {
    /** Asks a judge about the result of a step and commits the answer, an outage included; nothing where the lane has ended meanwhile. */
    ask(move: Extract<Command, { type: "MoveSkill" }>): Effect.Effect<void, Exhausted>
  }
>()("choir/agent/SkillJudge") {
  static readonly layer = Layer.effect(
    SkillJudge,
    Effect.gen(function* () {
      const arbiter = yield* Arbiter
      const calls = yield* ModelCalls
      const log = yield* EventLog
      const settings = yield* AgentSettings
      const skills = yield* SkillRegistry

      const workerOf = (config: AgentConfig, lane: LaneId): string =>
        presentModel(
          config,
          lane,
          lane === EDGE ? config.llm : (coreOf(arbiter.state(), lane)?.model ?? config.core_llm)
        )

      const ask = Effect.fn("SkillJudge.ask")(function* (move: Extract<Command, { type: "MoveSkill" }>) {
        const { call_id, lane } = move
        const asked = () => {
          const skill = laneOf(arbiter.state(), lane)?.skill
          const spec = skill === undefined ? undefined : skills.get(skill.name)
          return skill === undefined || spec?.contract === undefined
            ? undefined
            : { messages: judgePrompt(spec.contract, skill, move, log.find), judges: call_id }
        }
        const skill = laneOf(arbiter.state(), lane)?.skill
        const wanted = skill === undefined ? undefined : skills.get(skill.name)?.contract?.judge?.model
        const { config } = settings.current()
        const model = judgeModel(config, workerOf(config, lane), wanted)
        yield* calls.ask(lane, "judge", model, [verdictTool], asked)
      })
      return SkillJudge.of({ ask })
    })
  )
}

/** The result of a step that is to be judged. */
type Judged = Pick<Extract<Command, { type: "MoveSkill" }>, "judge_blocks" | "writes">

/** The question to a judge: what the skill is for, worked examples, the sources and the result, all of it as data. */
const judgePrompt = (
  { does, does_not, golden_anchors, judge }: SkillContract,
  skill: ActiveSkill,
  { judge_blocks = [], writes = {} }: Judged,
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
