/** The texts of a stream: answers as events, what keeps a connection open, and the error with which a stream ends that began well. */
import type { Dialect } from "#demo/dialects/Dialect.ts"
import type { ServerEvent } from "./Answer.ts"
import { chatAnswer } from "./chatAnswer.ts"
import { messagesAnswer } from "./messagesAnswer.ts"
import { responsesAnswer } from "./responsesAnswer.ts"

/** The writers of answers by their APIs. */
export const writerOf = { chat: chatAnswer, responses: responsesAnswer, messages: messagesAnswer }

export const sse = ({ data, name }: Pick<ServerEvent, "data" | "name">): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${data}\n\n`

/** https://openrouter.ai/docs/api/reference/streaming: comments keep the connection open; Anthropic has an event for it. */
export const keepAlive = ({ api, name }: Dialect): string =>
  api === "messages"
    ? sse({ name: "ping", data: '{"type": "ping"}' })
    : name === "openrouter"
      ? ": OPENROUTER PROCESSING\n\n"
      : ": keep-alive\n\n"

/** The error with which a stream ends that began well. */
export const streamError = (dialect: Dialect): string => {
  const failure = { status: 500, message: "The server had an error while processing your request." }
  switch (dialect.name) {
    case "anthropic":
      return sse({
        name: "error",
        data: '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}'
      })
    case "responses":
      return sse({
        name: "error",
        data: JSON.stringify({ type: "error", code: "server_error", message: failure.message, param: null })
      })
    case "openrouter":
      return sse({
        data: JSON.stringify({
          id: "gen-1",
          object: "chat.completion.chunk",
          error: { code: "server_error", message: "Provider disconnected unexpectedly" },
          choices: [{ index: 0, delta: { content: "" }, finish_reason: "error" }]
        })
      })
    default:
      return sse({ data: JSON.stringify(dialect.errorBody(failure)) })
  }
}
