/** `choirctl chat` without a person: sends texts one after the other, each when the turn of the one before has ended. */
import { Deferred, Effect, Option, Stream, SubscriptionRef } from "effect"
import type { InboxId } from "#schema/Ids.ts"
import type { AgentStatus } from "#schema/AgentSummary.ts"
import type { ChatConnection, ChatNews } from "./ChatConnection.ts"
import { endsTurn } from "#src/choirctl/render/chat.ts"
import { CommandFailed, EXIT, failed, Unsuccessful } from "#src/choirctl/terminal/failure.ts"
import { makeNewest } from "./ChatConnection.ts"

/** How long `choirctl chat` waits for the first sign of the agent before it sends. */
const CHAT_GREETING_MS_MAX = 5000
/** How long an agent may be gone before `choirctl chat --message` stops waiting for its answer. */
const CHAT_GONE_MS_MAX = 15_000

interface Settled {
  /** Records that a message is settled. */
  add(id: InboxId): void
  /** Waits until a message is settled. */
  wait(id: InboxId): Effect.Effect<void>
}

/** A message may be settled before its sender learns its id. */
const makeSettled = (): Settled => {
  const done = makeNewest<InboxId>()
  const waiting = new Map<InboxId, Deferred.Deferred<void>>()
  return {
    add: (id) => {
      done.add(id)
      const waiter = waiting.get(id)
      if (waiter !== undefined) Deferred.doneUnsafe(waiter, Effect.void)
    },
    wait: (id) =>
      Effect.suspend(() => {
        if (done.has(id)) return Effect.void
        const waiter = Deferred.makeUnsafe<void>()
        waiting.set(id, waiter)
        return Deferred.await(waiter).pipe(Effect.ensuring(Effect.sync(() => waiting.delete(id))))
      })
  }
}

const isGone = (status: AgentStatus) => status === "stopped" || status === "crashed"

/** @param settled_ms_max how long one message may take. @param show prints what came. */
export const chatMessages = Effect.fn("chatMessages")(function* <E, R, R2>(
  agent_id: string,
  connection: ChatConnection,
  texts: Stream.Stream<string, E, R>,
  settled_ms_max: number,
  show: (news: ChatNews) => Effect.Effect<void, never, R2>
) {
  const settled = makeSettled()
  let exit_code: number = EXIT.done
  const failures = new Map<string, number>()
  const greeted = yield* Deferred.make<void>()
  const status = yield* SubscriptionRef.make<AgentStatus>("running")

  const onNews = Effect.fnUntraced(function* (news: ChatNews) {
    yield* show(news)
    if (news.type === "message" && news.in_reply_to !== null && news.kind !== "reply" && endsTurn(news))
      failures.set(news.in_reply_to, news.kind === "outage" ? EXIT.again : EXIT.failed)
    if (news.type === "settled") settled.add(news.inbox_id)
    if (news.type !== "agent") return
    yield* SubscriptionRef.set(status, news.status)
    yield* Deferred.succeed(greeted, undefined)
  })

  /** Fails once the agent has been gone for longer than a restart takes. */
  const gone = SubscriptionRef.changes(status).pipe(
    Stream.debounce(CHAT_GONE_MS_MAX),
    Stream.filter(isGone),
    Stream.runHead,
    Effect.flatMap((last) =>
      failed(
        "NOT_RUNNING",
        `${agent_id} is ${Option.getOrElse(last, () => "stopped")}, and did not finish the message`,
        `choirctl agent start ${agent_id}`
      )
    )
  )

  const one = Effect.fnUntraced(function* (text: string) {
    const sent = yield* connection.send(text)
    if (sent.type === "answer") return yield* show(sent)
    yield* Effect.raceFirst(settled.wait(sent.inbox_id), gone).pipe(
      Effect.timeoutOrElse({
        duration: settled_ms_max,
        orElse: () =>
          Effect.fail(
            new CommandFailed({
              type: "TIMEOUT",
              problem: `no answer within ${settled_ms_max / 1000} s; the agent is still working on it`,
              hint: `choirctl chat ${agent_id} shows the answer when it arrives`,
              exit_code: EXIT.again
            })
          )
      })
    )
    exit_code = failures.get(sent.inbox_id) ?? exit_code
    failures.clear()
  })

  // Unread messages come before the first word about the agent.
  const work = Effect.andThen(
    Effect.timeoutOption(Deferred.await(greeted), CHAT_GREETING_MS_MAX),
    Stream.runForEach(texts, one)
  )
  yield* Effect.raceFirst(work, connection.follow(onNews))
  if (exit_code !== EXIT.done) return yield* new Unsuccessful({ exit_code })
})
