/** Which message a tap or a reply is on decides what it counts for (D60). */
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { CardTaps } from "#src/choird/chatcommands/CardTaps.ts"
import {
  asked,
  buttonsOf,
  cardOf,
  dataOf,
  DMS,
  edited,
  makeBot,
  noted,
  nthToast,
  start,
  TABLET,
  toasts
} from "../../support/cards.ts"
import * as chats from "../../support/chatDecisions.ts"
import { database } from "../../support/choird.ts"
import { find, request } from "../../support/confirmations.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"
import { CONFIG, PHONE, storesWith } from "../../support/stores.ts"
import type { TelegramBot } from "../../support/testing/Telegram.ts"
import type { SentMessage } from "../../support/testing/telegramMethods.ts"

const UNMATCHED = /^I cannot match this button with the card of approval \d+, so nothing was decided\./u

/** Any other message than this one. */
const others = (card: SentMessage, index: number): SentMessage => ({
  ...card,
  message_id: card.message_id + 1 + (index % 7),
  chat: { ...card.chat, id: index % 3 === 0 ? card.chat.id : 3 }
})

/** A person writes with a reply to a message of the bot's. */
const replying = (bot: TelegramBot, user: number, text: string, to: SentMessage) =>
  bot.update({
    message: {
      message_id: 9000 + to.message_id,
      chat: { id: user, type: "private" },
      from: { id: user, is_bot: false },
      text,
      reply_to_message: to
    }
  })

const answered = (bot: TelegramBot, text: RegExp) => bot.sent.first((message) => text.test(message.text ?? ""))

