/** From a bot's token to a first answered message, as a new user does it: four things typed, and no edit of JSON. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl } from "../support/choirctl.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"
import { makeTelegram } from "../support/testing/Telegram.ts"

const USER = 4711
const STRANGER = 666
const TOKEN = "1000:AAE-a-token-that-is-long-enough-to-be-one"

describe("a new bot and a new person", () => {
  it.live("talk after two commands and a code, and a stranger never gets a word", () =>
    Effect.gen(function* () {
      const provider = yield* makeProvider
      yield* provider.otherwise((request) => offlineModel(request, 0))
      const telegram = yield* makeTelegram
      const bot = telegram.bot(TOKEN)
      const choir = yield* makeTestInstallation({ endpoint: provider.endpoint, config: { heartbeat_interval_ms: 200 } })
      yield* choir.start
      yield* choir.build
      yield* choir.api.agents.start({ params: choir.params, payload: {} })

      const added = yield* choirctl(choir.home, ["gateway", "add", "telegram", "--api-root", telegram.url], {
        stdin: `${TOKEN}\n`
      })
      assert.strictEqual(added.code, 0, added.err)
      assert.match(
        added.out,
        /^added @double_bot as telegram\n\nNext:\n.*choirctl --home \S+ dm pair phone --gateway telegram --admin/su
      )
      assert.notInclude(added.out + added.err, TOKEN)

      const twin = yield* choirctl(choir.home, ["gateway", "add", "second", "--api-root", telegram.url], {
        stdin: `${TOKEN}\n`
      })
      assert.strictEqual(twin.code, 2)
      assert.include(twin.err, "the gateway telegram already has this token")

      const paired = yield* choirctl(choir.home, ["dm", "pair", "phone", "--gateway", "telegram", "--admin"])
      assert.strictEqual(paired.code, 0, paired.err)
      const [, code = ""] = /within ten minutes: ([A-Z2-9]{4}-[A-Z2-9]{4})/u.exec(paired.out) ?? []

      yield* bot.text(STRANGER, "hello")
      yield* bot.text(STRANGER, "2222-2222")
      yield* bot.text(USER, code)
      yield* bot.sent.first(({ text }) => text?.startsWith("◆ You are in, as phone. Write to ") === true)
      yield* bot.text(USER, "say good morning")
      yield* bot.sent.first(({ text }) => text?.includes("good morning") === true)
      yield* bot.text(USER, "/secret list")
      yield* bot.sent.first(({ text }) => text?.includes("telegram-token") === true)
      assert.deepStrictEqual(
        (yield* bot.sent.all).filter(({ chat }) => chat.id !== USER),
        []
      )
      const again = yield* choirctl(choir.home, ["dm", "pair", "phone", "--gateway", "telegram"])
      assert.match(again.err, /config\.json already has a DM phone/u)
    }).pipe(Effect.scoped)
  )
})
