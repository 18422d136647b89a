/** Answers of servers of Anthropic's Messages API. */
import { argumentsOf, type Meaning, piecesOf, WORDS } from "./Meaning.ts"
import { blockOf, errorOf, type MessagesServer, type Recording } from "./Server.ts"

type Keys = Readonly<Record<string, unknown>>

const countsOf = ({ usage: { cached, input, output } }: Meaning): Keys => ({
  input_tokens: input - cached,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: cached,
  output_tokens: output
})

const SIGNATURE = "c2lnbmF0dXJl"

/** The blocks of a message; those of a call have the text of their input beside them. */
const contentOf = (
  server: MessagesServer,
  meaning: Meaning
): ReadonlyArray<readonly [block: Keys, pieces: ReadonlyArray<Keys>]> => {
  const { calls = [], text = "", thoughts } = meaning
  const signature = server.thinking === "signed" ? SIGNATURE : ""
  return [
    ...(thoughts === undefined
      ? []
      : [
          [
            { type: "thinking", thinking: thoughts, signature },
            [
              ...piecesOf(thoughts).map((thinking) => ({ type: "thinking_delta", thinking })),
              { type: "signature_delta", signature }
            ]
          ] as const
        ]),
    ...(text === ""
      ? []
      : [[{ type: "text", text }, piecesOf(text).map((piece) => ({ type: "text_delta", text: piece }))] as const]),
    ...calls.map(({ input, name }, index) => {
      const pieces = piecesOf(argumentsOf(meaning, index)).map((partial_json) => ({
        type: "input_json_delta",
        partial_json
      }))
      return [{ type: "tool_use", id: `toolu_${index}`, name, input }, pieces] as const
    })
  ]
}

/** A block as it begins. */
const begunBlock = ({ start_input }: MessagesServer, block: Keys): Keys => {
  if (block["type"] === "text") return { ...block, text: "" }
  if (block["type"] === "thinking") return { ...block, thinking: "", signature: "" }
  return start_input ? block : { ...block, input: {} }
}

const NULLS = { text: null, thinking: null, partial_json: null, signature: null }

const eventsOf = (server: MessagesServer, meaning: Meaning): ReadonlyArray<Keys> => {
  const counts = countsOf(meaning)
  const nulls = server.nulls === true ? NULLS : {}
  const start = { id: "m", type: "message", role: "assistant", content: [], ...server.message, stop_reason: null }
  return [
    {
      type: "message_start",
      message: { ...start, usage: server.usage === "start" ? counts : { ...counts, output_tokens: 1 } }
    },
    ...contentOf(server, meaning).flatMap(([block, pieces], index) => {
      const isBegun = server.start_input && block["type"] === "tool_use" && meaning.cut_call === undefined
      const deltas = isBegun ? [] : pieces
      return [
        { type: "content_block_start", index, content_block: begunBlock(server, block) },
        ...(server.pings && index === 0 ? [{ type: "ping" }] : []),
        ...deltas.map((delta) => ({ type: "content_block_delta", index, delta: { ...nulls, ...delta } })),
        { type: "content_block_stop", index }
      ]
    }),
    {
      type: "message_delta",
      delta: { stop_reason: server.reasons[meaning.end], stop_sequence: null },
      ...(server.usage === "start" ? {} : { usage: { output_tokens: meaning.usage.output } })
    },
    { type: "message_stop", ...server.stop }
  ]
}

export const messagesRecording = (server: MessagesServer, meaning: Meaning): Recording => {
  const block = (event: Keys) => blockOf(server, event, server.names ? String(event["type"]) : undefined)
  const events = eventsOf(server, meaning)
  const error = errorOf(server, WORDS)
  if (meaning.fails === "cut") return { whole: undefined, blocks: events.slice(0, 4).map(block) }
  if (meaning.fails === "error")
    return { whole: error, blocks: [...events.slice(0, 4).map(block), blockOf(server, error, "error")] }
  const isCut = meaning.cut_call !== undefined
  const whole = {
    type: "message",
    role: "assistant",
    ...server.message,
    content: contentOf(server, meaning).map(([part]) => part),
    stop_reason: server.reasons[meaning.end],
    usage: countsOf(meaning)
  }
  // A call that is cut is whole JSON in an answer in one piece, so that none is recorded.
  return {
    whole: isCut ? undefined : whole,
    blocks: [...events.map(block), ...(server.done ? [blockOf(server, "[DONE]")] : [])]
  }
}
