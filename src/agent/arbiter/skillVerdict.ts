/**
 * The judge of a skill's result: when one is needed, and what its answer means. A verdict that cannot be read fails the result, and a judge that
 * cannot be asked is an error: neither ever lets it pass.
 */
import { Result, Schema } from "effect"
import type { EventOf } from "#schema/Event.ts"
import type { SkillContract } from "#schema/SkillContract.ts"
import type { Command } from "./Command.ts"

type Output = EventOf<"ModelOutput">["payload"]

/** The tool with which a judge answers. */
export const VERDICT_TOOL = "choir.skill.verdict"

const UNSUPPORTED_MAX = 64

export const VerdictInput = Schema.Struct({
  score: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })).annotate({
    description: "0 to 1: how well the result does what the skill is for"
  }),
  unsupported: Schema.Array(Schema.String).check(Schema.isMaxLength(UNSUPPORTED_MAX)).annotate({
    description: "Parts of the result that the sources do not support, by id or in their words; [] if none"
  })
})

export type Verdict =
  | { readonly type: "score"; readonly score: number; readonly unsupported: ReadonlyArray<string> }
  | { readonly type: "unreadable" }
  | { readonly type: "outage"; readonly problem: string }

const decode = Schema.decodeUnknownResult(VerdictInput)

/** The verdict of a judge's answer: exactly one call of the one tool that it has. */
export const verdictOf = ({ error, tool_calls }: Pick<Output, "error" | "tool_calls">): Verdict => {
  if (error !== undefined) return { type: "outage", problem: error.message }
  const [call] = tool_calls
  if (call === undefined || tool_calls.length > 1 || call.name.replaceAll("-", ".") !== VERDICT_TOOL)
    return { type: "unreadable" }
  const decoded = decode(call.input)
  return Result.isFailure(decoded) ? { type: "unreadable" } : { type: "score", ...decoded.success }
}

type Claim = Pick<Extract<Command, { type: "MoveSkill" }>, "confidence" | "judge_blocks">

/** Whether a result is taken only after a judge has looked at it: it says so itself, or is not as confident as it should be. */
export const needsJudge = (
  { confidence_threshold: threshold }: Pick<SkillContract, "confidence_threshold">,
  { confidence, judge_blocks = [] }: Claim
): boolean => threshold !== undefined && (judge_blocks.length > 0 || confidence === undefined || confidence < threshold)

/** Why a verdict does not let a result pass; `undefined` when it does. */
export const verdictProblem = (
  verdict: Exclude<Verdict, { type: "outage" }>,
  threshold: number
): string | undefined => {
  if (verdict.type === "unreadable") return "the judge's answer cannot be read"
  const { score, unsupported } = verdict
  if (score < threshold) return `the judge gave ${score}, and ${threshold} is needed`
  return unsupported.length > 0 ? `the judge found ${unsupported.length} unsupported` : undefined
}
