/** Answers of servers of OpenAI's Responses API. */
import { argumentsOf, type Meaning, piecesOf, WORDS } from "./Meaning.ts"
import { blockOf, errorOf, type Recording, type ResponsesServer } from "./Server.ts"

type Keys = Readonly<Record<string, unknown>>

const usageOf = ({ usage: { cached, input, output, thought } }: Meaning): Keys => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: cached },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: thought },
  total_tokens: input + output
})

const itemsOf = (server: ResponsesServer, meaning: Meaning): ReadonlyArray<Keys> => {
  const { calls = [], refusal, text = "", thoughts } = meaning
  const parts = [
    ...(text === "" ? [] : [{ type: server.parts, text, annotations: [] }]),
    ...(refusal === undefined ? [] : [{ type: "refusal", refusal }])
  ]
  return [
    ...(thoughts === undefined
      ? []
      : [
          {
            type: "reasoning",
            id: "rs_1",
            summary: [{ type: "summary_text", text: thoughts }],
            ...(server.encrypted ? { encrypted_content: "Z0FBQUFB" } : {})
          }
        ]),
    ...(parts.length === 0
      ? []
      : [{ type: "message", id: "msg_1", role: "assistant", status: "completed", content: parts }]),
    ...calls.map(({ name }, index) => ({
      type: "function_call",
      id: `fc_${index}`,
      call_id: `call_${index}`,
      name,
      arguments: argumentsOf(meaning, index),
      status: "completed"
    }))
  ]
}

const statusOf = ({ reasons }: ResponsesServer, { end }: Meaning): Keys =>
  end === "length" || end === "filter"
    ? { status: "incomplete", incomplete_details: { reason: reasons[end] } }
    : { status: "completed", incomplete_details: null, error: null }

/** The arguments of a call, which some servers write apart from its item. */
const argumentEvents = (server: ResponsesServer, item: Keys, output_index: number): ReadonlyArray<Keys> => {
  const text = String(item["arguments"])
  const of = { item_id: item["id"], output_index }
  const pieces = piecesOf(text).map((delta) => ({ type: "response.function_call_arguments.delta", ...of, delta }))
  return [...(server.pieces ? pieces : []), { type: "response.function_call_arguments.done", ...of, arguments: text }]
}

const textEvents = (item: Keys, output_index: number): ReadonlyArray<Keys> =>
  (item["content"] as ReadonlyArray<Keys>).flatMap((part, content_index) => {
    const of = { item_id: item["id"], output_index, content_index }
    if (part["type"] === "refusal")
      return piecesOf(String(part["refusal"])).map((delta) => ({ type: "response.refusal.delta", ...of, delta }))
    const text = String(part["text"])
    return [
      ...piecesOf(text).map((delta) => ({ type: "response.output_text.delta", ...of, delta })),
      { type: "response.output_text.done", ...of, text }
    ]
  })

const itemEvents = (server: ResponsesServer, item: Keys, output_index: number): ReadonlyArray<Keys> => {
  const isCall = item["type"] === "function_call"
  const bare = isCall
    ? { ...item, arguments: server.pieces ? "" : "{}" }
    : item["type"] === "message"
      ? { ...item, content: [] }
      : item
  const added = { type: "response.output_item.added", output_index, item: bare }
  const done = { type: "response.output_item.done", output_index, item: isCall && !server.pieces ? bare : item }
  const inside = isCall
    ? argumentEvents(server, item, output_index)
    : item["type"] === "message"
      ? textEvents(item, output_index)
      : [{ type: "response.reasoning_summary_text.delta", output_index, delta: "…" }]
  return server.items || isCall ? [added, ...inside, ...(server.items ? [done] : [])] : inside
}

export const responsesRecording = (server: ResponsesServer, meaning: Meaning): Recording => {
  const output = itemsOf(server, meaning)
  const block = (event: Keys) => blockOf(server, event, server.names ? String(event["type"]) : undefined)
  const whole = { ...server.envelope, ...statusOf(server, meaning), output, usage: usageOf(meaning) }
  const begun = [
    { type: "response.created", response: { ...server.envelope, status: "in_progress", output: [] } },
    { type: "response.in_progress", response: { ...server.envelope, status: "in_progress", output: [] } },
    ...output.flatMap((item, index) => itemEvents(server, item, index))
  ]
  const error = errorOf(server, WORDS)
  if (meaning.fails === "cut") return { whole: undefined, blocks: begun.slice(0, 4).map(block) }
  if (meaning.fails === "error") {
    const failed = { ...server.envelope, status: "failed", output: [], error: { code: "server_error", message: WORDS } }
    return {
      whole: failed,
      blocks: [...begun.slice(0, 4).map(block), blockOf(server, error, server.names ? "error" : undefined)]
    }
  }
  const type = meaning.end === "length" || meaning.end === "filter" ? "response.incomplete" : "response.completed"
  const listed = server.pieces
    ? output
    : output.map((item) => (item["type"] === "function_call" ? { ...item, arguments: "{}" } : item))
  const end = { type, response: { ...whole, output: server.output === "at end" ? listed : [] } }
  return { whole, blocks: [...begun, end].map(block).concat(server.done ? [blockOf(server, "[DONE]")] : []) }
}
