import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"
import { coreLane, EDGE, JobName, Rev, SessionId } from "#schema/Ids.ts"
import type { PromptContext } from "#schema/PromptContext.ts"
import { CONTEXT_ASK_MS_MAX, Contexts } from "#src/choird/queues/Contexts.ts"

const SESSION = SessionId.make("0123456789abcdef")
const OTHER = SessionId.make("fedcba9876543210")
const context: PromptContext = { lane: EDGE, rev: Rev.make(3), model: "m", context_window: 10, tokens: 1, parts: [] }

/** The questions to a session's agent. */
const listening = Effect.fnUntraced(function* (session_id: SessionId) {
  const { asked } = yield* Contexts
  const questions = yield* Queue.unbounded<{ readonly request_id: string; readonly lane: string }>()
  yield* asked(session_id).pipe(
    Stream.runForEach((question) => Queue.offer(questions, question)),
    Effect.forkScoped({ startImmediately: true })
  )
  yield* Effect.yieldNow
  return questions
})
const asking = (lane = EDGE) =>
  Effect.forkChild(
    Effect.flatMap(Contexts, ({ ask }) => Effect.result(ask(SESSION, lane))),
    { startImmediately: true }
  )

describe("a question for a lane's prompt", () => {
  it.effect("goes to the session's agent, and is answered by no other", () =>
    Effect.gen(function* () {
      const { answer } = yield* Contexts
      const [own, others] = [yield* listening(SESSION), yield* listening(OTHER)]
      const asked = yield* asking()
      const { lane, request_id } = yield* Queue.take(own)
      assert.strictEqual(lane, EDGE)
      yield* answer(OTHER, request_id, { ...context, model: "forged" })
      yield* answer(SESSION, "another", { ...context, model: "unasked" })
      yield* answer(SESSION, request_id, context)
      assert.deepStrictEqual(
        (yield* Fiber.join(asked)).pipe((result) => result._tag),
        "Success"
      )
      assert.strictEqual(yield* Queue.size(others), 0)
    }).pipe(Effect.provide(Contexts.layer))
  )

  it.effect("ends without an answer when time is up, when the agent has none, and when another lane is described", () =>
    Effect.gen(function* () {
      const { answer } = yield* Contexts
      const questions = yield* listening(SESSION)
      const kinds: Array<string> = []
      const words: Array<string> = []
      const ended = (fiber: Effect.Success<ReturnType<typeof asking>>) =>
        Effect.map(Fiber.join(fiber), (result) => {
          if (result._tag === "Success") return
          kinds.push(result.failure.kind)
          words.push(result.failure.message)
        })
      const unanswered = yield* asking()
      const { request_id } = yield* Queue.take(questions)
      yield* TestClock.adjust(CONTEXT_ASK_MS_MAX)
      yield* ended(unanswered)
      yield* answer(SESSION, request_id, context)
      const unprompted = yield* asking()
      yield* answer(SESSION, (yield* Queue.take(questions)).request_id, undefined)
      yield* ended(unprompted)
      const wrong = yield* asking(coreLane(JobName.make("research")))
      yield* answer(SESSION, (yield* Queue.take(questions)).request_id, context)
      yield* ended(wrong)
      assert.deepStrictEqual(kinds, ["NOT_ANSWERED", "NO_PROMPT", "NO_PROMPT"])
      assert.deepStrictEqual(words.slice(1), [
        "edge has not called its model since the agent started",
        "core:research has no prompt: it has ended, or it has not called its model since the agent started"
      ])
    }).pipe(Effect.provide(Contexts.layer))
  )

  it.effect("is refused where too many of one session wait, which takes no room from others", () =>
    Effect.gen(function* () {
      const { ask } = yield* Contexts
      const all = yield* Effect.forEach(Array.from({ length: 3 }), () => asking())
      const last = yield* Fiber.join(all.at(-1) ?? (yield* asking()))
      assert.strictEqual(last._tag === "Failure" ? last.failure.kind : "", "BUSY")
      const other = yield* Effect.forkChild(Effect.result(ask(OTHER, EDGE)), { startImmediately: true })
      yield* TestClock.adjust(CONTEXT_ASK_MS_MAX)
      const result = yield* Fiber.join(other)
      assert.strictEqual(result._tag === "Failure" ? result.failure.kind : "", "NOT_ANSWERED")
    }).pipe(Effect.provide(Contexts.layer))
  )
})
