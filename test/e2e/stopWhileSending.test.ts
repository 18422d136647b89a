/** A clean stop of choird while Telegram has taken a message and not said so yet (R43). */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { botConfig } from "../support/botConfig.ts"
import { LAYER_MS_MAX } from "../support/size.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { answer, makeProvider } from "../support/testing/Provider.ts"
import { makeTelegram } from "../support/testing/Telegram.ts"
import * as fault from "../support/testing/TelegramFaults.ts"

const USER = 4711
const TOKEN = "1000:secret"

describe("a stop of choird while a message is sent", () => {
  it.live(
    "waits until Telegram has said that it took it, and the next start does not send it again",
    () =>
      Effect.gen(function* () {
        const provider = yield* makeProvider
        yield* provider.script(answer("the only answer"), answer("the next one"))
        const telegram = yield* makeTelegram
        const bot = telegram.bot(TOKEN)
        const choir = yield* makeTestInstallation({
          endpoint: provider.endpoint,
          runtime: "process",
          secrets: { "bot-token": TOKEN },
          config: botConfig(telegram.url, { phone: { user_id: String(USER), admin: true } })
        })
        const choird = yield* choir.start
        yield* choir.build
        yield* choir.api.agents.start({ params: choir.params, payload: { dm: "phone" as never } })
        // A stop cuts the poll off, and only then Telegram answers.
        const stopping = yield* Deferred.make<void>()
        const cutOff = Effect.onInterrupt(Effect.never, () => Deferred.succeed(stopping, undefined))
        yield* bot.fail("getUpdates", fault.late(cutOff))
        yield* bot.fail("sendMessage", fault.lateAfterAccept(Deferred.await(stopping)))
        yield* bot.text(USER, "one")
        yield* bot.sent.first(({ text }) => text === "the only answer")
        yield* choird.signal("SIGTERM")
        assert.strictEqual(yield* choird.exited, 0)
        yield* bot.heal
        yield* choir.start
        yield* bot.text(USER, "two")
        yield* bot.sent.first(({ text }) => text === "the next one")
        assert.deepStrictEqual(
          (yield* bot.sent.all).map(({ text }) => text),
          ["the only answer", "the next one"]
        )
      }).pipe(Effect.scoped),
    LAYER_MS_MAX
  )
})
