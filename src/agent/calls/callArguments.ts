/** What is wrong with the arguments of a call before its tool looks at them, in words for the model that wrote them. */
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