describe("a tap or a reply", () => {
  layer(storesWith({ ...CONFIG, dms: DMS }).pipe(Layer.provideMerge(database)), {
    excludeTestServices: true,
    timeout: LAYER_MS_MAX
  })((it) => {
    it.effect("decides nothing on another message than the card, in 100 racing taps with the card's own data", () =>
      Effect.gen(function* () {
        const { bot, run } = yield* makeBot
        const first = yield* start(run)
        const { approval_id } = yield* asked(PHONE)
        const card = yield* cardOf(bot, approval_id)
        yield* noted(`approval/${approval_id}`)
        yield* Fiber.interrupt(first)
        const data = buttonsOf(card).map(({ callback_data }) => callback_data)
        yield* Effect.forEach(
          Array.from({ length: 99 }, (_, index) => index),
          (index) => bot.tap(1, others(card, index), data[index % data.length] ?? ""),
          { concurrency: "unbounded" }
        )
        // An old message, and one of an inline bot, come without any.
        yield* bot.update({
          callback_query: { id: "none", from: { id: 1, is_bot: false }, data: dataOf(card, "Approve") }
        })
        yield* start(run)
        yield* nthToast(bot, 100)
        for (const said of yield* toasts(bot)) assert.match(String(said), UNMATCHED)
        assert.strictEqual((yield* find(approval_id)).status, "pending")
        yield* bot.tap(1, card, dataOf(card, "Approve"))
        assert.match(yield* edited(bot, card, approval_id), /^◆ Approved/u)
      })
    )

    it.effect("needs digits that no two cards share and that do not follow from what is asked", () =>
      Effect.gen(function* () {
        const { bot, run } = yield* makeBot
        yield* start(run)
        const one = yield* asked(PHONE)
        const two = yield* asked(PHONE)
        const first = yield* cardOf(bot, one.approval_id)
        const second = yield* cardOf(bot, two.approval_id)
        const [own = "", other = ""] = [first, second].map((card) => dataOf(card, "Approve").split(":")[2])
        assert.notStrictEqual(own, other)
        const { hash } = yield* find(one.approval_id)
        const forged = [`a:${one.approval_id}:${other}`, `a:${one.approval_id}:${hash.slice(0, 8)}`]
        for (const data of forged) yield* bot.tap(1, first, data)
        yield* nthToast(bot, forged.length)
        for (const said of yield* toasts(bot)) assert.match(String(said), UNMATCHED)
        assert.strictEqual((yield* find(one.approval_id)).status, "pending")
      })
    )

    it.effect("on a card of an earlier Choir is refused in words that name the command, which works", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { bot, run } = yield* makeBot
        yield* start(run)
        const { approval_id } = yield* asked(PHONE)
        const card = yield* cardOf(bot, approval_id)
        yield* noted(`approval/${approval_id}`)
        const { hash } = yield* find(approval_id)
        const data = `a:${approval_id}:${hash.slice(0, 8)}`
        yield* sql`UPDATE choir_control.outbox SET sent_chat = NULL,
            form = jsonb_build_object('buttons', jsonb_build_array(jsonb_build_array(jsonb_build_object('text', 'Approve', 'data', ${data}::text))))
          WHERE source_id = ${`approval/${approval_id}`}`
        yield* bot.tap(1, card, data)
        yield* nthToast(bot, 1)
        const [said] = yield* toasts(bot)
        assert.match(String(said), UNMATCHED)
        assert.include(String(said), `To decide: /approve ${approval_id} or /reject ${approval_id}`)
        assert.strictEqual((yield* find(approval_id)).status, "pending")
        yield* bot.text(1, `/approve ${approval_id}`)
        yield* answered(bot, new RegExp(`^◆ Approved ${approval_id}: `, "u"))
      })
    )

    it.effect("with /approve or /reject decides the request of that card, whatever else waits", () =>
      Effect.gen(function* () {
        const { bot, run } = yield* makeBot
        yield* start(run)
        const one = yield* asked(PHONE)
        const two = yield* asked(PHONE)
        const first = yield* cardOf(bot, one.approval_id)
        const second = yield* cardOf(bot, two.approval_id)
        for (const { approval_id } of [one, two]) yield* noted(`approval/${approval_id}`)
        yield* replying(bot, 1, "/approve", first)
        yield* answered(bot, new RegExp(`^◆ Approved ${one.approval_id}: `, "u"))
        yield* replying(bot, 1, "/reject too late", second)
        yield* answered(bot, new RegExp(`^◆ Rejected ${two.approval_id}: `, "u"))
        assert.deepInclude(yield* find(two.approval_id), { status: "rejected", reason: "too late" })
        // The card has its outcome now, and is still about that request.
        yield* replying(bot, 1, "/approve", second)
        yield* answered(bot, new RegExp(`^◆ Approval ${two.approval_id} was already rejected by you`, "u"))
      })
    )

    it.effect("with /approve to a message that asks for nothing decides nothing, though only one request waits", () =>
      Effect.gen(function* () {
        const { bot, run } = yield* makeBot
        yield* start(run)
        const { approval_id } = yield* asked(PHONE)
        const card = yield* cardOf(bot, approval_id)
        yield* noted(`approval/${approval_id}`)
        yield* replying(bot, 1, "/approve", others(card, 3))
        const said = yield* answered(bot, /^◆ The message that you replied to asks for no approval\./u)
        assert.include(said.text, `${approval_id}: `)
        assert.strictEqual((yield* find(approval_id)).status, "pending")
        // Nor does somebody who may not decide it.
        yield* replying(bot, 4, "/approve", { ...card, chat: { ...card.chat, id: 4 } })
        yield* bot.sent.first(({ chat }) => chat.id === 4)
        assert.strictEqual((yield* find(approval_id)).status, "pending")
      })
    )

    it.effect("counts with the rights of who does it, in the chat where the card is", () =>
      Effect.gen(function* () {
        const { bot, run } = yield* makeBot
        yield* start(run)
        const { approval_id } = yield* asked(TABLET)
        const card = yield* cardOf(bot, approval_id)
        yield* noted(`approval/${approval_id}`)
        yield* replying(bot, 3, "/approve", card)
        yield* answered(bot, new RegExp(`^◆ Approved ${approval_id}: `, "u"))
        assert.deepInclude(yield* find(approval_id), { status: "approved", resolved_by: "gateway:bot/tablet" })
      })
    )

    it.effect("that is faster than choird's note of the card's delivery waits for the note", () =>
      Effect.gen(function* () {
        const approvals = yield* Approvals
        const taps = yield* CardTaps
        const { agent_id, talk } = yield* chats.asked(PHONE, "later-tapped")
        chats.listen(agent_id)
        const { approval_id } = yield* request(talk, "later-tapped")
        const sql = yield* SqlClient.SqlClient
        const [row] = yield* sql<{ readonly id: string }>`SELECT outbox_id::text AS id FROM choir_control.outbox
          WHERE source_id = ${`approval/${approval_id}`}`
        const [data = ""] = (yield* approvals.card(approval_id))?.data ?? []
        const on = { chat_id: `chat of ${PHONE}`, message_id: row?.id ?? "" }
        const tap = yield* start(taps.tap(chats.BOT, { id: "early", user_id: "1", data, on }))
        yield* chats.deliver(PHONE)
        assert.match((yield* Fiber.join(tap))?.text ?? "", /^Approved/u)
      }).pipe(chats.alive)
    )
  })
})
