/** `choirctl chat` with a person at a terminal. */
import { Effect, Stream } from "effect"
import type { ChatConnection, ChatNews } from "./ChatConnection.ts"
import type { LineEditor } from "./LineEditor.ts"
import { type ChatState, messageText, promptText } from "./render/chat.ts"
import { paint } from "./render/paint.ts"
import { safeText } from "./render/safeText.ts"

const stateAfter = (state: ChatState, news: ChatNews): ChatState => {
  switch (news.type) {
    case "connection":
      return { ...state, up: news.up }
    case "agent":
      return { ...state, status: news.status }
    case "activity":
      return { ...state, edge: news.edge, cores: news.cores }
    default:
      return state
  }
}

/** Ends when the person leaves. A message that is refused is said to be, and the conversation goes on. */
export const chatTerminal = Effect.fn("chatTerminal")(function* (
  agent_id: string,
  connection: ChatConnection,
  editor: LineEditor,
  color: boolean
) {
  let state: ChatState = { up: true, status: "running", edge: "", cores: [] }
  const dim = (text: string) => editor.above(paint(color, "dim", safeText(text)))

  const onNews = Effect.fnUntraced(function* (news: ChatNews) {
    if (news.type === "message") yield* editor.above(messageText(news, color))
    if (news.type === "agent" && news.reason !== null) yield* dim(`${agent_id} is ${news.status}: ${news.reason}`)
    const next = stateAfter(state, news)
    if (promptText(agent_id, next, color) !== promptText(agent_id, state, color))
      yield* editor.prompt(promptText(agent_id, next, color))
    state = next
  })

  const send = Effect.fnUntraced(
    function* (text: string) {
      if (text.trim() === "") return
      const sent = yield* connection.send(text)
      if (sent.type === "answer") yield* editor.above(messageText(sent, color))
      else if (sent.position > 0) yield* dim(`${sent.position} before this one`)
    },
    Effect.catchTag("CommandFailed", ({ hint, problem }) =>
      dim(hint === undefined ? `not sent: ${problem}` : `not sent: ${problem} (${hint})`)
    )
  )

  yield* editor.prompt(promptText(agent_id, state, color))
  yield* Effect.raceFirst(Stream.runForEach(Stream.fromQueue(editor.lines), send), connection.follow(onNews))
})
