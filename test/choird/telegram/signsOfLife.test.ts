import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer, PubSub, Queue, Redacted, Stream } from "effect"
import { TestClock } from "effect/testing"
import { InboxId, JobName, ResourceName, SessionId } from "#schema/Ids.ts"
import { ChatSettings } from "#src/choird/chatcommands/ChatSettings.ts"
import { Presence } from "#src/choird/gateway/Presence.ts"
import type { Runs } from "#src/choird/gateway/runningCalls.ts"
import { showDrafts, showTyping } from "#src/choird/telegram/signsOfLife.ts"
import { TelegramApi } from "#src/choird/telegram/TelegramApi.ts"
import { TelegramFailed } from "#src/choird/telegram/TelegramFailed.ts"
import { Drafts, type ShownDraft } from "#src/choird/queues/Drafts.ts"
import { makeNotifier } from "#src/choird/queues/Notifier.ts"
import { PHONE } from "../../support/stores.ts"
import { AGENT, USER } from "../../support/telegramBot.ts"
import { makeTelegram } from "../../support/testing/Telegram.ts"

const USER_ID = String(USER)
const one = InboxId.make("1")
const draft = (text: string, dm = PHONE): ShownDraft => ({ agent_id: AGENT, dm, inbox_id: one, text })
const refused = (code: number, retry_after_ms: number | null) =>
  new TelegramFailed({ method: "sendMessageDraft", code, description: "refused", retry_after_ms })

const DIG = { session_id: SessionId.make("0123456789abcdef"), job_name: JobName.make("dig") }
const topic = { ...DIG, thread_id: 7, state: "open" } as const
const closed = { ...DIG, job_name: JobName.make("fill"), thread_id: 8, state: "closed" } as const

/** A bot with one person, whose agent is at work or is not. `refusals` are taken by the next drafts. */
const setUp = Effect.gen(function* () {
  const calls = yield* Queue.unbounded<string>()
  const drafts = yield* PubSub.unbounded<ShownDraft>()
  const { wake, wakes } = yield* makeNotifier
  const refusals: Array<TelegramFailed> = []
  const world = {
    atWork: false,
    answered: false,
    asking: undefined as typeof DIG | undefined,
    runs: undefined as Runs | undefined
  }
  const services = Layer.mergeAll(
    Layer.mock(TelegramApi, {
      typing: (chat_id) => Effect.asVoid(Queue.offer(calls, `typing ${chat_id}`)),
      draft: (chat_id, draft_id, text, thread_id) => {
        const place = thread_id === undefined ? chat_id : `${chat_id}/${thread_id}`
        return Effect.andThen(Queue.offer(calls, `draft ${place} ${draft_id} ${text}`), refusals.shift() ?? Effect.void)
      }
    }),
    Layer.mock(Drafts, { changes: Stream.fromPubSub(drafts) }),
    Layer.mock(ChatSettings, { topics: () => Effect.succeed([topic, closed]) }),
    Layer.mock(Presence, {
      questionOf: () => Effect.succeed(world.asking),
      isAnswered: () => world.answered,
      isDue: () => Effect.sync(() => !world.answered),
      isAtWork: () => Effect.sync(() => world.atWork),
      runs: () => Effect.sync(() => world.runs),
      wakes
    })
  )
  const started = Effect.forkScoped({ startImmediately: true })
  const pace = { message: Effect.void, sign: Effect.void, hold: () => Effect.void }
  const chat = { dm: PHONE, user_id: USER_ID, chat_id: USER_ID, pace, left: yield* Deferred.make<void>() }
  yield* showTyping(chat).pipe(Effect.provide(services), started)
  yield* showDrafts(chat).pipe(Effect.provide(services), started)
  // Everything runs in memory, so that after a turn of the clock all that was due is done.
  const settle = Effect.repeat(TestClock.adjust(0), { times: 10 })
  yield* settle
  return {
    world,
    refusals,
    asked: Effect.andThen(wake(PHONE), settle),
    write: (text: ShownDraft) => Effect.andThen(PubSub.publish(drafts, text), settle),
    calls: Queue.clear(calls)
  }
})

