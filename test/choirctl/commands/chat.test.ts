import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { AgentId, InboxId } from "#schema/Ids.ts"
import type { ChatEvent } from "#schema/ChatApi.ts"
import { choirctl, documents } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { fakeChoird, makeDesk, reply, say, summary } from "../../support/fakeChoird.ts"

const started = Effect.forkChild({ startImmediately: true })

describe("choirctl chat --message", () => {
  it.live("prints unread replies first, then what comes of the message, and ends when it is settled", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const desk = makeDesk([reply("900", "from yesterday")])
      yield* fakeChoird(home, {}, desk)
      const ran = yield* choirctl(home, ["chat", "agent-1", "--message", "hello"])
      assert.deepStrictEqual(ran, { code: 0, out: "from yesterday\necho hello\n", err: "" })
      assert.deepStrictEqual(desk.acked, ["9000", "10"])
      assert.deepStrictEqual(desk.unread, [])
      assert.strictEqual(desk.sent[0]?.text, "hello")
    })
  )

  it.live("needs no name where there is one agent, and names them all where there are several", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home)
      assert.deepStrictEqual(yield* choirctl(home, ["chat", "--message", "hello"]), {
        code: 0,
        out: "echo hello\n",
        err: ""
      })
      const shared = yield* temporaryFolder
      yield* fakeChoird(shared, {
        agents: Effect.succeed([summary, { ...summary, agent_id: AgentId.make("agent-2") }])
      })
      const asked = yield* choirctl(shared, ["chat", "--message", "hello"])
      assert.strictEqual(asked.code, 2)
      assert.include(asked.err, "there are several agents")
      assert.include(asked.err, "name one of them: choirctl ")
    })
  )

  it.live("prints the events as lines with --json, and notices beside the answer without", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const notice = (inbox_id: InboxId): ChatEvent => ({
        ...(reply(inbox_id, "queued\u001b]0;x", 1) as Extract<ChatEvent, { readonly type: "message" }>),
        kind: "notice"
      })
      const reaction = (text: string, inbox_id: InboxId): ReadonlyArray<ChatEvent> => [
        notice(inbox_id),
        reply(inbox_id, `echo ${text}`),
        { type: "settled", inbox_id }
      ]
      yield* fakeChoird(home, { reaction })
      const people = yield* choirctl(home, ["chat", "agent-1", "--message", "hi"])
      assert.strictEqual(people.out, "echo hi\n")
      assert.strictEqual(people.err, "notice: queued\u{FFFD}]0;x\n")
      const programs = yield* choirctl(home, ["chat", "agent-1", "--message", "hi", "--json"])
      const types = documents(programs).map((event) => (event as ChatEvent).type)
      assert.deepStrictEqual(types, ["agent", "activity", "message", "message", "settled"])
      assert.strictEqual(programs.err, "")
    })
  )

  it.live("prints what choird answers to a command, and sends every other text on", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const desk = makeDesk()
      const command = (text: string) =>
        text === "/cores" ? { kind: "notice" as const, text: "No jobs are running." } : null
      const calls = yield* fakeChoird(home, { command }, desk)
      const ran = yield* choirctl(home, ["chat", "agent-1"], { stdin: "/cores\n/etc/hosts is what?\nhello /cores\n" })
      assert.deepStrictEqual(ran, {
        code: 0,
        out: "notice: No jobs are running.\necho /etc/hosts is what?\necho hello /cores\n",
        err: ""
      })
      assert.lengthOf(
        calls.filter(({ name }) => name === "command"),
        2
      )
      assert.deepStrictEqual(
        desk.sent.map(({ text }) => text),
        ["/etc/hosts is what?", "hello /cores"]
      )
      const programs = yield* choirctl(home, ["chat", "agent-1", "--message", "/cores", "--json"])
      assert.deepStrictEqual(documents(programs).at(-1), {
        type: "answer",
        kind: "notice",
        text: "No jobs are running."
      })
    })
  )

  it.live("sends each line of standard input when the one before is settled", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const desk = makeDesk()
      yield* fakeChoird(home, {}, desk)
      const ran = yield* choirctl(home, ["chat", "agent-1"], { stdin: "one\n\n  \ntwo\r\nthree" })
      assert.deepStrictEqual(
        desk.sent.map(({ text }) => text),
        ["one", "two", "three"]
      )
      assert.strictEqual(ran.out, "echo one\necho two\necho three\n")
    })
  )

  it.live("loses and doubles nothing when choird goes away and comes back", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const desk = makeDesk()
      const sent = yield* Deferred.make<InboxId>()
      const reaction = (_text: string, inbox_id: InboxId) => {
        Deferred.doneUnsafe(sent, Effect.succeed(inbox_id))
        return [reply(inbox_id, "first half")]
      }
      const life = yield* Scope.make()
      yield* Scope.provide(fakeChoird(home, { reaction }, desk), life)
      const chat = yield* choirctl(home, ["chat", "agent-1", "--message", "long work"]).pipe(started)
      const inbox_id = yield* Deferred.await(sent)
      yield* Scope.close(life, Exit.void)
      // The database kept a message that was shown before its acknowledgement arrived.
      const unread = [reply(inbox_id, "first half"), reply(inbox_id, "second half", 1)]
      desk.unread.splice(0, desk.unread.length, ...unread)
      yield* fakeChoird(home, {}, desk)
      yield* Effect.yieldNow.pipe(Effect.repeat({ until: () => desk.clients.size > 0 }))
      say(desk, [{ type: "settled", inbox_id }])
      const ran = yield* Fiber.join(chat)
      assert.strictEqual(ran.code, 0, ran.err)
      assert.strictEqual(ran.out, "first half\nsecond half\n")
      assert.strictEqual(desk.sent.length, 1)
      assert.includeMembers(desk.acked, [`${inbox_id}0`, `${inbox_id}1`])
    })
  )

  it.effect("gives up with the command that helps when the agent stays away", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const sent = yield* Deferred.make<void>()
      const reaction = (): ReadonlyArray<ChatEvent> => {
        Deferred.doneUnsafe(sent, Effect.void)
        return [{ type: "agent", status: "crashed", reason: "out of memory" }]
      }
      yield* fakeChoird(home, { reaction })
      const chat = yield* choirctl(home, ["chat", "agent-1", "--message", "hi"]).pipe(started)
      yield* Deferred.await(sent)
      const ran = yield* Effect.raceFirst(
        Fiber.join(chat),
        TestClock.adjust("1 second").pipe(
          Effect.andThen(Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))),
          Effect.forever
        )
      )
      assert.strictEqual(ran.code, 1)
      assert.include(ran.err, "crashed: out of memory")
      assert.match(ran.err, /hint: choirctl --home \S+ agent start agent-1/u)
    })
  )

  it.effect("ends with 75 when the message takes longer than --timeout", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const sent = yield* Deferred.make<void>()
      const reaction = (): ReadonlyArray<ChatEvent> => {
        Deferred.doneUnsafe(sent, Effect.void)
        return []
      }
      yield* fakeChoird(home, { reaction })
      const chat = yield* choirctl(home, ["chat", "agent-1", "--message", "hi", "--timeout", "60"]).pipe(started)
      yield* Deferred.await(sent)
      const ran = yield* Effect.raceFirst(
        Fiber.join(chat),
        TestClock.adjust("10 seconds").pipe(
          Effect.andThen(Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))),
          Effect.forever
        )
      )
      assert.strictEqual(ran.code, 75)
    })
  )

  it.live("says 69 when there is no choird to begin with, and 2 for an empty message", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      assert.strictEqual((yield* choirctl(home, ["chat", "agent-1", "--message", "hi"])).code, 69)
      assert.strictEqual((yield* choirctl(home, ["chat", "agent-1", "--message", "  "])).code, 2)
    })
  )
})
