/** A completion as it is sent: in one piece, or as a stream of its words where a stream was asked for. */
import { HttpServerResponse } from "effect/http"
import type { ChatCompletion, ChatRequest } from "./ChatCompletion.ts"

type Delta = Partial<Omit<ChatCompletion["choices"][0]["message"], "tool_calls">> & {
  readonly tool_calls?: ReadonlyArray<object>
}

const wordsOf = (text: string): ReadonlyArray<string> => text.match(/\s*\S+|\s+$/gu) ?? []

const events = ({ choices, usage, ...completion }: ChatCompletion, isCounted: boolean): ReadonlyArray<string> => {
  const [{ finish_reason, message }] = choices
  const write = (value: object) =>
    `data: ${JSON.stringify({ ...completion, object: "chat.completion.chunk", ...value })}\n\n`
  const chunk = (delta: Delta, reason: string | null = null) =>
    write({ choices: [{ index: 0, delta, finish_reason: reason }] })
  return [
    chunk({ role: "assistant", content: "" }),
    ...wordsOf(message.content ?? "").map((content) => chunk({ content })),
    ...(message.tool_calls ?? []).map((call, index) => chunk({ tool_calls: [{ index, ...call }] })),
    chunk({}, finish_reason),
    ...(isCounted ? [write({ choices: [], usage })] : []),
    "data: [DONE]\n\n"
  ]
}

/** The response to a request that `completion` answers. */
export const responseOf = (
  { stream, stream_options }: ChatRequest,
  completion: ChatCompletion
): HttpServerResponse.HttpServerResponse =>
  stream === true
    ? HttpServerResponse.text(events(completion, stream_options?.include_usage === true).join(""), {
        contentType: "text/event-stream"
      })
    : HttpServerResponse.jsonUnsafe(completion)