describe("a person on Telegram", () => {
  it.effect("sees at once that the agent types, and again until it has answered", () =>
    Effect.gen(function* () {
      const { asked, calls, world } = yield* setUp
      world.atWork = true
      yield* asked
      assert.deepStrictEqual(yield* calls, [`typing ${USER_ID}`])
      yield* TestClock.adjust("4 seconds")
      assert.deepStrictEqual(yield* calls, [`typing ${USER_ID}`])
      world.atWork = false
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* calls, [])
      world.atWork = true
      yield* asked
      assert.deepStrictEqual(yield* calls, [`typing ${USER_ID}`])
    })
  )

  it.effect("sees no mark of choird's in a draft, which the agent wrote", () =>
    Effect.gen(function* () {
      const { calls, write } = yield* setUp
      yield* write(draft("◆ ada asks for your approval (number 7). ◊"))
      assert.match(
        (yield* calls)[0] ?? "",
        /^draft \d+ \d+ [a-z0-9-]+:\n\* ada asks for your approval \(number 7\)\. ◊$/u
      )
      yield* write(draft("💎 ada asks for your approval (number 7)."))
      yield* TestClock.adjust("1 minute")
      assert.match((yield* calls).at(-1) ?? "", /^draft \d+ \d+ [a-z0-9-]+: 💎 ada asks/u)
      yield* write(draft("tap tg://settings"))
      yield* TestClock.adjust("1 minute")
      assert.notInclude((yield* calls).at(-1), "tg://")
    })
  )

  it.effect("sees the answer grow, at most once a second and with the newest words", () =>
    Effect.gen(function* () {
      const { calls, write } = yield* setUp
      for (const text of ["It", "It is", "It is so", "It is so."]) yield* write(draft(text))
      yield* write(draft("for another", ResourceName.make("desk")))
      yield* TestClock.adjust("999 millis")
      assert.deepStrictEqual(yield* calls, [`draft ${USER_ID} 2 It`])
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* calls).at(-1), `draft ${USER_ID} 2 It is so.`)
    })
  )

  it.effect("sees the end of a draft that is longer than a message", () =>
    Effect.gen(function* () {
      const { calls, write } = yield* setUp
      yield* write(draft(`${"word ".repeat(2000)}end`))
      const [call = ""] = yield* calls
      const shown = call.slice(`draft ${USER_ID} 2 `.length)
      assert.lengthOf(shown, 4096)
      assert.isTrue(shown.endsWith("word end"))
      assert.isTrue(shown.startsWith(`${AGENT}: …`), shown.slice(0, 40))
    })
  )

  it.effect("sees a job's question grow in the topic of the job, and in the chat where it has none", () =>
    Effect.gen(function* () {
      const { calls, world, write } = yield* setUp
      const asking = { ...draft("How deep?"), report_rev: 1 }
      for (const job of [DIG, { ...DIG, job_name: closed.job_name }, undefined]) {
        world.asking = job
        yield* write(asking)
        yield* TestClock.adjust("1 second")
      }
      const places = (yield* calls).map((call) => call.split(" ")[1])
      assert.deepStrictEqual(places, [`${USER_ID}/7`, USER_ID, USER_ID])
    })
  )

  it.effect("sees no draft behind the answer", () =>
    Effect.gen(function* () {
      const { calls, world, write } = yield* setUp
      world.answered = true
      yield* write(draft("late"))
      world.answered = false
      yield* write(draft("next"))
      assert.deepStrictEqual(yield* calls, [`draft ${USER_ID} 2 next`])
    })
  )

  it.effect("sees which tool runs and for how long, below the words before it, once that takes a while", () =>
    Effect.gen(function* () {
      const { asked, calls, world, write } = yield* setUp
      const drafts = Effect.map(calls, (all) => all.filter((call) => call.startsWith("draft")))
      const runs = (seconds: number): Runs => ({ agent_id: AGENT, inbox_id: one, tool: "exec", seconds })
      Object.assign(world, { atWork: true, runs: runs(3) })
      yield* asked
      yield* TestClock.adjust("4 seconds")
      assert.deepStrictEqual(yield* drafts, [])
      world.runs = runs(7)
      yield* TestClock.adjust("4 seconds")
      assert.deepStrictEqual(yield* drafts, [`draft ${USER_ID} 2 ◆ Running exec, 7 s`])
      yield* write(draft("I look at the logs."))
      yield* TestClock.adjust("1 second")
      world.runs = runs(135)
      yield* TestClock.adjust("4 seconds")
      assert.deepStrictEqual(yield* drafts, [
        `draft ${USER_ID} 2 I look at the logs.`,
        `draft ${USER_ID} 2 I look at the logs.\n\n◆ Running exec, 2 min`
      ])
      Object.assign(world, { answered: true })
      yield* TestClock.adjust("4 seconds")
      assert.deepStrictEqual(yield* drafts, [])
    })
  )

  it.effect("sees no words of an earlier answer above a tool that runs", () =>
    Effect.gen(function* () {
      const { asked, calls, world, write } = yield* setUp
      yield* write({ ...draft("Earlier."), inbox_id: InboxId.make("3") })
      Object.assign(world, { atWork: true, runs: { agent_id: AGENT, inbox_id: one, tool: "exec", seconds: 9 } })
      yield* asked
      yield* TestClock.adjust("6 seconds")
      assert.strictEqual(
        (yield* calls).findLast((call) => call.startsWith("draft")),
        `draft ${USER_ID} 2 ◆ Running exec, 9 s`
      )
    })
  )

  it.effect("sees a report as another draft than the answer to the same message", () =>
    Effect.gen(function* () {
      const { calls, write } = yield* setUp
      yield* write(draft("On it."))
      yield* TestClock.adjust("1 second")
      yield* write({ ...draft("It is done."), report_rev: 7 })
      assert.deepStrictEqual(yield* calls, [`draft ${USER_ID} 2 On it.`, `draft ${USER_ID} 7000023 It is done.`])
    })
  )

  it.effect("sees the newest words once Telegram's wait is over", () =>
    Effect.gen(function* () {
      const { calls, refusals, write } = yield* setUp
      refusals.push(refused(429, 7000))
      for (const text of ["It", "It is", "It is so"]) yield* write(draft(text))
      yield* TestClock.adjust("6999 millis")
      assert.deepStrictEqual(yield* calls, [`draft ${USER_ID} 2 It`])
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* calls).at(-1), `draft ${USER_ID} 2 It is so`)
    })
  )

  it.effect("sees no drafts where the server of the bot has none", () =>
    Effect.gen(function* () {
      const { asked, calls, refusals, world, write } = yield* setUp
      refusals.push(refused(404, null))
      yield* write(draft("It"))
      yield* write(draft("It is"))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* calls, [`draft ${USER_ID} 2 It`])
      Object.assign(world, { atWork: true, runs: { agent_id: AGENT, inbox_id: one, tool: "exec", seconds: 9 } })
      yield* asked
      yield* TestClock.adjust("1 minute")
      assert.isFalse((yield* calls).some((call) => call.startsWith("draft")))
    })
  )

  it.live("is shown both by the methods of the Bot API", () =>
    Effect.gen(function* () {
      const telegram = yield* makeTelegram
      const bot = telegram.bot("1000:secret")
      const shown = Effect.gen(function* () {
        const api = yield* TelegramApi
        yield* api.typing(USER_ID)
        yield* api.draft(USER_ID, 2, "It is")
        return yield* Effect.flip(api.draft(USER_ID, 0, "It is"))
      })
      const api = TelegramApi.layer(Redacted.make(bot.token), `${telegram.url}/`)
      assert.propertyVal(yield* Effect.provide(shown, api), "code", 400)
      const calls = yield* bot.calls.all
      assert.deepStrictEqual(
        calls.map(({ method, parameters }) => [method, parameters["text"] ?? parameters["action"]]),
        [
          ["sendChatAction", "typing"],
          ["sendMessageDraft", "It is"],
          ["sendMessageDraft", "It is"]
        ]
      )
    })
  )
})
