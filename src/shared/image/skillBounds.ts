/** The most that one run of a skill can take, as it follows from its file alone. Pure. */
import type { SkillBounds } from "#schema/SkillCheck.ts"
import { ERROR_EVENT, type SkillSpec, skillState } from "#schema/Skill.ts"
import { retriesOf } from "#schema/SkillContract.ts"
import { toolsOf } from "./contractProblems.ts"
import { isScript } from "./scriptStates.ts"
import type { AllToolFacts } from "./toolFacts.ts"

/** The model that would do the work, with its price in USD per million tokens. */
export interface WorkingModel {
  readonly context_window: number
  readonly max_tokens: number
  readonly price?: { readonly input: number; readonly output: number } | undefined
}

const MILLION = 1_000_000

/** A call reads at most what the window holds beside its answer. */
const worstCall = ({ context_window, max_tokens }: WorkingModel) => {
  const output = Math.min(max_tokens, context_window)
  return { input: context_window - output, output }
}

/** Whether a skill may work again after a result of it was not taken for good: then each of its model calls may end in one that is judged. */
const worksAgain = (spec: SkillSpec): boolean =>
  Object.values(spec.states).some(({ transitions }) => {
    const handler = transitions.find(({ on }) => on === ERROR_EVENT)
    const ends = transitions.some(({ on, to }) => on !== ERROR_EVENT && skillState(spec, to)?.terminal === true)
    return ends && handler !== undefined && skillState(spec, handler.to)?.terminal !== true
  })

/** At most one result of a model call is judged, since whatever comes of it moves the skill on. */
const judgeCalls = (spec: SkillSpec): number => {
  const { contract, max_steps } = spec
  if (contract?.confidence_threshold === undefined) return 0
  return worksAgain(spec) ? max_steps : Math.min(max_steps, retriesOf(contract) + 1)
}

const modelCalls = (spec: SkillSpec): number => (isScript(spec) ? 0 : spec.max_steps + judgeCalls(spec))

/** Bounds with the tokens and dollars of a model. */
export const pricedBounds = (bounds: SkillBounds, model: WorkingModel | undefined): SkillBounds => {
  const { model_calls } = bounds
  if (model_calls === 0) return { ...bounds, tokens: 0, usd: 0 }
  if (model === undefined) return bounds
  const { input, output } = worstCall(model)
  const { price } = model
  return {
    ...bounds,
    tokens: model_calls * (input + output),
    usd: price === undefined ? null : (model_calls * (input * price.input + output * price.output)) / MILLION
  }
}

export const skillBounds = (spec: SkillSpec, facts: AllToolFacts, model?: WorkingModel): SkillBounds => {
  const locks = [...new Set(toolsOf(spec).flatMap((tool) => facts.get(tool)?.locks ?? []))].sort()
  return pricedBounds({ model_calls: modelCalls(spec), tokens: null, usd: null, locks }, model)
}
