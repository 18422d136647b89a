/** choirctl chat: talk with an agent in this terminal, or send messages from a script. */
import { Effect, Option, Stdio, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { ChatNews } from "#src/choirctl/chat/ChatConnection.ts"
import { messageText } from "#src/choirctl/render/chat.ts"
import { usageError } from "#src/choirctl/terminal/failure.ts"
import { onHome } from "#src/shared/files/homeFolder.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { makeLineSplitter } from "#src/choirctl/terminal/input.ts"
import { eraseLine, withProgress } from "#src/choirctl/terminal/print.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { jsonText, safeText } from "#src/choirctl/terminal/text.ts"
import { agentId } from "#src/choirctl/commands/flags/arguments.ts"
import { agentOf } from "#src/choirctl/commands/flags/tryFlags.ts"

/** Standard input of `choirctl chat`, in one line. */
export const CHAT_LINE_BYTES_MAX = 512 * 1024
/** How long `choirctl chat --message` waits by default for the turn to end. */
const CHAT_SETTLED_MS_MAX = 3_600_000

const load = Effect.promise(() =>
  Promise.all([
    import("#src/choirctl/chat/ChatConnection.ts"),
    import("#src/choirctl/chat/chatMessages.ts"),
    import("#src/choirctl/chat/chatTerminal.ts")
  ])
)

/** The lines of standard input that are not blank. */
const pipedLines = Stream.unwrap(
  Effect.gen(function* () {
    const { stdin } = yield* Stdio.Stdio
    const splitter = makeLineSplitter(CHAT_LINE_BYTES_MAX)
    const rest = Stream.suspend(() => Stream.fromIterable(splitter.flush()))
    return stdin.pipe(
      Stream.flatMap((piece) => Stream.fromIterable(splitter.push(piece))),
      (lines) => Stream.concat(lines, rest),
      Stream.filter(({ text }) => text.trim() !== ""),
      Stream.mapEffect(({ cut, text }) =>
        cut
          ? Effect.fail(usageError(`a line is longer than ${CHAT_LINE_BYTES_MAX} bytes`, "send shorter lines"))
          : Effect.succeed(text)
      )
    )
  })
)

/** Prints every event with --json; otherwise answers and reports on standard output, and the rest on standard error. */
const show = Effect.fnUntraced(function* (news: ChatNews) {
  const { json } = yield* root
  const screen = yield* Screen
  if (json) return yield* news.type === "connection" ? Effect.void : screen.print(jsonText(news))
  if (news.type === "agent" && news.reason !== null) yield* screen.note(safeText(`${news.status}: ${news.reason}`))
  if (news.type !== "message" && news.type !== "answer") return
  yield* eraseLine
  const text = messageText(news, screen.color)
  const wanted = news.type === "answer" || news.kind === "reply" || news.kind === "report"
  yield* wanted ? screen.print(text) : screen.note(text)
})

export const chat = Command.make(
  "chat",
  {
    id: agentId.pipe(Argument.withDescription("Agent to talk with; optional if there is only one"), Argument.optional),
    message: Flag.String("message").pipe(
      Flag.withDescription("Send one message, print the answer, and exit when the turn has ended"),
      Flag.withMetavar("<text>"),
      Flag.optional
    ),
    timeout: Flag.Int("timeout").pipe(
      Flag.filter(
        (seconds) => seconds > 0,
        () => "--timeout must be more than 0 seconds"
      ),
      Flag.withDescription("Seconds to wait for the answer to a message"),
      Flag.withMetavar("<seconds>"),
      Flag.withDefault(CHAT_SETTLED_MS_MAX / 1000)
    )
  },
  Effect.fnUntraced(
    function* ({ id: given, message, timeout }) {
      const { home, json } = yield* root
      const screen = yield* Screen
      if (Option.exists(message, (text) => text.trim() === ""))
        return yield* usageError("the message is empty", 'choirctl chat --message "hello"')
      const id = yield* agentOf(
        given,
        (ids) => `: ${ids.map((one) => onHome(home, `choirctl chat ${one}`)).join(", ")}`
      )
      const [{ openChat }, { chatMessages }, { chatTerminal, openLineEditor }] = yield* load
      const connection = yield* openChat(home, id)
      if (Option.isNone(message) && screen.interactive && !json) {
        yield* Effect.scoped(
          Effect.flatMap(openLineEditor, (editor) => chatTerminal(id, connection, editor, screen.color))
        )
        return yield* screen.note("You left the chat.")
      }
      const texts = Option.match(message, { onNone: () => pipedLines, onSome: (text) => Stream.make(text) })
      return yield* chatMessages(id, connection, texts, timeout * 1000, show).pipe(withProgress(`${id} is working`))
    },
    Effect.scoped,
    onHost
  )
).pipe(Command.withExamples([{ command: 'choirctl chat agent-1 --message "what is on today?"' }]))
