/** Questions for the newest prompt of a lane, which only the agent itself can answer. Nothing of them is stored. */
import { randomUUID } from "node:crypto"
import { Context, Deferred, Effect, Layer, PubSub, Schema, Stream } from "effect"
import { EDGE, type LaneId, type SessionId } from "#schema/Ids.ts"
import type { PromptContext } from "#schema/PromptContext.ts"
import type { SignalOf } from "#schema/Signal.ts"

/** How long an agent may take to describe a prompt, whose tokens it counts. */
export const CONTEXT_ASK_MS_MAX = 5000
/** Questions that wait at once, of all sessions and of one; a further one is refused. */
const CONTEXT_ASKS_MAX = 64
const CONTEXT_ASKS_PER_SESSION_MAX = 2

/** The agent gave no answer, or has nothing to describe. */
export class NoContext extends Schema.TaggedError<NoContext>()("NoContext", {
  kind: Schema.Literals(["BUSY", "NOT_ANSWERED", "NO_PROMPT"]),
  lane: Schema.String
}) {
  override get message() {
    switch (this.kind) {
      case "BUSY":
        return "too many requests for a prompt are already waiting"
      case "NOT_ANSWERED":
        return `the agent did not answer within ${CONTEXT_ASK_MS_MAX / 1000} s`
      case "NO_PROMPT":
        return this.lane === EDGE
          ? "edge has not called its model since the agent started"
          : `${this.lane} has no prompt: it has ended, or it has not called its model since the agent started`
    }
  }
}

interface Asked {
  readonly session_id: SessionId
  readonly signal: SignalOf<"DescribeContext">
}

/** Asks agents for their prompts. */
export class Contexts extends Context.Service<
  Contexts,
  {
    /** The newest prompt of a lane, by the agent that runs the session. */
    ask(session_id: SessionId, lane: LaneId): Effect.Effect<PromptContext, NoContext>
    /** The questions to a session's agent, for its push stream. */
    asked(session_id: SessionId): Stream.Stream<SignalOf<"DescribeContext">>
    /** The agent's answer; one that nobody waits for is dropped. */
    answer(session_id: SessionId, request_id: string, context: PromptContext | undefined): Effect.Effect<void>
  }
>()("choir/choird/Contexts") {
  static readonly layer = Layer.effect(
    Contexts,
    Effect.gen(function* () {
      const asks = yield* PubSub.sliding<Asked>(CONTEXT_ASKS_MAX)
      const waiting = new Map<string, Asked & { readonly done: Deferred.Deferred<PromptContext, NoContext> }>()

      const ask = Effect.fn("Contexts.ask")(function* (session_id: SessionId, lane: LaneId) {
        const own = [...waiting.values()].filter((asked) => asked.session_id === session_id)
        if (waiting.size >= CONTEXT_ASKS_MAX || own.length >= CONTEXT_ASKS_PER_SESSION_MAX)
          return yield* new NoContext({ kind: "BUSY", lane })
        const done = yield* Deferred.make<PromptContext, NoContext>()
        const signal = { type: "DescribeContext", request_id: randomUUID(), lane } as const
        waiting.set(signal.request_id, { session_id, signal, done })
        yield* PubSub.publish(asks, { session_id, signal })
        return yield* Deferred.await(done).pipe(
          Effect.timeoutOrElse({
            duration: CONTEXT_ASK_MS_MAX,
            orElse: () => new NoContext({ kind: "NOT_ANSWERED", lane })
          }),
          Effect.ensuring(Effect.sync(() => waiting.delete(signal.request_id)))
        )
      })

      return Contexts.of({
        ask,
        asked: (session_id) =>
          Stream.fromPubSub(asks).pipe(
            Stream.filter((asked) => asked.session_id === session_id),
            Stream.map(({ signal }) => signal)
          ),
        answer: Effect.fnUntraced(function* (session_id, request_id, context) {
          const question = waiting.get(request_id)
          if (question === undefined || question.session_id !== session_id) return
          const { done, signal } = question
          yield* context === undefined || context.lane !== signal.lane
            ? Deferred.fail(done, new NoContext({ kind: "NO_PROMPT", lane: signal.lane }))
            : Deferred.succeed(done, context)
        })
      })
    })
  )
}
