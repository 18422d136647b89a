/** A person at the terminal, by what the line editor and the connection hand over. */
import { assert, describe, it } from "@effect/vitest"
import { type Cause, Deferred, Effect, Fiber, Queue } from "effect"
import { TestClock } from "effect/testing"
import { InboxId, JobName } from "#schema/Ids.ts"
import type { ChatConnection, ChatNews, Sent } from "#src/choirctl/chat/ChatConnection.ts"
import { chatTerminal } from "#src/choirctl/chat/chatTerminal.ts"

const one = InboxId.make("1")
const activity = (edge: string) => ({ type: "activity", edge, cores: [] }) as const
const reply: ChatNews = {
  type: "message",
  outbox_id: "1",
  source: "event:1",
  part: 0,
  kind: "reply",
  text: "Stopped.",
  in_reply_to: one
}

/** A terminal whose person and whose choird are the test. */
const open = Effect.gen(function* () {
  const lines = yield* Queue.unbounded<string, Cause.Done>()
  const interrupts = yield* Queue.unbounded<void>()
  const sent = yield* Queue.unbounded<string>()
  const shown = yield* Queue.unbounded<string>()
  const news = yield* Queue.unbounded<ChatNews>()
  const prompts = yield* Queue.unbounded<string>()
  const grown = yield* Queue.unbounded<string>()
  const answer = { type: "answer", kind: "notice", text: "Stopping." } as const
  const connection: ChatConnection = {
    follow: (onNews) => Effect.forever(Effect.flatMap(Queue.take(news), onNews)),
    send: (text) =>
      Effect.as(
        Queue.offer(sent, text),
        text.startsWith("/") ? answer : ({ type: "message", inbox_id: one, position: 0 } satisfies Sent)
      )
  }
  const editor = {
    lines,
    interrupts,
    above: (text: string) => Effect.asVoid(Queue.offer(shown, text)),
    growing: (line: string) => Effect.asVoid(Queue.offer(grown, line)),
    prompt: (text: string) => Effect.asVoid(Queue.offer(prompts, text))
  }
  const left = yield* Deferred.make<void>()
  const fiber = yield* Effect.forkChild(
    chatTerminal("ada", connection, editor, false).pipe(Effect.andThen(Deferred.succeed(left, undefined)))
  )
  yield* Queue.take(prompts)
  return {
    ctrlC: Queue.offer(interrupts, undefined),
    type: (text: string) => Queue.offer(lines, text),
    leave: Queue.end(lines),
    /** Hands over news and waits until the prompt shows what they changed. */
    tell: (told: ChatNews, changes = true) =>
      Effect.andThen(Queue.offer(news, told), changes ? Queue.take(prompts) : Effect.succeed("")),
    sent: Queue.take(sent),
    shown: Queue.take(shown),
    grown: Queue.take(grown),
    prompt: Queue.take(prompts),
    hasLeft: Effect.sync(() => Deferred.isDoneUnsafe(left)),
    left: Fiber.join(fiber)
  }
})

