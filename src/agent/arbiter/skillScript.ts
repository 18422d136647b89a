/**
 * The script of a skill that the runtime runs. Each of its states takes two outputs: the call, and the transition that takes over its result. Which
 * of them is next follows from the log, so that a script that was cut off anywhere continues where it was and makes no call twice.
 */
import { Result, type Schema } from "effect"
import type { EventOf } from "#schema/Event.ts"
import type { SkillSpec } from "#schema/Skill.ts"
import { shownName } from "#schema/Tool.ts"
import { unexpected } from "#src/shared/image/assertions.ts"
import { isScript, SCRIPT_EVENT, type ScriptCall, scriptCall } from "#src/shared/image/scriptStates.ts"
import { filled, type StateValues, valuesAt } from "#src/shared/image/statePath.ts"
import type { LaneMemory } from "#src/shared/session/State.ts"
import type { Find } from "./Command.ts"
import { scopesOf, stateValues } from "./skillState.ts"

type ToolResult = EventOf<"ToolResultCommitted">["payload"]

/** The lane's memory, as far as a script depends on it. */
type Lane = Pick<LaneMemory, "skill" | "window">

/** A call of a script's next output. */
export interface ScriptOutput {
  readonly name: string
  readonly input: Schema.Json
}

/** The beginning of the runtime's name where it speaks and no model does. */
export const SCRIPT_MODEL = "skill:"

export const scriptModel = ({ name, registry }: SkillSpec): string =>
  `${SCRIPT_MODEL}${name}@${registry?.version ?? "0.0.0"}`

/** The result of the call that the state made last; `undefined` when it is no longer in the log. */
const resultOf = ({ skill, window }: Lane, find: Find): ToolResult | undefined => {
  const events = window.filter((rev) => rev > (skill?.entered_rev ?? 0)).flatMap((rev) => find(rev) ?? [])
  const output = events.findLast((event) => event.event_type === "ModelOutput")
  const call_id = output?.event_type === "ModelOutput" ? output.payload.tool_calls[0]?.call_id : undefined
  const result = events.find((event) => event.event_type === "ToolResultCommitted" && event.payload.call_id === call_id)
  return result?.event_type === "ToolResultCommitted" ? result.payload : undefined
}

/** The call of the lane's present state, and whether it was made. */
const stateOf = (
  { skill }: Lane,
  spec: SkillSpec
): { readonly call: ScriptCall; readonly isMade: boolean } | undefined => {
  const call = skill === undefined ? undefined : scriptCall(spec, skill.state)
  return skill === undefined || call === undefined ? undefined : { call, isMade: skill.step % 2 === 1 }
}

const paramsOf = (lane: Lane, spec: SkillSpec, call: ScriptCall, find: Find) => {
  const { skill } = lane
  const scope = skill === undefined ? undefined : scopesOf(spec, skill.state)?.read
  return filled(call.params, skill === undefined ? {} : stateValues(skill, find, scope))
}

const writesOf = (call: ScriptCall, output: Schema.Json): Result.Result<StateValues, string> =>
  call.type === "verify"
    ? Result.succeed({})
    : Result.all(
        Object.fromEntries(
          Object.entries(call.writes).map(([field, path]) => {
            const [found] = valuesAt(output, path)
            return [
              field,
              found === undefined
                ? Result.fail(`the output of ${shownName(call.tool)} has no ${path} for the field ${field}`)
                : Result.succeed(found)
            ] as const
          })
        )
      )

/** Where a script takes over that an output is cut. */
const takesCut = ({ writes }: Extract<ScriptCall, { type: "step" }>): boolean =>
  Object.values(writes).some((path) => path === "truncated" || path === ".")

/** A script would pass on a part as if it were all, where nothing of it says that there is more. */
const cutProblem = (call: ScriptCall, { output, summary }: ToolResult): string | undefined => {
  const isCut = valuesAt(output ?? null, "truncated")[0] === true
  return isCut && call.type === "step" && !takesCut(call)
    ? `${shownName(call.tool)} found more than one call returns (${summary}): narrow its input, or take "truncated" into a field`
    : undefined
}

/** Why the script of a lane cannot continue: its call failed, or came to something other than was expected. */
export const scriptProblem = (lane: Lane, spec: SkillSpec, find: Find): string | undefined => {
  const at = stateOf(lane, spec)
  if (at === undefined) return undefined
  const { call, isMade } = at
  if (!isMade) {
    const params = paramsOf(lane, spec, call, find)
    return Result.isFailure(params) ? params.failure : undefined
  }
  const tool = shownName(call.tool)
  const result = resultOf(lane, find)
  if (result === undefined) return `the result of ${tool} is no longer in the log`
  if (result.status !== "success") return `${tool}: ${result.status}: ${result.summary}`
  const output = result.output ?? null
  const problem = call.type === "verify" ? unexpected(call.expect, output) : undefined
  if (problem !== undefined) return `${tool} does not verify the work: ${problem}`
  const cut = cutProblem(call, result)
  if (cut !== undefined) return cut
  const writes = writesOf(call, output)
  return Result.isFailure(writes) ? writes.failure : undefined
}

/** The next output of a lane's script; `undefined` where a model does the work, or {@link scriptProblem} says why there is none. */
export const nextScriptOutput = (lane: Lane, spec: SkillSpec, find: Find): ScriptOutput | undefined => {
  const at = isScript(spec) ? stateOf(lane, spec) : undefined
  if (at === undefined) return undefined
  const { call, isMade } = at
  if (!isMade)
    return Result.match(paramsOf(lane, spec, call, find), {
      onFailure: () => undefined,
      onSuccess: (input) => ({ name: call.tool, input })
    })
  return Result.match(writesOf(call, resultOf(lane, find)?.output ?? null), {
    onFailure: () => undefined,
    onSuccess: (writes) => ({ name: "choir.skill.transition", input: { on: SCRIPT_EVENT, writes } })
  })
}
