import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Api, GrammyError, InputFile } from "grammy"
import * as double from "./testing/Telegram.ts"
import * as fault from "./testing/TelegramFaults.ts"

class CallFailed extends Schema.TaggedError<CallFailed>()("CallFailed", { cause: Schema.Defect() }) {
  /** The code of the Bot API, or 0 when there was no answer of it at all. */
  get code(): number {
    return this.cause instanceof GrammyError ? this.cause.error_code : 0
  }
}

const call = <A>(method: () => Promise<A>): Effect.Effect<A, CallFailed> =>
  Effect.tryPromise({ try: method, catch: (cause) => new CallFailed({ cause }) })

const start = Effect.forkChild({ startImmediately: true })

const setUp = Effect.gen(function* () {
  const telegram = yield* double.makeTelegram
  const bot = telegram.bot("1000:secret")
  return { telegram, bot, api: new Api(bot.token, { apiRoot: telegram.url }) }
})

const poll = (api: Api, offset: number, timeout: number) => call(() => api.getUpdates({ offset, timeout }))

describe("Telegram double", () => {
  it.effect("knows its bots and refuses other tokens", () =>
    Effect.gen(function* () {
      const { api, telegram } = yield* setUp
      assert.strictEqual((yield* call(() => api.getMe())).id, 1000)
      const stranger = new Api("2000:guess", { apiRoot: telegram.url })
      assert.strictEqual((yield* Effect.flip(call(() => stranger.getMe()))).code, 401)
      assert.strictEqual((yield* Effect.flip(call(() => api.raw.logOut()))).code, 404)
    })
  )

  it.effect("refuses files, captions and albums that Telegram would not take, in its words", () =>
    Effect.gen(function* () {
      const { api, bot } = yield* setUp
      const file = (bytes: Buffer, name = "a.bin") => new InputFile(bytes, name)
      const png = Buffer.from("\x89PNG\r\n\x1a\nx", "latin1")
      const opus = Buffer.from(`OggS${"\0".repeat(24)}OpusHead`, "latin1")
      const photo = (bytes: Buffer) => ({ type: "photo" as const, media: file(bytes) })
      const refused = (method: () => Promise<unknown>) => Effect.map(Effect.flip(call(method)), ({ code }) => code)
      const caption = "🙂".repeat(513)
      const outside = [{ type: "bold" as const, offset: 0, length: 9 }]
      for (const [code, method] of [
        [400, () => api.sendDocument(1, file(Buffer.alloc(0)))],
        [413, () => api.sendDocument(1, file(Buffer.alloc(50 * 1024 * 1024 + 1)))],
        [400, () => api.sendDocument(1, file(png), { caption })],
        [400, () => api.sendDocument(1, file(png), { caption: "short", caption_entities: outside })],
        [400, () => api.sendDocument(1, file(png, 'a";b'))],
        [400, () => api.sendDocument(0, file(png))],
        [400, () => api.sendDocument(1, file(png), { message_thread_id: -1 })],
        [400, () => api.sendPhoto(1, file(opus))],
        [400, () => api.sendPhoto(1, file(Buffer.concat([png, Buffer.alloc(10 * 1024 * 1024)])))],
        [400, () => api.sendVoice(1, file(png))],
        [400, () => api.sendVoice(1, "no-such-file")],
        [400, () => api.sendMediaGroup(1, [photo(png)])],
        [
          400,
          () =>
            api.sendMediaGroup(
              1,
              Array.from({ length: 11 }, () => photo(png))
            )
        ],
        [400, () => api.sendMediaGroup(1, [photo(png), { type: "document", media: file(png) } as never])],
        [400, () => api.sendMediaGroup(1, [photo(png), photo(opus)])]
      ] as const)
        assert.strictEqual(yield* refused(method), code, String(method))
      assert.deepStrictEqual(yield* bot.sent.all, [])
      yield* call(() => api.sendMediaGroup(1, [{ ...photo(png), caption: "🙂".repeat(512) }, photo(png)]))
      yield* call(() => api.sendVoice(1, file(opus)))
      assert.deepStrictEqual(
        (yield* bot.sent.all).map(({ caption: shown = "" }) => shown.length),
        [1024, 0, 0]
      )
    })
  )

  it.effect("gives updates until an offset confirms them", () =>
    Effect.gen(function* () {
      const { api, bot } = yield* setUp
      const first = yield* bot.text(7, "/start now")
      yield* bot.text(7, "two")
      const both = yield* poll(api, 0, 0)
      assert.deepStrictEqual(
        both.map((update) => update.message?.text),
        ["/start now", "two"]
      )
      assert.deepStrictEqual(both[0]?.message?.entities, [{ type: "bot_command", offset: 0, length: 6 }])
      assert.strictEqual(both[0]?.message?.chat.id, 7)
      assert.strictEqual((yield* poll(api, first + 1, 0)).length, 1)
      assert.strictEqual(yield* bot.pending, 1)
      assert.deepStrictEqual(yield* poll(api, first + 2, 0), [])
      assert.strictEqual(yield* bot.pending, 0)
    })
  )

  it.effect("holds a poll until an update comes or its time is over", () =>
    Effect.gen(function* () {
      const { api, bot } = yield* setUp
      const polling = yield* start(poll(api, 0, 30))
      yield* bot.calls.at(0)
      const id = yield* bot.text(7, "hello")
      assert.deepStrictEqual(
        (yield* Fiber.join(polling)).map((update) => update.update_id),
        [id]
      )
      const idle = yield* start(poll(api, id + 1, 30))
      yield* bot.calls.at(1)
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* Fiber.join(idle), [])
    })
  )

  it.effect("ends a poll with 409 when another one starts (R44)", () =>
    Effect.gen(function* () {
      const { api, bot } = yield* setUp
      const first = yield* start(Effect.flip(poll(api, 0, 30)))
      yield* bot.calls.at(0)
      const second = yield* start(poll(api, 0, 30))
      assert.strictEqual((yield* Fiber.join(first)).code, 409)
      yield* bot.text(7, "hello")
      assert.strictEqual((yield* Fiber.join(second)).length, 1)
    })
  )

  it.effect("takes messages up to 4096 UTF-16 units and tells who waits for them (R43)", () =>
    Effect.gen(function* () {
      const { api, bot } = yield* setUp
      const waiting = yield* start(bot.sent.first((message) => message.text === "x".repeat(4096)))
      yield* call(() => api.sendMessage(7, "x".repeat(4096)))
      assert.strictEqual((yield* Fiber.join(waiting)).chat.id, 7)
      yield* call(() => api.sendMessage(7, "🙂".repeat(2048)))
      for (const text of ["x".repeat(4097), "🙂".repeat(2049), " "]) {
        assert.strictEqual((yield* Effect.flip(call(() => api.sendMessage(7, text)))).code, 400)
      }
      assert.strictEqual((yield* bot.sent.all).length, 2)
    })
  )

  it.effect("parses HTML markup and refuses broken markup (R43)", () =>
    Effect.gen(function* () {
      const { api } = yield* setUp
      const send = (text: string) => call(() => api.sendMessage(7, text, { parse_mode: "HTML" }))
      yield* send(`<b>bold</b> <a href="https://example.org">link</a> 1 &lt; 2 ${"x".repeat(4080)}`)
      for (const text of ["<b>open", "a < b", "<b><i>x</b></i>", "<script>x</script>", "</b>"]) {
        assert.strictEqual((yield* Effect.flip(send(text))).code, 400, text)
      }
    })
  )

  it.effect("keeps the command menu, and refuses names and descriptions that are illegal (E6)", () =>
    Effect.gen(function* () {
      const { api, bot } = yield* setUp
      const menu = (command: string, description = "all") => call(() => api.setMyCommands([{ command, description }]))
      yield* menu("update_all")
      assert.deepStrictEqual(yield* bot.commands, [{ command: "update_all", description: "all" }])
      for (const [command, description] of [
        ["update-all", "all"],
        ["Update", "all"],
        ["x".repeat(33), "all"],
        ["update", "no"],
        ["update", "x".repeat(257)]
      ] as const)
        assert.strictEqual((yield* Effect.flip(menu(command, description))).code, 400, command)
      yield* call(() => api.sendChatAction(7, "typing"))
      yield* call(() => api.deleteWebhook())
      assert.deepStrictEqual(
        (yield* bot.calls.all).map((one) => one.method),
        [...Array.from({ length: 6 }, () => "setMyCommands"), "sendChatAction", "deleteWebhook"]
      )
    })
  )

  it.effect("strikes calls with each fault, as often as told (R43, R44)", () =>
    Effect.gen(function* () {
      const { api, bot } = yield* setUp
      const send = call(() => api.sendMessage(7, "hi"))
      yield* bot.fail("sendMessage", fault.tooManyRequests(3))
      const limited = yield* Effect.flip(send)
      assert.instanceOf(limited.cause, GrammyError)
      assert.deepStrictEqual(limited.cause.parameters, { retry_after: 3 })
      const codes: ReadonlyArray<readonly [fault.Fault, number]> = [
        [fault.blocked, 403],
        [fault.conflict, 409],
        [fault.unauthorized, 401],
        [fault.badGateway, 0]
      ]
      for (const [one, code] of codes) {
        yield* bot.fail("*", one, 2)
        yield* poll(api, 0, 0)
        assert.strictEqual((yield* Effect.flip(send)).code, code)
        assert.strictEqual((yield* Effect.flip(send)).code, code)
      }
      yield* bot.fail("getUpdates", fault.conflict)
      assert.strictEqual((yield* Effect.flip(poll(api, 0, 0))).code, 409)
      yield* send
      assert.strictEqual((yield* bot.sent.all).length, 1)
    })
  )

  it.effect("takes a message and yet leaves the caller without an answer (R43)", () =>
    Effect.gen(function* () {
      const { api, bot } = yield* setUp
      yield* bot.fail("sendMessage", fault.cutAfterAccept)
      assert.strictEqual((yield* Effect.flip(call(() => api.sendMessage(7, "cut")))).code, 0)
      yield* bot.fail("sendMessage", fault.silenceAfterAccept)
      const silent = yield* start(call(() => api.sendMessage(7, "silent")))
      yield* bot.sent.at(1)
      assert.isUndefined(silent.pollUnsafe())
      yield* bot.fail("sendMessage", fault.silence)
      const lost = yield* start(call(() => api.sendMessage(7, "lost")))
      yield* bot.calls.at(2)
      assert.isUndefined(lost.pollUnsafe())
      assert.deepStrictEqual(
        (yield* bot.sent.all).map((message) => message.text),
        ["cut", "silent"]
      )
    })
  )

  it.effect("carries files both ways", () =>
    Effect.gen(function* () {
      const { api, bot, telegram } = yield* setUp
      const bytes = Uint8Array.from({ length: 5000 }, (_, index) => index % 256)
      yield* bot.file(7, "document", { name: "a b.bin", mime: "application/octet-stream", bytes })
      const [update] = yield* poll(api, 0, 0)
      const info = yield* call(() => api.getFile(update?.message?.document?.file_id ?? ""))
      assert.strictEqual(info.file_size, 5000)
      const url = `${telegram.url}/file/bot${bot.token}/${encodeURIComponent(info.file_path ?? "")}`
      const download = yield* call(() => fetch(url).then((response) => response.arrayBuffer()))
      assert.deepStrictEqual(new Uint8Array(download), bytes)
      const sent = yield* call(() => api.sendDocument(7, new InputFile(bytes, "out.bin"), { caption: "here" }))
      const back = yield* call(() => api.getFile(sent.document.file_id))
      assert.strictEqual(back.file_size, 5000)
      assert.strictEqual((yield* bot.sent.at(0)).caption, "here")
      assert.strictEqual((yield* Effect.flip(call(() => api.getFile("nothing")))).code, 400)
    })
  )

  it.effect("lets a user press a button once, and shows the edited message", () =>
    Effect.gen(function* () {
      const { api, bot } = yield* setUp
      const reply_markup = { inline_keyboard: [[{ text: "Approve", callback_data: "a:1:0" }]] }
      yield* call(() => api.sendMessage(7, "Approve?", { reply_markup }))
      const message = yield* bot.sent.at(0)
      yield* bot.tap(7, message, "a:1:0")
      const [update] = yield* poll(api, 0, 0)
      const query = update?.callback_query
      assert.strictEqual(query?.data, "a:1:0")
      yield* call(() => api.answerCallbackQuery(query?.id ?? ""))
      assert.strictEqual((yield* Effect.flip(call(() => api.answerCallbackQuery(query?.id ?? "")))).code, 400)
      const edit = call(() => api.editMessageText(7, message.message_id, "Approved."))
      yield* edit
      const { reply_markup: buttons, text } = (yield* bot.message(message.message_id)) ?? {}
      assert.deepStrictEqual([text, buttons], ["Approved.", undefined])
      assert.strictEqual((yield* Effect.flip(edit)).code, 400)
    })
  )

  it.effect("takes one reaction to a message of the chat, of its own list of emoji", () =>
    Effect.gen(function* () {
      const { api, bot } = yield* setUp
      yield* bot.text(7, "hello")
      const [update] = yield* poll(api, 0, 0)
      const message_id = update?.message?.message_id ?? 0
      const emoji = (one: string) => ({ type: "emoji" as const, emoji: one as "👀" })
      for (const [chat, id, reaction] of [
        [7, message_id + 1, [emoji("👀")]],
        [8, message_id, [emoji("👀")]],
        [7, message_id, [emoji("✅")]],
        [7, message_id, [emoji("👀"), emoji("👍")]],
        [7, message_id, ["👀" as never]]
      ] as const)
        assert.strictEqual((yield* Effect.flip(call(() => api.setMessageReaction(chat, id, [...reaction])))).code, 400)
      yield* call(() => api.setMessageReaction(7, message_id, [emoji("👀")]))
      assert.deepStrictEqual(yield* bot.reaction(message_id), ["👀"])
      yield* call(() => api.setMessageReaction(7, message_id, []))
      assert.deepStrictEqual(yield* bot.reaction(message_id), [])
    })
  )

  it.effect("keeps bots apart", () =>
    Effect.gen(function* () {
      const { api, bot, telegram } = yield* setUp
      const other = telegram.bot("2000:secret")
      yield* bot.fail("*", fault.unauthorized, 10)
      yield* bot.text(7, "for the first")
      assert.deepStrictEqual(yield* poll(new Api(other.token, { apiRoot: telegram.url }), 0, 0), [])
      yield* call(() => new Api(other.token, { apiRoot: telegram.url }).sendMessage(8, "fine"))
      assert.strictEqual((yield* Effect.flip(call(() => api.sendMessage(7, "x")))).code, 401)
      assert.strictEqual((yield* other.sent.all).length, 1)
    })
  )
})
