/** `choirctl chat` with a person at a terminal, and the line that they edit. */
import { clearScreenDown, createInterface, cursorTo, moveCursor } from "node:readline"
import { type Cause, Deferred, Effect, Queue, Stream } from "effect"
import type { InboxId } from "#schema/Ids.ts"
import { logDeath } from "#src/shared/background.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import {
  type ChatState,
  endsTurn,
  KEYS_HELP,
  laneWords,
  messageText,
  promptText,
  questionText
} from "#src/choirctl/render/chat.ts"
import { paint, safeText } from "#src/choirctl/terminal/text.ts"
import { type ChatConnection, type ChatNews, makeNewest } from "./ChatConnection.ts"
import { finish, fitted, grow, growing, type GrowingAnswer } from "./growingAnswer.ts"
import { makePastedLines, MARK_PASTES, PASTE_CHARS_MAX, UNMARK_PASTES } from "./pastedLines.ts"

type Draft = Extract<ChatNews, { readonly type: "draft" }>
type Message = Extract<ChatNews, { readonly type: "message" }>

/** Lines that are typed ahead in `choirctl chat`. */
const CHAT_LINES_MAX = 64
/** Between two looks at how long something has been going on. */
const TICK_MS = 1000

interface LineEditor {
  /** The lines as they are entered; done when the person leaves with Ctrl-D. */
  readonly lines: Queue.Dequeue<string, Cause.Done>
  /** A Ctrl-C each. */
  readonly interrupts: Queue.Dequeue<void>
  /** Prints lines above what is being typed. */
  above(text: string): Effect.Effect<void>
  /** Shows a line that grows, between what is printed and the prompt; the empty text shows none. */
  growing(line: string): Effect.Effect<void>
  /** Changes the prompt, and leaves what is being typed as it is. */
  prompt(text: string): Effect.Effect<void>
}

/** Takes the process's terminal until the scope closes. Of lines typed ahead, those beyond CHAT_LINES_MAX are not taken. */
export const openLineEditor = Effect.gen(function* () {
  const lines = yield* Queue.dropping<string, Cause.Done>(CHAT_LINES_MAX)
  const interrupts = yield* Queue.sliding<void>(1)
  const editor = yield* Effect.acquireRelease(
    Effect.sync(() => createInterface({ input: process.stdin, output: process.stdout })),
    (editor) => Effect.sync(() => editor.close())
  )
  let line = { text: "", rows: 0 }
  const pasted = makePastedLines()
  const onKey = (_: unknown, key: { readonly name?: string } | undefined) => {
    if (key?.name === "paste-start" || key?.name === "paste-end") pasted.mark(key.name === "paste-start")
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      process.stdin.on("keypress", onKey)
      process.stdout.write(MARK_PASTES)
    }),
    () =>
      Effect.sync(() => {
        process.stdin.off("keypress", onKey)
        process.stdout.write(UNMARK_PASTES)
      })
  )
  editor.on("line", (entered) => {
    // What stood above the entered line stays there.
    line = { text: "", rows: 0 }
    const text = pasted.entered(entered)
    if (text === undefined) return
    if (text === null) process.stdout.write(`not sent: the pasted text is longer than ${PASTE_CHARS_MAX} characters\n`)
    else Queue.offerUnsafe(lines, text)
    editor.prompt()
  })
  editor.on("SIGINT", () => {
    pasted.clear()
    Queue.offerUnsafe(interrupts, undefined)
  })
  editor.once("close", () => Queue.endUnsafe(lines))
  const erase = () => {
    moveCursor(process.stdout, 0, -editor.getCursorPos().rows - line.rows)
    cursorTo(process.stdout, 0)
    clearScreenDown(process.stdout)
  }
  const draw = () => {
    if (line.rows > 0) process.stdout.write(`${line.text}\n`)
    editor.prompt(true)
  }
  yield* Effect.addFinalizer(() => Effect.sync(() => void process.stdout.write("\n")))
  return {
    lines,
    interrupts,
    above: (text) =>
      Effect.sync(() => {
        erase()
        process.stdout.write(`${text}\n`)
        draw()
      }),
    growing: (text) =>
      Effect.sync(() => {
        erase()
        line = fitted(text, process.stdout.columns)
        draw()
      }),
    prompt: (text) =>
      Effect.sync(() => {
        erase()
        editor.setPrompt(text)
        draw()
      })
  } satisfies LineEditor
})

