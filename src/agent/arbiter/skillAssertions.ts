/** The assertions that a step of a skill has to hold before it is left. */
import type { Asserted } from "#schema/Event.ts"
import { ERROR_EVENT, type SkillSpec, skillState } from "#schema/Skill.ts"
import type { Assertion } from "#schema/SkillContract.ts"
import { asserted } from "#src/shared/image/assertions.ts"
import { isVerificationCall } from "#src/shared/image/scriptStates.ts"
import type { StateValues } from "#src/shared/image/statePath.ts"

/** The assertions of a transition: those of the state that it leads to, and where the skill ends well all of the contract. */
export const assertionsAt = (spec: SkillSpec, on: string, to: string): ReadonlyArray<Assertion> => {
  if (on === ERROR_EVENT) return []
  const target = skillState(spec, to)
  const checks = (spec.registry?.verification ?? []).flatMap((check) => (isVerificationCall(check) ? [] : [check]))
  return [
    ...(target?.assertions ?? []),
    ...(target?.terminal === true ? [...(spec.contract?.assertions ?? []), ...checks] : [])
  ]
}

/** Each assertion of a transition with its outcome, and the reason that the failed ones give. No value of STATE is in the reason. */
export const assertionsOf = (
  spec: SkillSpec,
  on: string,
  to: string,
  values: StateValues
): { readonly outcomes: ReadonlyArray<Asserted>; readonly failed: string | undefined } => {
  const outcomes = asserted(assertionsAt(spec, on, to), values)
  const failed = outcomes.filter(({ ok }) => !ok).map(({ statement }) => `"${statement}" does not hold`)
  return { outcomes, failed: failed.length === 0 ? undefined : failed.join("; ") }
}
