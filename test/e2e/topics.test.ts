/** The jobs of a whole Choir in a forum group at Telegram: a topic each, from the question to the end. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { botConfig } from "../support/botConfig.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"
import { makeTelegram } from "../support/testing/Telegram.ts"
import { historyProblems } from "../support/verifyHistory.ts"

const USER = 4711
/** The double takes a group for a forum by the end of its id. */
const FORUM = -1_000_000_009
const TOKEN = "1000:secret"
/** A topic of the group that people made. */
const PLANS = 77

const setUp = Effect.gen(function* () {
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const telegram = yield* makeTelegram
  const bot = telegram.bot(TOKEN)
  const choir = yield* makeTestInstallation({
    endpoint: provider.endpoint,
    secrets: { "bot-token": TOKEN },
    config: {
      heartbeat_interval_ms: 200,
      ...botConfig(telegram.url, { garden: { user_id: String(FORUM) }, phone: { user_id: String(USER) } })
    }
  })
  yield* choir.start
  yield* choir.build
  // A member commands the group's agent who talks with it in private too.
  const { session_id } = yield* choir.api.agents.start({
    params: choir.params,
    payload: { dm: ["garden", "phone"] as never }
  })
  /** The first message in the group in which something stands, with its topic. */
  const told = (words: string) =>
    Effect.map(
      bot.sent.first(({ chat, text }) => chat.id === FORUM && text?.includes(words) === true),
      (sent) => sent["message_thread_id"]
    )
  const topics = Effect.map(bot.topics, (all) => [...all])
  const verified = Effect.map(choir.events(session_id as SessionId), (history) =>
    assert.deepStrictEqual(historyProblems(session_id as SessionId, history), [])
  )
  return { ...choir, bot, told, topics, verified }
})

describe("a forum group", () => {
  it.live("has a topic for each job, in which the job asks, and which is closed when it ends", () =>
    Effect.gen(function* () {
      const { bot, told, topics, verified } = yield* setUp
      yield* bot.textInGroup(FORUM, USER, "nobody is meant by this", PLANS)
      yield* bot.textInGroup(
        FORUM,
        USER,
        "@double_bot please:\njob dig: report need_info: how deep?, then write deep.txt: 2\njob fill: report need_info: with what?, then write fill.txt: sand",
        PLANS
      )
      const [dig, fill] = [yield* told("how deep?"), yield* told("with what?")]
      assert.deepStrictEqual(
        new Map((yield* topics).map(([id, { chat_id, name }]) => [`${chat_id} ${name}`, id])),
        new Map([
          [`${FORUM} dig`, dig],
          [`${FORUM} fill`, fill]
        ]) as never
      )
      yield* bot.textInGroup(FORUM, USER, "/answer dig two metres", Number(dig))
      // Told where the job was asked for.
      assert.strictEqual(yield* told("deep.txt"), PLANS)
      const closed = Effect.map(topics, (all) => all.filter(([, topic]) => topic.closed).map(([id]) => id))
      yield* Effect.repeat(Effect.andThen(Effect.yieldNow, closed), { until: (ids) => ids.length > 0 })
      assert.deepStrictEqual(yield* closed, [dig])
      // A person deletes the topic of the other job, which asks there no more.
      yield* bot.deleteTopic(Number(fill))
      yield* bot.textInGroup(FORUM, USER, "/answer fill sand")
      yield* told("fill.txt")
      assert.lengthOf(yield* topics, 2)
      yield* verified
    }).pipe(Effect.scoped)
  )
})
