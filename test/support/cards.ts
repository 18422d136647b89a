/** People who are asked by cards at a bot of the Telegram double, and what they tap there. */
import { assert } from "@effect/vitest"
import { Effect, Layer, Redacted, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { type AgentId, ResourceName } from "#schema/Ids.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { ChatSettings } from "#src/choird/chatcommands/ChatSettings.ts"
import { GatewayHealth } from "#src/choird/gateway/GatewayHealth.ts"
import { runTelegram } from "#src/choird/telegram/Telegram.ts"
import { TelegramApi } from "#src/choird/telegram/TelegramApi.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { agentView } from "./agentView.ts"
import { INPUT, append, proposed, request, requested } from "./confirmations.ts"
import { BINDINGS, CONFIG, message, newTalk, PHONE, userMsg } from "./stores.ts"
import { gateways } from "./telegramBot.ts"
import { makeTelegram, type TelegramBot } from "./testing/Telegram.ts"
import type { SentMessage } from "./testing/telegramMethods.ts"

const BOT = ResourceName.make("bot")
export const TABLET = ResourceName.make("tablet")
const OTHER = ResourceName.make("other")
export const DMS = {
  ...CONFIG.dms,
  phone: { gateway: "bot", user_id: "1", admin: true },
  tablet: { gateway: "bot", user_id: "3" },
  other: { gateway: "bot", user_id: "4" }
}
const PEOPLE = [
  { name: PHONE, user_id: "1", admin: true },
  { name: TABLET, user_id: "3", admin: false },
  { name: OTHER, user_id: "4", admin: false }
]

/** Every agent is at the phone and the tablet, and none at the other DM. */
const viewOf = (agent_id: AgentId) =>
  agentView(agent_id, { bindings: { ...BINDINGS, dm: PHONE, dms: [PHONE, TABLET] } })
const known = new Set<AgentId>()
const lifecycle = Layer.mock(Lifecycle, {
  list: Effect.sync(() => [...known].map(viewOf)),
  view: (agent_id) => Effect.sync(() => viewOf(agent_id)),
  changes: Stream.empty
})

/** Starts work beside the test. */
export const start = Effect.forkChild({ startImmediately: true })

let bots = 0

/**
 * A bot of its own, whose updates have ids that no other's have, with what a restart of choird runs again. A test that ends between a
 * message and the mark of its delivery leaves the message to be sent again, which is not for the bot of the next one. No earlier agent is there.
 */
export const makeBot = Effect.gen(function* () {
  yield* Effect.flatMap(Outbox, ({ abandon }) => abandon([]))
  const telegram = yield* makeTelegram
  bots += 1
  known.clear()
  const bot = telegram.bot(`${bots}:secret`)
  const api = TelegramApi.layer(Redacted.make(bot.token), telegram.url)
  const services = gateways.pipe(
    Layer.provideMerge(Layer.mergeAll(api, lifecycle, Layer.mock(Models, {}), ChatSettings.layer, GatewayHealth.layer))
  )
  return { bot, run: Effect.provide(runTelegram(BOT, PEOPLE), Layer.fresh(services)) }
})

let turns = 0
/** A session of a new agent, one call of which waits for a person who wrote from a DM. */
export const asked = Effect.fnUntraced(function* (dm: ResourceName, input: object = INPUT) {
  const sql = yield* SqlClient.SqlClient
  const talk = yield* newTalk
  const { agent_id } = talk.caller
  known.add(agent_id)
  turns += 1
  const { client_id, text } = message(agent_id, `turn-${turns}`)
  const rows = yield* sql<{ readonly inbox_id: string }>`INSERT INTO choir_control.inbox
      (gateway, client_id, agent_id, dm, text, attachments)
    VALUES (${BOT}, ${client_id}, ${agent_id}, ${dm}, ${text}, '[]'::jsonb) RETURNING inbox_id::text`
  const call = `call-${turns}`
  const draft = proposed(call) as { payload: { tool_calls: ReadonlyArray<object> } }
  const open = requested(call) as { payload: object }
  talk.commit(
    userMsg(rows[0]?.inbox_id ?? "0"),
    { ...draft, payload: { ...draft.payload, tool_calls: [{ ...draft.payload.tool_calls[0], input }] } } as never,
    { ...open, payload: { ...open.payload, input } } as never
  )
  yield* append(talk, 0)
  const { approval_id } = yield* request(talk, call, { input })
  return { approval_id, agent_id, call, talk }
})

interface Keyboard {
  readonly inline_keyboard: ReadonlyArray<
    ReadonlyArray<{ readonly text: string; readonly callback_data: string; readonly style?: string }>
  >
}
/** The buttons of a card. */
export const buttonsOf = (card: SentMessage) => (card.reply_markup as Keyboard).inline_keyboard.flat()
/** The data of the button with this text. */
export const dataOf = (card: SentMessage, text: string) =>
  buttonsOf(card).find((button) => button.text === text)?.callback_data ?? ""

/** The card of an approval, once it was sent. */
export const cardOf = (bot: TelegramBot, approval_id: string) =>
  bot.sent.first(({ text = "" }) => text.includes(`(number ${approval_id}).`) && text.includes("Tap a button"))

/** The answers to all taps so far. */
export const toasts = (bot: TelegramBot) =>
  Effect.map(bot.calls.all, (calls) =>
    calls.filter(({ method }) => method === "answerCallbackQuery").map(({ parameters }) => parameters["text"])
  )
/** Waits for the n-th answer to a tap, from 1. */
export const nthToast = (bot: TelegramBot, count: number) => {
  const seen = new Set<unknown>()
  return bot.calls.first((call) => call.method === "answerCallbackQuery" && seen.add(call).size === count)
}

/** Waits until the gateway noted that it sent a message of choird's own. */
export const noted = Effect.fnUntraced(function* (source_id: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = sql`SELECT 1 FROM choir_control.outbox WHERE source_id = ${source_id} AND delivered_at IS NOT NULL`
  yield* Effect.repeat(rows, { until: (found) => found.length === 1 })
})

/** The card once its edit is noted as delivered. */
export const edited = Effect.fnUntraced(function* (bot: TelegramBot, card: SentMessage, approval_id: string) {
  yield* noted(`approval/${approval_id}/card`)
  const now = yield* bot.message(card.message_id)
  assert.isUndefined(now?.reply_markup)
  return now?.text ?? ""
})