const stateAfter = (state: ChatState, news: ChatNews): ChatState => {
  switch (news.type) {
    case "connection":
      return { ...state, up: news.up }
    case "agent":
      return { ...state, status: news.status }
    case "activity":
      return {
        ...state,
        edge: news.edge,
        waits: news.waits ?? false,
        reporting: news.reporting ?? false,
        tool: news.tool,
        cores: news.cores,
        reports: news.reports ?? []
      }
    default:
      return state
  }
}

/** Edge's states in which no turn runs; before the first news nothing is known. */
const IDLE: ReadonlySet<string> = new Set(["", "EDGE_IDLE", "EDGE_TERMINATED"])

/** Commands of this terminal alone. */
const LEAVING: ReadonlySet<string> = new Set(["/quit", "/exit"])

/** Messages sent here. One without a reply counts as a turn before choird reports the turn. */
const makeOwnMessages = () => {
  const unanswered = new Set<InboxId>()
  const sent_here = makeNewest<InboxId>()
  // A reply may come before the answer that says which message it is for.
  const early = new Set<InboxId>()
  let sending = 0
  return {
    areOpen: () => sending + unanswered.size > 0,
    /** Whether a message was sent here; one whose answer is on its way counts as well. */
    include: (id: InboxId) => sending > 0 || sent_here.has(id),
    answered: (id: InboxId) => {
      if (!unanswered.delete(id) && sending > 0) early.add(id)
    },
    send: (request: ReturnType<ChatConnection["send"]>) =>
      Effect.suspend(() => {
        sending++
        return request.pipe(
          Effect.tap((sent) =>
            Effect.sync(() => {
              if (sent.type !== "message") return
              sent_here.add(sent.inbox_id)
              if (!early.has(sent.inbox_id)) unanswered.add(sent.inbox_id)
            })
          ),
          Effect.ensuring(
            Effect.sync(() => {
              sending--
              if (sending === 0) early.clear()
            })
          )
        )
      })
  }
}

/** The answers and reports as they grow, and the messages that take their place. */
const makeAnswers = (editor: LineEditor, color: boolean) => {
  let writing: GrowingAnswer | undefined
  return {
    draft: Effect.fnUntraced(function* (draft: Draft) {
      const shown = grow(writing, draft, color)
      writing = shown.writing
      if (shown.lines !== undefined) {
        yield* editor.growing("")
        yield* editor.above(shown.lines)
      }
      yield* editor.growing(writing === undefined ? "" : growing(writing, color))
    }),
    message: Effect.fnUntraced(function* (news: Message) {
      const finished = finish(writing, news)
      if (endsTurn(news) || (news.kind === "report" && writing?.reporting === true)) {
        writing = finished?.writing
        yield* editor.growing("")
      }
      if (finished === undefined) return yield* editor.above(messageText(news, color))
      if (finished.lines !== undefined) yield* editor.above(finished.lines)
    })
  }
}

const AT_FIRST: ChatState = {
  up: true,
  status: "running",
  edge: "",
  waits: false,
  reporting: false,
  cores: [],
  reports: []
}

/** The state of the agent, and the prompt that shows it with the time that something takes. */
const makePrompt = (agent_id: string, editor: LineEditor, color: boolean) => {
  let state = AT_FIRST
  let since_ms = 0
  /** Draws the prompt where its words have changed. */
  const show = Effect.fnUntraced(function* (next: ChatState) {
    const text = promptText(agent_id, next, color)
    const changes = text !== promptText(agent_id, state, color)
    state = next
    if (changes) yield* editor.prompt(text)
  })
  return {
    state: () => state,
    first: Effect.suspend(() => editor.prompt(promptText(agent_id, state, color))),
    after: Effect.fnUntraced(function* (news: ChatNews) {
      const next = stateAfter(state, news)
      const goesOn = laneWords(next) === laneWords(state)
      if (!goesOn) since_ms = yield* monotonicMs
      yield* show({ ...next, seconds: goesOn ? (state.seconds ?? 0) : 0 })
    }),
    clock: Effect.forever(
      Effect.gen(function* () {
        yield* Effect.sleep(TICK_MS)
        if (laneWords(state) === undefined) return
        yield* show({ ...state, seconds: Math.floor(((yield* monotonicMs) - since_ms) / 1000) })
      })
    )
  }
}

