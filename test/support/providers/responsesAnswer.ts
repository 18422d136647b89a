/** Answers of OpenAI's Responses API: https://platform.openai.com/docs/api-reference/responses/object and .../responses-streaming */
import { type Keys, listOf } from "#demo/dialects/jsonKeys.ts"
import { sealedReasoning } from "#demo/dialects/responsesReasoning.ts"
import { family } from "#demo/dialects/Rule.ts"
import { signatureOf } from "#demo/dialects/signatures.ts"
import {
  type Answer,
  argumentsOf,
  finishOf,
  type Occasion,
  piecesOf,
  type ServerEvent,
  type Written
} from "./Answer.ts"

/** An item of the output: as it begins, its events, and as it ends. */
interface Item {
  readonly start: Keys
  readonly end: Keys
  readonly events: () => ReadonlyArray<readonly [name: string, data: Keys, tokens: number]>
}

const reasoningItem = (text: string | undefined, { body, model, number }: Occasion): Item => {
  const id = `rs_${number}`
  const summary = text === undefined ? [] : [{ type: "summary_text", text }]
  const plain = { id, type: "reasoning", summary }
  const isSealed = listOf(body["include"]).includes("reasoning.encrypted_content")
  const end = isSealed ? { ...plain, encrypted_content: signatureOf(model, sealedReasoning(plain)) } : plain
  const at = { item_id: id, summary_index: 0 }
  return {
    start: { id, type: "reasoning", summary: [] },
    end,
    events: () =>
      text === undefined
        ? []
        : [
            ["response.reasoning_summary_part.added", { ...at, part: { type: "summary_text", text: "" } }, 0],
            ...piecesOf(text).map((delta) => ["response.reasoning_summary_text.delta", { ...at, delta }, 1] as const),
            ["response.reasoning_summary_text.done", { ...at, text }, 0],
            ["response.reasoning_summary_part.done", { ...at, part: { type: "summary_text", text } }, 0]
          ]
  }
}

const messageItem = (text: string, kind: "output_text" | "refusal", number: number, status: string): Item => {
  const id = `msg_${number}`
  const at = { item_id: id, content_index: 0 }
  const part = (said: string) =>
    kind === "refusal" ? { type: kind, refusal: said } : { type: kind, annotations: [], logprobs: [], text: said }
  const message = { id, type: "message", role: "assistant" }
  return {
    start: { ...message, status: "in_progress", content: [] },
    end: { ...message, status, content: [part(text)] },
    events: () => [
      ["response.content_part.added", { ...at, part: part("") }, 0],
      ...piecesOf(text).map((delta) => [`response.${kind}.delta`, { ...at, delta }, 1] as const),
      [`response.${kind}.done`, { ...at, [kind === "refusal" ? "refusal" : "text"]: text }, 0],
      ["response.content_part.done", { ...at, part: part(text) }, 0]
    ]
  }
}

const callItem = (id: string, call_id: string, name: string, json: string, status: string): Item => {
  const call = { id, type: "function_call", call_id, name }
  return {
    start: { ...call, status: "in_progress", arguments: "" },
    end: { ...call, status, arguments: json },
    events: () => [
      ...piecesOf(json).map((delta) => ["response.function_call_arguments.delta", { item_id: id, delta }, 1] as const),
      ["response.function_call_arguments.done", { item_id: id, name, arguments: json }, 0]
    ]
  }
}

const itemsOf = (answer: Answer, occasion: Occasion, status: string): ReadonlyArray<Item> => {
  const { calls = [], reasoning, refusal, text } = answer
  const { model, number } = occasion
  const thinks = reasoning !== undefined || family(model).thinksAlways
  const said = refusal ?? text
  return [
    ...(thinks ? [reasoningItem(reasoning, occasion)] : []),
    ...(said === undefined || said === ""
      ? []
      : [messageItem(said, refusal === undefined ? "output_text" : "refusal", number, status)]),
    ...calls.map((call, index) =>
      // Only the id of a call that reasoning led to is bound to it.
      callItem(
        thinks ? `fc_${number}_${index}` : `fc${number}x${index}`,
        call.id ?? `call_${number}_${index}`,
        call.name,
        argumentsOf(call),
        status
      )
    )
  ]
}

export const responsesAnswer = (answer: Answer, occasion: Occasion): Written => {
  const { created, model, number, tally } = occasion
  const finish = finishOf(answer)
  const isCut = finish === "length" || finish === "filter"
  const status = isCut ? "incomplete" : "completed"
  const items = itemsOf(answer, occasion, status)
  const usage = {
    input_tokens: tally.input,
    input_tokens_details: { cached_tokens: tally.cached },
    output_tokens: tally.output,
    output_tokens_details: { reasoning_tokens: tally.reasoning },
    total_tokens: tally.input + tally.output
  }
  const base = { id: `resp_${number}`, object: "response", created_at: created, model, error: null, store: false }
  const begun = { ...base, status: "in_progress", incomplete_details: null, output: [], usage: null }
  const whole = {
    ...base,
    status,
    incomplete_details: isCut ? { reason: finish === "length" ? "max_output_tokens" : "content_filter" } : null,
    output: items.map(({ end }) => end),
    usage
  }
  const all = (): ReadonlyArray<readonly [string, Keys, number]> => [
    ["response.created", { response: begun }, 0],
    ["response.in_progress", { response: begun }, 0],
    ...items.flatMap(({ end, events, start }, output_index) => [
      ["response.output_item.added", { output_index, item: start }, 0] as const,
      ...events().map(([name, data, tokens]) => [name, { output_index, ...data }, tokens] as const),
      ["response.output_item.done", { output_index, item: end }, 0] as const
    ]),
    [`response.${status}`, { response: whole }, 0]
  ]
  return {
    whole,
    events: () =>
      all().map(([name, data, tokens], sequence_number): ServerEvent => ({
        name,
        data: JSON.stringify({ type: name, sequence_number, ...data }),
        tokens
      }))
  }
}
