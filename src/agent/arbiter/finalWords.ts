/**
 * The meaning of a model output without tool calls: the words that the lane ends with, or one correction where the output is empty, was
 * cut off at the model's limit, or has a call that its model wrote as text. It follows from the log alone, so that a lane continues after a crash as it would have without one.
 */
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { spokenWords } from "#src/shared/model/spokenText.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import type { Find } from "./Command.ts"

type Output = EventOf<"ModelOutput">["payload"]

export type FinalWords =
  | { readonly type: "whole"; readonly text: string }
  /** To be asked for once. */
  | { readonly type: "correct"; readonly correction: string }
  /** The correction failed as well: what there is, and what is wrong with it, in words for a person. */
  | { readonly type: "broken"; readonly text: string; readonly problem: string }

/** Whether the model's limit ended an output, and not the model. */
export const isCut = ({ finish_reason }: Pick<Output, "finish_reason">): boolean => finish_reason === "length"

const limit = ({ usage }: Output): string => `${usage.output_tokens} tokens`

/** The words on a lane that repeats itself because each of its calls is cut; nothing where the last output was not. */
export const cutCalls = (output: Output | undefined): string | undefined =>
  output !== undefined && isCut(output) && output.tool_calls.length > 0
    ? `the model's answers are cut at ${limit(output)}, inside a tool call, which therefore never runs. Raise the model's max_tokens in config.json, or ask for smaller parts`
    : undefined

const WRITTEN_CALL = {
  correction:
    "You wrote a tool call as text, so nothing was run. Make the call in the form of the API, or answer in plain words without it.",
  problem:
    "the model wrote a tool call as text, and again when it was asked not to, so nothing was run: its server may lack the parser for this model's calls"
}

const flawOf = (output: Output): { readonly correction: string; readonly problem: string } | undefined => {
  if (spokenWords(output.text ?? "").hasCall) return WRITTEN_CALL
  const isEmpty = (output.text ?? "").trim() === ""
  if (isCut(output) && isEmpty)
    return {
      correction: `Your answer was cut at ${limit(output)} before any of its text. Answer again, shorter.`,
      problem: `the model's answer was cut at ${limit(output)} before any of its text (the model's max_tokens)`
    }
  if (isCut(output))
    return {
      correction: `Your answer was cut at ${limit(output)}. Continue exactly where it stopped, without repeating any of it.`,
      problem: `the model's answer was cut at ${limit(output)} (the model's max_tokens), and so was its continuation`
    }
  return isEmpty
    ? {
        correction: "Your reply was empty. Continue, or give the result.",
        problem: "the model's reply was empty, and so was the one after it"
      }
    : undefined
}

/** The outcome of a final output. `before` is the final output that it corrects or continues. */
export const finalWords = (output: Output, before: Output | undefined): FinalWords => {
  const flaw = flawOf(output)
  if (flaw !== undefined && before === undefined) return { type: "correct", correction: flaw.correction }
  const begun = before !== undefined && isCut(before) ? (before.text ?? "") : ""
  const text = begun + (flaw === WRITTEN_CALL ? spokenWords(output.text ?? "").text.trim() : (output.text ?? ""))
  return flaw === undefined ? { type: "whole", text } : { type: "broken", text, problem: flaw.problem }
}

const isOfLane = (event: ChoirEvent | undefined, lane: LaneId): event is EventOf<"ModelOutput"> =>
  event?.event_type === "ModelOutput" &&
  event.lane === lane &&
  (event.payload.purpose === "turn" || event.payload.purpose === "report")

/** The lane's output before the one at `rev`, back to `from`, if it was final too and of the same turn. */
export const finalBefore = (find: Find, lane: LaneId, rev: number, from: number): Output | undefined => {
  for (let at = rev - 1; at >= from; at -= 1) {
    const event = find(at)
    // A turn that was set aside took up its work after the answer to another message.
    if (event?.event_type === "AgentMessage" && event.lane === lane && event.payload.kind !== "notice") return undefined
    if (isOfLane(event, lane))
      return event.payload.tool_calls.length === 0 && event.payload.error === undefined ? event.payload : undefined
  }
  return undefined
}

/** The final words of edge's open turn, or why they are asked for again. */
export const edgeWords = (find: Find, { turn }: SessionState["edge"], output: EventOf<"ModelOutput">): FinalWords =>
  finalWords(output.payload, finalBefore(find, EDGE, output.rev, turn?.rev ?? output.rev))

/** Whether edge asks again for words that were missing or cut off, so that its turn has no answer yet. */
export const isCorrecting = ({ edge }: Pick<SessionState, "edge">, find: Find): boolean => {
  const output = edge.state === "EDGE_FINALIZING" ? find(edge.output_rev) : undefined
  return (
    output?.event_type === "ModelOutput" &&
    output.payload.error === undefined &&
    edgeWords(find, edge, output).type === "correct"
  )
}