describe("choirctl chat at a terminal", () => {
  it.effect("leaves with /quit, and explains the keys beside choird's answer to /help", () =>
    Effect.gen(function* () {
      const chat = yield* open
      yield* chat.type("/help")
      assert.strictEqual(yield* chat.sent, "/help")
      assert.match(yield* chat.shown, /Stopping\./u)
      assert.match(yield* chat.shown, /Ctrl-D or \/quit leaves the chat/u)
      yield* chat.type("/quit")
      yield* chat.left
    })
  )

  it.effect("says why the agent is paused, and that it continues", () =>
    Effect.gen(function* () {
      const chat = yield* open
      yield* chat.tell({ type: "agent", status: "paused", reason: "something is being forgotten" })
      assert.strictEqual(yield* chat.shown, "ada is paused: something is being forgotten")
      yield* chat.tell({ type: "agent", status: "starting", reason: null })
      yield* chat.tell({ type: "agent", status: "running", reason: null })
      assert.strictEqual(yield* chat.shown, "ada is running again")
      // Only after words that it was not.
      yield* chat.tell({ type: "agent", status: "starting", reason: null })
      yield* chat.tell({ type: "agent", status: "running", reason: null })
      yield* chat.tell(reply, false)
      assert.strictEqual(yield* chat.shown, "Stopped.")
    })
  )

  it.effect("shows the question above the answer to what was not sent here, once and on one line", () =>
    Effect.gen(function* () {
      const chat = yield* open
      const elsewhere: ChatNews = { ...reply, in_reply_to: InboxId.make("7"), question: "what\nis on\u001b[2J?" }
      yield* chat.tell(elsewhere, false)
      const question = yield* chat.shown
      assert.match(question, /^you asked: what.is on.*\?$/u)
      assert.notInclude(question, "\u001b")
      assert.strictEqual(yield* chat.shown, "Stopped.")
      yield* chat.tell({ ...elsewhere, part: 1, text: "more" }, false)
      assert.strictEqual(yield* chat.shown, "more")
      yield* chat.type("hello")
      assert.strictEqual(yield* chat.sent, "hello")
      yield* chat.tell({ ...reply, question: "hello" }, false)
      assert.strictEqual(yield* chat.shown, "Stopped.")
    })
  )

  it.effect("shows an answer while it is written, and prints each of its lines once", () =>
    Effect.gen(function* () {
      const chat = yield* open
      yield* chat.type("hello")
      yield* chat.sent
      const draft = (text: string): ChatNews => ({ type: "draft", in_reply_to: one, text })
      yield* chat.tell(draft("First"), false)
      assert.strictEqual(yield* chat.grown, "First")
      yield* chat.tell(draft("First line.\nSec"), false)
      assert.deepStrictEqual([yield* chat.grown, yield* chat.shown, yield* chat.grown], ["", "First line.", "Sec"])
      yield* chat.tell({ ...reply, text: "First line.\nSecond line." }, false)
      assert.deepStrictEqual([yield* chat.grown, yield* chat.shown], ["", "Second line."])
    })
  )

  it.effect("shows a report while it is written, and says meanwhile that the agent reports", () =>
    Effect.gen(function* () {
      const chat = yield* open
      yield* chat.type("dig")
      yield* chat.sent
      yield* chat.tell({ ...reply, text: "On it." }, false)
      assert.deepStrictEqual([yield* chat.grown, yield* chat.shown], ["", "On it."])
      assert.strictEqual(yield* chat.tell({ ...activity("EDGE_IDLE"), reporting: true }), "ada (reporting)> ")
      const draft = (text: string): ChatNews => ({ type: "draft", in_reply_to: one, text, reporting: true })
      yield* chat.tell(draft("It is"), false)
      assert.strictEqual(yield* chat.grown, "report: It is")
      yield* chat.tell(draft("It is done.\nTwo"), false)
      assert.deepStrictEqual(
        [yield* chat.grown, yield* chat.shown, yield* chat.grown],
        ["", "report: It is done.", "Two"]
      )
      yield* chat.tell({ ...reply, kind: "report", text: "It is done.\nTwo files." }, false)
      assert.deepStrictEqual([yield* chat.grown, yield* chat.shown], ["", "Two files."])
      yield* chat.ctrlC
      assert.match(yield* chat.shown, /stopping the turn/u)
      assert.strictEqual(yield* chat.sent, "/stop")
    })
  )

  it.effect("says which tool runs, and for how long", () =>
    Effect.gen(function* () {
      const chat = yield* open
      const tool = { ...activity("EDGE_WAITING_TOOL"), tool: "choir-exec" }
      assert.strictEqual(yield* chat.tell(tool), "ada (running exec)> ")
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* chat.prompt, "ada (running exec 5 s)> ")
      yield* TestClock.adjust("56 seconds")
      yield* Effect.repeat(chat.prompt, { until: (text) => text === "ada (running exec 1 min)> " })
      assert.strictEqual(yield* chat.tell({ ...tool, tool: "notes.add" }), "ada (running notes.add)> ")
      assert.strictEqual(yield* chat.tell(activity("EDGE_IDLE")), "ada> ")
      yield* chat.leave
      yield* chat.left
    })
  )

  it.effect("names the jobs that run before Ctrl-C leaves, once more after each message", () =>
    Effect.gen(function* () {
      const chat = yield* open
      yield* chat.tell({ ...activity("EDGE_IDLE"), cores: [JobName.make("dig")] })
      yield* chat.ctrlC
      assert.strictEqual(yield* chat.shown, "still running: dig; press Ctrl-C again to leave the chat")
      yield* chat.type("/cores")
      yield* chat.sent
      yield* chat.shown
      yield* chat.ctrlC
      assert.match(yield* chat.shown, /^still running: dig/u)
      assert.isFalse(yield* chat.hasLeft)
      yield* chat.ctrlC
      yield* chat.left
    })
  )

  it.effect("shows no draft of an answer to what was sent elsewhere", () =>
    Effect.gen(function* () {
      const chat = yield* open
      yield* chat.tell({ type: "draft", in_reply_to: InboxId.make("7"), text: "First\n" }, false)
      yield* chat.tell({ ...reply, in_reply_to: null }, false)
      assert.strictEqual(yield* chat.shown, "Stopped.")
    })
  )

  it.effect("leaves with Ctrl-C while nothing runs, and with Ctrl-D", () =>
    Effect.gen(function* () {
      const first = yield* open
      yield* first.ctrlC
      yield* first.left
      const second = yield* open
      yield* second.leave
      yield* second.left
    })
  )

  it.effect("stops the turn with the first Ctrl-C, and leaves with the second", () =>
    Effect.gen(function* () {
      const chat = yield* open
      yield* chat.tell(activity("EDGE_REASONING"))
      yield* chat.ctrlC
      assert.match(yield* chat.shown, /stopping the turn; press Ctrl-C again to leave the chat/u)
      assert.strictEqual(yield* chat.sent, "/stop")
      assert.match(yield* chat.shown, /Stopping\./u)
      assert.isFalse(yield* chat.hasLeft)
      yield* chat.ctrlC
      yield* chat.left
    })
  )

  it.effect("stops what was just sent, before anybody tells of its turn", () =>
    Effect.gen(function* () {
      const chat = yield* open
      yield* chat.type("think hard")
      assert.strictEqual(yield* chat.sent, "think hard")
      yield* chat.ctrlC
      assert.strictEqual(yield* chat.sent, "/stop")
      assert.isFalse(yield* chat.hasLeft)
    })
  )

  for (const kind of ["reply", "stopped", "error", "outage"] as const)
    it.effect(`leaves with Ctrl-C after an answer of the kind ${kind}`, () =>
      Effect.gen(function* () {
        const chat = yield* open
        yield* chat.type("think hard")
        assert.strictEqual(yield* chat.sent, "think hard")
        yield* chat.tell({ ...reply, kind }, false)
        assert.include(yield* chat.shown, "Stopped.")
        yield* chat.tell(activity("EDGE_REASONING"))
        yield* chat.tell(activity("EDGE_IDLE"))
        yield* chat.ctrlC
        yield* chat.left
      })
    )

  it.effect("stops the next turn as well, once the one before was answered", () =>
    Effect.gen(function* () {
      const chat = yield* open
      yield* chat.tell(activity("EDGE_REASONING"))
      yield* chat.ctrlC
      assert.strictEqual(yield* chat.sent, "/stop")
      yield* chat.shown
      yield* chat.shown
      yield* chat.tell(reply, false)
      assert.strictEqual(yield* chat.shown, "Stopped.")
      yield* chat.tell(activity("EDGE_WAITING_TOOL"))
      yield* chat.ctrlC
      assert.strictEqual(yield* chat.sent, "/stop")
      yield* chat.shown
      yield* chat.shown
      yield* chat.tell(reply, false)
      yield* chat.shown
      yield* chat.tell(activity("EDGE_IDLE"))
      yield* chat.ctrlC
      yield* chat.left
    })
  )
})
