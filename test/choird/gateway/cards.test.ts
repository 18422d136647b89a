import { assert, describe, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
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
import { database } from "../../support/choird.ts"
import { append, decide, ended, find, request } from "../../support/confirmations.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"
import { CONFIG, PHONE, storesWith } from "../../support/stores.ts"
import { nthPoll } from "../../support/telegramBot.ts"
import * as fault from "../../support/testing/TelegramFaults.ts"

const SUMMARY = 'mail.send {"to":"ada@example.org"}'

describe("cards of approvals on Telegram", () => {
  layer(storesWith({ ...CONFIG, dms: DMS }).pipe(Layer.provideMerge(database)), {
    excludeTestServices: true,
    timeout: LAYER_MS_MAX
  })((it) => {
    it.effect("show the facts with two buttons; a tap is answered at once, decides, and leaves the outcome", () =>
      Effect.gen(function* () {
        const { bot, run } = yield* makeBot
        yield* start(run)
        const { approval_id } = yield* asked(PHONE)
        const card = yield* cardOf(bot, approval_id)
        assert.match(card.text ?? "", /^◆ agent-\d+ asks for your approval \(number \d+\)\.\ntool: mail\.send\n/u)
        const digits = /^a:\d+:([\w-]{22})$/u.exec(dataOf(card, "Approve"))?.[1]
        assert.deepStrictEqual(buttonsOf(card).slice(0, 2), [
          { text: "Approve", callback_data: `a:${approval_id}:${digits}`, style: "success" },
          { text: "Reject", callback_data: `r:${approval_id}:${digits}`, style: "danger" }
        ])
        yield* bot.tap(1, card, dataOf(card, "Approve"))
        yield* nthToast(bot, 1)
        assert.deepStrictEqual(yield* toasts(bot), [`Approved ${approval_id}: ${SUMMARY}.`])
        assert.deepInclude(yield* find(approval_id), { status: "approved", resolved_by: "gateway:bot/phone" })
        const now = yield* edited(bot, card, approval_id)
        assert.include(now, `◆ Approved in the chat phone: ${SUMMARY} (approval ${approval_id}).`)
        assert.include(now, "tool: mail.send")
      })
    )

    it.effect("take a tap from who tapped, whatever chat the button is in", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { bot, run } = yield* makeBot
        yield* start(run)
        const { agent_id, approval_id } = yield* asked(TABLET)
        const card = yield* cardOf(bot, approval_id)
        const data = dataOf(card, "Approve")
        // A stranger and a person of another agent hold a copy of the card.
        yield* bot.tap(99, card, data)
        yield* bot.tap(4, card, data)
        yield* nthToast(bot, 1)
        assert.deepStrictEqual(yield* toasts(bot), [`There is no approval ${approval_id} here.`])
        const strangers = yield* sql`SELECT detail FROM choir_control.audit WHERE action = 'gateway.tap'`
        assert.deepStrictEqual(strangers, [{ detail: { refused: "STRANGER", user_id: "99" } }])
        for (const bad of ["", "a", `a:${approval_id}`, `a:${approval_id}:`, `x:${approval_id}:00000000`])
          yield* bot.tap(3, card, bad)
        yield* nthToast(bot, 6)
        yield* bot.tap(3, card, `a:${approval_id}:00000000`)
        yield* nthToast(bot, 7)
        assert.match(String((yield* toasts(bot)).at(-1)), /^I cannot match this button with the card of approval/u)
        assert.strictEqual((yield* find(approval_id)).status, "pending")
        // A regular DM decides about its own agent.
        yield* bot.tap(3, card, data)
        yield* nthToast(bot, 8)
        assert.deepInclude(yield* find(approval_id), {
          status: "approved",
          resolved_by: "gateway:bot/tablet",
          agent_id
        })
      })
    )

    it.effect("reach one decision under 100 racing taps of two people and choirctl (R52)", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { bot, run } = yield* makeBot
        const fiber = yield* start(run)
        const { approval_id } = yield* asked(PHONE)
        const card = yield* cardOf(bot, approval_id)
        yield* noted(`approval/${approval_id}`)
        // They wait for choird, which gets them in one batch.
        yield* Fiber.interrupt(fiber)
        yield* Effect.forEach(
          Array.from({ length: 98 }, (_, index) => index),
          (index) => bot.tap(index % 2 === 0 ? 1 : 3, card, dataOf(card, index % 3 === 0 ? "Reject" : "Approve"))
        )
        yield* start(run)
        const outcomes = yield* Effect.all(
          [Effect.exit(decide(approval_id, "rejected")), Effect.exit(decide(approval_id, "approved"))],
          { concurrency: "unbounded" }
        )
        yield* nthToast(bot, 98)
        assert.isAtMost(outcomes.filter(({ _tag }) => _tag === "Success").length, 1)
        const settled = yield* find(approval_id)
        const signals = yield* sql`SELECT 1 FROM choir_control.signals
          WHERE kind = 'ApprovalResolved' AND payload ->> 'approval_id' = ${approval_id}`
        assert.lengthOf(signals, 1)
        assert.include(["approved", "rejected"], settled.status)
        const edits = yield* sql`SELECT 1 FROM choir_control.outbox WHERE source_id = ${`approval/${approval_id}/card`}`
        assert.lengthOf(edits, 1)
        assert.match(
          yield* edited(bot, card, approval_id),
          settled.status === "approved" ? /^◆ Approved/u : /^◆ Rejected/u
        )
      })
    )

    it.effect("are decided after a restart of choird, and by choirctl, which edits the card and tells the person", () =>
      Effect.gen(function* () {
        const { bot, run } = yield* makeBot
        const first = yield* start(run)
        const one = yield* asked(PHONE)
        const card = yield* cardOf(bot, one.approval_id)
        const two = yield* asked(PHONE)
        const other = yield* cardOf(bot, two.approval_id)
        yield* noted(`approval/${two.approval_id}`)
        yield* Fiber.interrupt(first)
        yield* bot.tap(1, card, dataOf(card, "Reject"))
        yield* decide(two.approval_id, "approved")
        yield* start(run)
        yield* nthToast(bot, 1)
        assert.strictEqual((yield* find(one.approval_id)).status, "rejected")
        assert.match(yield* edited(bot, card, one.approval_id), /^◆ Rejected in the chat phone/u)
        assert.match(yield* edited(bot, other, two.approval_id), /^◆ Approved with choirctl/u)
        yield* bot.sent.first(({ text }) => text === `◆ Approved: ${SUMMARY} (approval ${two.approval_id}).`)
      })
    )

    it.effect("allow more calls like it, in the words of the card, for an admin alone; /grants revoke ends that", () =>
      Effect.gen(function* () {
        const { bot, run } = yield* makeBot
        yield* start(run)
        const { agent_id, approval_id, call, talk } = yield* asked(PHONE)
        const card = yield* cardOf(bot, approval_id)
        const words = 'calls of mail.send with to: "ada@example.org", and no other arguments'
        assert.match(
          card.text ?? "",
          new RegExp(`allow up to 20 more, for this agent until [0-9-]{10}: ${words}\\.`, "u")
        )
        const data = buttonsOf(card)[2]?.callback_data ?? ""
        assert.match(data, /^g:\d+:[\w-]{22}$/u)
        yield* bot.tap(3, card, data)
        yield* nthToast(bot, 1)
        // No job asks, so that the card has no such button, whatever the data of a tap says.
        yield* bot.tap(1, card, data.replace("g:", "j:"))
        yield* nthToast(bot, 2)
        assert.strictEqual((yield* find(approval_id)).status, "pending")
        yield* bot.tap(1, card, data)
        yield* nthToast(bot, 3)
        const said = yield* toasts(bot)
        assert.strictEqual(said[0], "Only an admin may allow calls for the whole agent, beyond one job.")
        assert.match(String(said[1]), /^I cannot match this button/u)
        assert.match(String(said[2]), /^Approved .* Up to 20 more calls like it are allowed/u)
        assert.include(yield* edited(bot, card, approval_id), "Up to 20 more calls like it are allowed: /grants")
        const approvals = yield* Approvals
        const [grant] = yield* approvals.grants({ agent_id, all: false })
        assert.deepInclude(grant, { words, approval_id, created_by: "gateway:bot/phone" })
        assert.deepInclude(yield* request(talk, call), { status: "approved" })
        const ended = yield* approvals.revokeGrant({
          grant_id: grant?.grant_id ?? "",
          agent_id,
          who: "gateway:bot/phone"
        })
        assert.isNotNull(ended?.revoked_at)
      })
    )

    it.effect("say that the time is up", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { bot, run } = yield* makeBot
        yield* start(run)
        const { approval_id } = yield* asked(PHONE)
        const card = yield* cardOf(bot, approval_id)
        yield* sql`UPDATE choir_control.pending_approvals SET expires_at = now() - interval '1 second'
          WHERE id = ${BigInt(approval_id)}`
        yield* bot.tap(1, card, dataOf(card, "Approve"))
        yield* nthToast(bot, 1)
        assert.match(String((yield* toasts(bot))[0]), /^Approval \d+ has expired and nothing was done\./u)
        const text = `◆ Approval ${approval_id} timed out: ${SUMMARY}. It was rejected automatically.`
        assert.include(yield* edited(bot, card, approval_id), text)
        yield* bot.sent.first((message) => message.text === text)
        // Nobody decided it, which a button that is not of the card says too.
        yield* bot.tap(1, card, `a:${approval_id}:00000000`)
        yield* nthToast(bot, 2)
        assert.match(String((yield* toasts(bot)).at(-1)), /so nothing was decided\. It has expired\.$/u)
      })
    )

    it.effect("say that the call is over where it ended before a decision, as one that is stopped does", () =>
      Effect.gen(function* () {
        const { bot, run } = yield* makeBot
        yield* start(run)
        const { approval_id, call, talk } = yield* asked(PHONE)
        const card = yield* cardOf(bot, approval_id)
        talk.commit(ended(call, "cancelled"))
        yield* append(talk, 3)
        const now = yield* edited(bot, card, approval_id)
        assert.include(now, `◆ Approval ${approval_id} is closed: ${SUMMARY}. Its call ended before a decision`)
        assert.deepInclude(yield* find(approval_id), { status: "expired" })
      })
    )

    it.effect("show whom a long request reaches and a part of the rest, and all of it as a file before them", () =>
      Effect.gen(function* () {
        const { bot, run } = yield* makeBot
        const long = { to: "ada@example.org", body: "long ".repeat(4000) }
        yield* bot.fail("sendDocument", fault.tooManyRequests(0))
        yield* start(run)
        const { approval_id } = yield* asked(PHONE, long)
        const card = yield* cardOf(bot, approval_id)
        assert.isAtMost(card.text?.length ?? 0, 4096)
        assert.include(card.text, '"to": "ada@example.org"\n"body": "long long ')
        assert.match(card.text ?? "", /… \(and \d+ more characters\)\n/u)
        assert.include(card.text, `all of it is in approval-${approval_id}.txt above`)
        const sent = yield* bot.sent.all
        const file = sent.find(({ document }) => document !== undefined)
        assert.isBelow(file?.message_id ?? Infinity, card.message_id)
        assert.include(file?.caption, `The whole text of approval ${approval_id}`)
        yield* bot.tap(1, card, dataOf(card, "Approve"))
        yield* nthToast(bot, 1)
        assert.strictEqual((yield* find(approval_id)).status, "approved")
      })
    )

    it.effect("are not a yes to what the file of them could not show", () =>
      Effect.gen(function* () {
        const { bot, run } = yield* makeBot
        yield* bot.fail("sendDocument", { kind: "reply", reply: { ok: false, error_code: 400, description: "Bad" } })
        yield* start(run)
        const { approval_id } = yield* asked(PHONE, { to: "ada@example.org", body: "long ".repeat(1000) })
        const card = yield* cardOf(bot, approval_id)
        yield* bot.tap(1, card, dataOf(card, "Approve"))
        yield* nthToast(bot, 1)
        assert.match(String((yield* toasts(bot))[0]), /^Approval \d+ is too long for a chat/u)
        assert.strictEqual((yield* find(approval_id)).status, "pending")
      })
    )

    it.effect("that a crash doubled lose their buttons at the next tap; one that is gone leaves a message", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { bot, run } = yield* makeBot
        const first = yield* start(run)
        yield* nthPoll(bot, 1)
        const { approval_id } = yield* asked(PHONE)
        const card = yield* cardOf(bot, approval_id)
        const source_id = `approval/${approval_id}`
        yield* noted(source_id)
        yield* Fiber.interrupt(first)
        yield* sql`UPDATE choir_control.outbox SET delivered_at = NULL, sent_id = NULL WHERE source_id = ${source_id}`
        yield* start(run)
        const again = yield* bot.sent.first(
          ({ message_id, text }) => message_id !== card.message_id && text === card.text
        )
        yield* bot.tap(1, again, dataOf(again, "Approve"))
        assert.match(yield* edited(bot, again, approval_id), /^◆ Approved/u)
        yield* bot.tap(1, card, dataOf(card, "Reject"))
        yield* nthToast(bot, 2)
        const stripped = yield* Effect.repeat(Effect.andThen(sql`SELECT 1`, bot.message(card.message_id)), {
          until: (now) => now?.reply_markup === undefined
        })
        assert.include(stripped?.text, "Tap a button")
        const approvals = yield* Approvals
        assert.strictEqual((yield* approvals.get(approval_id)).status, "approved")
      })
    )
  })
})
