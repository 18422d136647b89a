/**
 * P5 at Telegram: how long a person sees nothing, from the update with their message to the first action of the bot, and from the model's first
 * token to the first draft. The model needs 800 ms to begin and writes 50 tokens a second; choird and the agent are processes of their own, on
 * the embedded database, and the Bot API is the double of the tests.
 */
import { Clock, Effect } from "effect"
import { botConfig } from "../test/support/botConfig.ts"
import { makeInstallation } from "../test/support/installation.ts"
import { answer, makeProviderOf, type Reply } from "../test/support/testing/Provider.ts"
import { makeTelegram } from "../test/support/testing/Telegram.ts"
import { atMost, place, type Row, spread } from "./Row.ts"

const TOKENS_PER_SECOND = 50
/** The model reads and thinks for so long. */
const BEGINS_MS = 800
const TURNS = 20
/** Turns before those that count. */
const FIRST = -3
const WORDS = 60
const USER = 4711
const TOKEN = "1000:secret"

export const telegramSigns: Effect.Effect<ReadonlyArray<Row>, unknown> = Effect.gen(function* () {
  const provider = yield* makeProviderOf({ tokens_per_second: TOKENS_PER_SECOND })
  let began_ms = 0
  const slow: Reply = Effect.gen(function* () {
    yield* Effect.sleep(BEGINS_MS)
    // The first token is written after its own time.
    began_ms = (yield* Clock.currentTimeMillis) + 1000 / TOKENS_PER_SECOND
    return yield* answer("word ".repeat(WORDS))
  })
  yield* provider.otherwise(() => slow)
  const telegram = yield* makeTelegram
  const bot = telegram.bot(TOKEN)
  const choir = yield* makeInstallation({
    endpoint: provider.endpoint,
    secrets: { "bot-token": TOKEN },
    config: botConfig(telegram.url, { phone: { user_id: String(USER), admin: true } })
  })
  yield* choir.start
  yield* choir.build
  yield* choir.api.agents.start({ params: choir.params, payload: { dm: "phone" as never } })
  const [signs, typings, words]: [Array<number>, Array<number>, Array<number>] = [[], [], []]
  for (let turn = FIRST; turn < TURNS; turn++) {
    yield* Effect.sleep("2 seconds")
    const [before, sent] = [(yield* bot.calls.all).length, (yield* bot.sent.all).length]
    const asked_ms = yield* Clock.currentTimeMillis
    // A poll waits for it, and is answered at once.
    yield* bot.text(USER, "Say something long.")
    yield* bot.sent.first(() => true, sent)
    const calls = (yield* bot.calls.all).slice(before)
    const first = (...methods: ReadonlyArray<string>) =>
      calls.find(({ method }) => methods.includes(method))?.at_ms ?? Infinity
    if (turn < 0) continue
    signs.push(first("setMessageReaction", "sendChatAction") - asked_ms)
    typings.push(first("sendChatAction") - asked_ms)
    words.push(first("sendMessageDraft") - began_ms)
  }
  yield* Effect.sync(() =>
    process.stderr.write(
      `P5: at Telegram, ms to the first sign ${spread(signs)}, to typing ${spread(typings)}, from first token to first draft ${spread(words)}\n`
    )
  )
  return [
    atMost("P5", "first sign at Telegram, p90", place(signs, 0.9), "ms", 300),
    atMost("P5", "typing at Telegram, p90", place(typings, 0.9), "ms", 300),
    atMost("P5", "first draft at Telegram after the model's first token, p90", place(words, 0.9), "ms", 200)
  ]
}).pipe(Effect.scoped)
