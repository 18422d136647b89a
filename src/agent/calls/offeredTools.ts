/** Which tools a lane may see, and what its model is offered: one rule for every registry. */
import { jobOf, type LaneId } from "#schema/Ids.ts"
import { toWireName } from "#schema/Tool.ts"
import type { ChatTool } from "#src/agent/model/chatCompletion.ts"
import { SKILL_TRANSITION, type SkillRules } from "#src/agent/arbiter/decideSkills.ts"
import type { AnyTool } from "#src/agent/tools/Tool.ts"
import type { Schema } from "effect"
import type { EventOf } from "#schema/Event.ts"
import { isCut } from "#src/agent/arbiter/finalWords.ts"

/** Of arguments that are no JSON, the end is told: it shows where they broke off, and the call is replayed without them. */
const SHOWN_CHARS = 200

const parseProblem = (text: string): string => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null ? "they are nested too deep" : "they are another kind of value"
  } catch (error) {
    return error instanceof Error ? error.message.slice(0, SHOWN_CHARS) : "they are no JSON"
  }
}

/** `undefined` where the tool itself can say what it makes of them. */
export const argumentsProblem = (
  tool: string,
  input: Schema.Json,
  output: EventOf<"ModelOutput">["payload"] | undefined
): string | undefined => {
  const name = tool.slice(0, 64)
  if (typeof input !== "string")
    return typeof input === "object" && input !== null && !Array.isArray(input)
      ? undefined
      : `the arguments of ${name} are not a JSON object: ${JSON.stringify(input).slice(0, SHOWN_CHARS)}. Nothing was run`
  const end = input.length <= SHOWN_CHARS ? input : `…${input.slice(-SHOWN_CHARS)}`
  const shown = end === "" ? "They are empty" : `They end with: ${end.toWellFormed()}`
  return output !== undefined && isCut(output)
    ? `your answer was cut at ${output.usage.output_tokens} tokens, inside the arguments of ${name}. Nothing was run. Write in smaller parts. ${shown}`
    : `the arguments of ${name} are not a JSON object: ${parseProblem(input)}. Nothing was run. ${shown}`
}

/** What narrows a lane's tools at a moment. */
export interface Narrowing {
  /** A job's own constraint; empty allows all. */
  readonly allowed?: ReadonlyArray<string>
  /** The rules of the state that the lane's skill is in. */
  readonly skill?: SkillRules | undefined
}

const isVisible = (lane: LaneId, { lanes }: AnyTool): boolean =>
  lanes === "both" || (lanes === "edge") === (jobOf(lane) === undefined)

/** A job may always report and move its skill on, whatever its constraints allow. */
export const isConstrainable = (name: string): boolean => name !== "choir.core.report" && name !== SKILL_TRANSITION

const fits = (name: string, { allowed = [], skill }: Narrowing): boolean => {
  if (name === SKILL_TRANSITION) return skill !== undefined
  if (skill !== undefined && !skill.tools.some((tool) => tool === name)) return false
  return allowed.length === 0 || allowed.includes(name) || !isConstrainable(name)
}

const chatTool = ({ llm }: AnyTool): ChatTool => ({
  type: "function",
  function: { name: toWireName(llm.name), description: llm.description, parameters: llm.input_schema }
})

/** Tools by their wire names, as lanes find them. */
export const toolTable = (all: ReadonlyArray<AnyTool>) => {
  const byName = new Map(all.map((tool) => [toWireName(tool.llm.name), tool]))
  const tools = [...byName.values()]
  const chatTools = new Map(tools.map((tool) => [tool, chatTool(tool)]))
  const seenBy = (lane: LaneId) => tools.filter((tool) => isVisible(lane, tool))
  return {
    named: (name: string) => byName.get(name.replaceAll(".", "-")),
    find: (lane: LaneId, wireName: string) => {
      const tool = byName.get(wireName.replaceAll(".", "-"))
      return tool !== undefined && isVisible(lane, tool) ? tool : undefined
    },
    offered: (lane: LaneId, narrowing: Narrowing = {}): ReadonlyArray<ChatTool> =>
      seenBy(lane)
        .filter(({ llm }) => fits(llm.name, narrowing))
        .flatMap((tool) => chatTools.get(tool) ?? []),
    names: (lane: LaneId) => seenBy(lane).map((tool) => toWireName(tool.llm.name))
  }
}