/** The reasons of the agent's status, where they are new, and that it runs again. An agent that runs says by its messages what is wrong. */
const makeReasons = (agent_id: string) => {
  let newest: string | null = null
  /** Whether the person knows that the agent does not run, and why. */
  let isAway = false
  return ({ reason, status }: Extract<ChatNews, { readonly type: "agent" }>): string | undefined => {
    const isNews = status !== "running" && reason !== newest && reason !== null
    const isBack = isAway && status === "running"
    newest = reason
    isAway = status !== "running" && (isAway || isNews)
    if (isNews) return `${agent_id} is ${status}: ${reason}`
    return isBack ? `${agent_id} is running again` : undefined
  }
}

/**
 * Ends when the person leaves: with Ctrl-D, /quit, or Ctrl-C where nothing runs. Ctrl-C during a turn stops the turn, and leaves when it is
 * pressed once more before the turn has ended; while jobs run it names them first. A refused message is reported, and the conversation continues.
 */
export const chatTerminal = Effect.fn("chatTerminal")(function* (
  agent_id: string,
  connection: ChatConnection,
  editor: LineEditor,
  color: boolean
) {
  const own = makeOwnMessages()
  const answers = makeAnswers(editor, color)
  const { after, clock, first, state } = makePrompt(agent_id, editor, color)
  let stopping = false
  let warned = false
  const reasonIn = makeReasons(agent_id)
  const left = yield* Deferred.make<void>()
  const dim = (text: string) => editor.above(paint(color, "dim", safeText(text)))
  const isBusy = () => own.areOpen() || state().reporting || !IDLE.has(state().edge)

  const onNews = Effect.fnUntraced(function* (news: ChatNews) {
    if (news.type === "draft") {
      if (own.include(news.in_reply_to)) yield* answers.draft(news)
      return
    }
    if (news.type === "message") {
      const question = news.in_reply_to === null || own.include(news.in_reply_to) ? "" : questionText(news)
      if (question !== "") yield* dim(question)
      yield* answers.message(news)
    }
    const ends = news.type === "message" && endsTurn(news)
    if (ends && news.in_reply_to !== null) own.answered(news.in_reply_to)
    const reason = news.type === "agent" ? reasonIn(news) : undefined
    if (reason !== undefined) yield* dim(reason)
    yield* after(news)
    if (!isBusy() || ends) stopping = false
  })

  const send = Effect.fnUntraced(
    function* (text: string) {
      if (text.trim() === "") return
      warned = false
      if (LEAVING.has(text.trim())) return yield* Effect.asVoid(Deferred.succeed(left, undefined))
      const sent = yield* own.send(connection.send(text))
      if (sent.type === "answer") yield* editor.above(messageText(sent, color))
      if (text.trim() === "/help") yield* dim(KEYS_HELP)
      if (sent.type === "message" && sent.position > 0) yield* dim(`${sent.position} queued before this one`)
    },
    Effect.catchTag("CommandFailed", ({ hint, problem }) =>
      dim(hint === undefined ? `not sent: ${problem}` : `not sent: ${problem} (${hint})`)
    )
  )

  /** Ends with the Ctrl-C that leaves. The order is on its way while the next one is waited for. */
  const interrupted = Effect.gen(function* () {
    for (;;) {
      yield* Queue.take(editor.interrupts)
      const { cores } = state()
      if (stopping || (!isBusy() && (warned || cores.length === 0))) return
      if (isBusy()) {
        stopping = true
        yield* dim("stopping the turn; press Ctrl-C again to leave the chat")
        yield* Effect.forkChild(logDeath("the order to stop")(send("/stop")))
      } else {
        warned = true
        yield* dim(`still running: ${cores.join(", ")}; press Ctrl-C again to leave the chat`)
      }
    }
  })

  yield* first
  const lines = Stream.runForEach(Stream.fromQueue(editor.lines), send)
  yield* Effect.raceAllFirst([lines, interrupted, Deferred.await(left), connection.follow(onNews), clock])
})
