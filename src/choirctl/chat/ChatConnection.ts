/**
 * A console client's end of the chat (docs/protocol.md, Console): comes back when choird restarts, shows each message once, and says so
 * to choird after it was shown.
 */
import { randomUUID } from "node:crypto"
import { Effect, Schedule, Stream } from "effect"
import type { AgentId, InboxId } from "#schema/Ids.ts"
import type { ChatAnswer, ChatEvent } from "#schema/ChatApi.ts"
import { type CommandFailed, EXIT } from "#src/choirctl/terminal/failure.ts"
import { connect, requestFailure } from "#src/choirctl/client/OperatorClient.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** Messages that `choirctl chat` remembers to have shown, so that none is shown twice. */
const CHAT_SHOWN_MAX = 10_000
/** The pause before `choirctl chat` connects again. */
const CHAT_RECONNECT_MS = 250
/** How long `choirctl chat` tries to reach a choird that was there before. */
const CHAT_RECONNECT_MS_MAX = 120_000

/** A set of the newest CHAT_SHOWN_MAX values. */
export const makeNewest = <A>() => {
  const values = new BoundedMap<A, true>(CHAT_SHOWN_MAX)
  return {
    has: (value: A): boolean => values.has(value),
    add: (value: A): void => values.setInPlace(value, true)
  }
}

/** News for a client: the events of choird, its answers to commands, and whether choird is reachable. */
export type ChatNews =
  | ChatEvent
  | ({ readonly type: "answer" } & ChatAnswer)
  | { readonly type: "connection"; readonly up: boolean }

/** A message that waits for edge, behind `position` others, or the answer of choird to a command of the chat. */
export type Sent =
  | { readonly type: "message"; readonly inbox_id: InboxId; readonly position: number }
  | ({ readonly type: "answer" } & ChatAnswer)

export interface ChatConnection {
  /** Passes on news in order, until it is interrupted or choird stays unreachable. Each message comes once. */
  follow<R>(onNews: (news: ChatNews) => Effect.Effect<void, never, R>): Effect.Effect<never, CommandFailed, R>
  /** Sends a text once, also across a restart of choird. */
  send(text: string): Effect.Effect<Sent, CommandFailed>
}

/** Whether it helps to try again: choird is gone for a while, and has refused nothing. */
const passes = ({ exit_code, type }: CommandFailed) => exit_code === EXIT.unreachable || type === "CONNECTION_LOST"

type Message = Extract<ChatEvent, { readonly type: "message" }>

/** The newest CHAT_SHOWN_MAX messages. The outbox knows a message by its source and part (docs/protocol.md, Inbox and outbox). */
const makeShown = () => {
  const shown = makeNewest<string>()
  return ({ part, source }: Message): boolean => {
    const key = `${source} ${part}`
    if (shown.has(key)) return true
    shown.add(key)
    return false
  }
}

export const openChat = Effect.fn("openChat")(function* (home: string, agent_id: AgentId) {
  const chat = yield* connect(home, "chat")
  const params = { id: agent_id }
  const wasShown = makeShown()
  const failure = requestFailure(home)

  /** Without the acknowledgement choird sends the message again, and this client knows it. */
  const acknowledge = ({ outbox_id }: Message) =>
    Effect.ignore(chat.ack({ params, payload: { outbox_ids: [outbox_id] } }))

  const deliver = <R>(event: ChatEvent, onNews: (news: ChatNews) => Effect.Effect<void, never, R>) =>
    event.type !== "message"
      ? onNews(event)
      : Effect.suspend(() => (wasShown(event) ? acknowledge(event) : Effect.andThen(onNews(event), acknowledge(event))))

  const follow: ChatConnection["follow"] = Effect.fnUntraced(function* (onNews) {
    let lost_ms: number | undefined
    let met = false
    const arrived = Effect.fnUntraced(function* (event: ChatEvent) {
      if (met && lost_ms !== undefined) yield* onNews({ type: "connection", up: true })
      met = true
      lost_ms = undefined
      yield* deliver(event, onNews)
    })
    const once = Stream.unwrap(chat.stream({ params })).pipe(
      Stream.mapError(failure),
      Stream.runForEach(({ data }) => arrived(data))
    )
    for (;;) {
      const exit = yield* Effect.result(once)
      const now_ms = yield* monotonicMs
      if (exit._tag === "Failure" && (!met || !passes(exit.failure))) return yield* exit.failure
      if (lost_ms === undefined) yield* onNews({ type: "connection", up: false })
      lost_ms ??= now_ms
      if (exit._tag === "Failure" && now_ms - lost_ms > CHAT_RECONNECT_MS_MAX) return yield* exit.failure
      yield* Effect.sleep(CHAT_RECONNECT_MS)
    }
  })

  const send: ChatConnection["send"] = Effect.fnUntraced(function* (text) {
    // The id makes a repeated request the same message, so one whose answer was lost is asked again.
    const request = { params, payload: { client_id: randomUUID(), text } }
    const sent = Effect.gen(function* (): Effect.fn.Return<Sent, unknown> {
      // Only choird knows its commands, and the lists that a number chooses from; a text that cannot be one spares the question.
      const { answer } = /^\s*(?:[/\u{ff0f}\u{2215}]|[#\u{ff03}]?\p{Nd}+[.\u{3002}\u{ff0e}]?\s*$)/u.test(text)
        ? yield* chat.command(request)
        : { answer: null }
      if (answer !== null) return { type: "answer", ...answer }
      return { type: "message", ...(yield* chat.send(request)) }
    })
    return yield* sent.pipe(
      Effect.mapError(failure),
      Effect.retry({
        while: passes,
        schedule: Schedule.spaced(CHAT_RECONNECT_MS).pipe(
          Schedule.upTo({ times: CHAT_RECONNECT_MS_MAX / CHAT_RECONNECT_MS })
        )
      })
    )
  })

  return { follow, send } satisfies ChatConnection
})
