import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { describeInstallations } from "../support/everyInstallation.ts"
import { botConfig } from "../support/botConfig.ts"
import { makeInstallation } from "../support/installation.ts"
import { LAYER_MS_MAX } from "../support/size.ts"
import { answer, makeProvider, offlineModel, say } from "../support/testing/Provider.ts"
import { makeTelegram, type TelegramBot } from "../support/testing/Telegram.ts"
import { historyProblems } from "../support/verifyHistory.ts"

const USER = 4711
const STRANGER = 666
const TOKEN = "1000:secret"

const textsTo = (bot: TelegramBot, user: number) =>
  Effect.map(bot.sent.all, (sent) => sent.filter(({ chat }) => chat.id === user).map(({ text }) => text ?? ""))

/** An agent that is bound to a person at Telegram. */
const make = (place: Parameters<Parameters<typeof describeInstallations>[1]>[0]) =>
  Effect.gen(function* () {
    const provider = yield* makeProvider
    yield* provider.otherwise((request) => offlineModel(request, 0))
    const telegram = yield* makeTelegram
    const bot = telegram.bot(TOKEN)
    const { secrets, ...rest } = yield* place
    const choir = yield* makeInstallation({
      endpoint: provider.endpoint,
      ...rest,
      secrets: { ...secrets, "bot-token": TOKEN },
      config: botConfig(telegram.url, { phone: { user_id: String(USER), admin: true } })
    })
    const choird = yield* choir.start
    yield* choir.build
    const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload: { dm: "phone" as never } })
    return { ...choir, bot, choird, provider, session_id: session_id as SessionId }
  })

class Choir extends Context.Service<Choir, Effect.Success<ReturnType<typeof make>>>()("choir/test/TelegramChoir") {}

describeInstallations("Telegram", (place) => {
  layer(Layer.effect(Choir, make(place)), { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("answers a person once and in order, splits a long answer, and is deaf to strangers", () =>
      Effect.gen(function* () {
        const { bot, events, provider, session_id } = yield* Choir
        const isEye = ({ method, parameters }: { readonly method: string; readonly parameters: object }) =>
          method === "setMessageReaction" && JSON.stringify(parameters).includes("👀")
        // The person sees both before the model has begun to answer.
        const signs = Effect.andThen(
          bot.calls.first(isEye),
          bot.calls.first(({ method }) => method === "sendChatAction")
        )
        yield* provider.script(
          Effect.andThen(signs, answer("first")),
          answer("long ".repeat(2000).trim()),
          answer("third")
        )
        yield* bot.text(STRANGER, "let me in")
        for (const text of ["one", "two", "three"]) yield* bot.text(USER, text)
        yield* bot.sent.first(({ text }) => text === "third")
        const texts = (yield* textsTo(bot, USER)).filter((text) => !text.endsWith("in the queue."))
        assert.strictEqual(texts[0], "first")
        assert.strictEqual(texts.at(-1), "third")
        assert.strictEqual(texts.length, 5)
        assert.strictEqual(texts.slice(1, -1).join(" ").replaceAll(/\s+/gu, " "), "long ".repeat(2000).trim())
        assert.deepStrictEqual(yield* textsTo(bot, STRANGER), [])
        const reactions = (yield* bot.calls.all).filter(({ method }) => method === "setMessageReaction")
        assert.deepStrictEqual([...new Set(reactions.map(({ parameters }) => Number(parameters["chat_id"])))], [USER])
        for (const { parameters } of reactions.filter(isEye))
          yield* bot.calls.first(
            (call) =>
              call.method === "setMessageReaction" &&
              call.parameters["message_id"] === parameters["message_id"] &&
              !isEye(call)
          )
        assert.deepStrictEqual(historyProblems(session_id, yield* events(session_id)), [])
      })
    )

    it.effect("shows what the model writes before it has ended", () =>
      Effect.gen(function* () {
        const { bot, provider } = yield* Choir
        const before = (yield* bot.calls.all).length
        const shown = bot.calls.first(({ method }) => method === "sendMessageDraft", before)
        const text = `first ${"word ".repeat(100)}last`
        yield* provider.script(say({ text }, { waits: { after: 80, for: shown } }))
        yield* bot.text(USER, "hello")
        yield* bot.sent.first((sent) => sent.text === text)
        assert.match(String((yield* shown).parameters["text"]), /^first(?: word)*$/u)
      })
    )

    it.effect("takes each message once when choird is killed right after it came (R2, R42)", () =>
      Effect.gen(function* () {
        const installation = yield* Choir
        const { bot } = installation
        yield* bot.text(USER, "say before the crash")
        yield* bot.sent.first(({ text }) => text?.includes("before the crash") === true)
        yield* bot.text(USER, "say after the crash")
        yield* installation.choird.signal("SIGKILL")
        yield* installation.choird.exited
        yield* installation.start
        yield* bot.sent.first(({ text }) => text?.includes("after the crash") === true)
        const history = yield* installation.events(installation.session_id)
        const heard = history.flatMap(({ event }) => (event.event_type === "UserMsg" ? [event.payload.text] : []))
        assert.deepStrictEqual(heard.slice(-2), ["say before the crash", "say after the crash"])
        assert.lengthOf(heard, new Set(heard).size)
      })
    )
  })
})
