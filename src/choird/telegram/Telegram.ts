/** One bot: a long poll for incoming messages, and an ordered reader of each DM's outbox for outgoing ones (E6, R42-R44). */
import { Deferred, Effect, Result } from "effect"
import type { ResourceName } from "#schema/Ids.ts"
import { logDeath } from "#src/shared/background.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { CardTaps } from "#src/choird/chatcommands/CardTaps.ts"
import type { ChannelChat, ChannelDm } from "#src/choird/gateway/Channel.ts"
import type { Chat } from "./Chat.ts"
import { makeSendMessage } from "./deliverMessage.ts"
import { endedJobs, makeJobTopics } from "./jobTopics.ts"
import { makePaces } from "./Pace.ts"
import { GatewayHealth } from "#src/choird/gateway/GatewayHealth.ts"
import { Gateways } from "#src/choird/gateway/Gateways.ts"
import { asConfigured, findMoved, followMoves } from "./movedChats.ts"
import { makePollWatch, type PollWatch } from "./PollWatch.ts"
import { menuOf } from "#src/choird/chatcommands/readCommand.ts"
import type { TelegramTap } from "./readUpdates.ts"
import { showReactions } from "./showReactions.ts"
import { showDrafts, showTyping } from "./signsOfLife.ts"
import { speak, stageFiles } from "#src/choird/gateway/speak.ts"
import { TelegramApi } from "./TelegramApi.ts"
import { isHopeless, isUnreachable, pauseAfter } from "./TelegramFailed.ts"
import { CHANNEL_RETRY, tolerant } from "#src/choird/gateway/tolerant.ts"

const answer = Effect.fnUntraced(function* (gateway: ResourceName, tap: TelegramTap) {
  const api = yield* TelegramApi
  const taps = yield* CardTaps
  const said = yield* taps.tap(gateway, tap)
  if (said === undefined) return
  const { callback_id, on } = tap
  // A card that a crash doubled keeps its buttons, until somebody taps one of them.
  const dropped = said.loud && on !== undefined ? api.dropButtons(on.chat_id, on.message_id) : Effect.void
  // Telegram may be slow or refuse the answer to an old tap; the decision stands, and the card tells of it.
  yield* Effect.andThen(Effect.ignore(api.answerTap(callback_id, said.text, said.loud)), Effect.ignore(dropped)).pipe(
    logDeath("the answer to a tap"),
    Effect.forkChild({ startImmediately: true })
  )
})

/** Each tap of a batch is decided and answered before anything else of it, since a person waits with a finger on the screen. */
const answerTaps = (gateway: ResourceName, taps: ReadonlyArray<TelegramTap>) =>
  Effect.forEach(taps, (tap) => answer(gateway, tap), { discard: true })

/** Polls forever. Only the poll after the one whose messages were stored confirms an update. */
const poll = Effect.fnUntraced(function* (gateway: ResourceName, chats: ReadonlyArray<Chat>, watch: PollWatch) {
  const api = yield* TelegramApi
  const gateways = yield* Gateways
  const health = yield* GatewayHealth
  let from: number | undefined
  let failures = 0
  for (;;) {
    const polled = yield* Effect.result(
      tolerant(
        Effect.gen(function* () {
          const batch = yield* api.updates(from)
          if (batch === undefined) return undefined
          yield* answerTaps(gateway, batch.taps)
          yield* followMoves(chats, batch.moves)
          const arrivals = batch.arrivals.map((arrival) => asConfigured(chats, arrival))
          yield* gateways.receive(gateway, arrivals, api.download)
          from = batch.update_id + 1
          return arrivals
        })
      )
    )
    if (Result.isSuccess(polled)) {
      failures = 0
      yield* health.report(gateway, { ok: true, detail: "polling" })
      yield* watch.heard(polled.success ?? [])
      continue
    }
    const { failure } = polled
    if (failures === 0) yield* Effect.logWarning(failure.message, { gateway })
    yield* health.report(gateway, { ok: false, detail: failure.message })
    yield* watch.failed(failure, failures)
    yield* Effect.sleep(pauseAfter(failure, failures))
    failures += 1
  }
})

/** A chat as the delivery knows it. The topic of a job is closed once it ended, which may be without a further message. */
const makeChannelChat = Effect.gen(function* () {
  const events = yield* EventStore
  const sendMessage = yield* makeSendMessage
  const topics = yield* makeJobTopics
  return (chat: Chat): ChannelChat => ({
    dm: chat.dm,
    left: chat.left,
    send: (row) => sendMessage(chat, row),
    settle: { work: topics.closeEnded(chat), wakes: endedJobs(events) }
  })
})

/** Sends Telegram the menus once in choird's life; nothing waits for them (E6). An admin's chat has a menu of its own. */
const announce = Effect.fnUntraced(function* (dms: ReadonlyArray<ChannelDm>) {
  const api = yield* TelegramApi
  const set = (...menu: Parameters<typeof api.menu>) =>
    // A chat that the bot does not know yet has no menu either.
    Effect.retry(api.menu(...menu), {
      schedule: CHANNEL_RETRY,
      while: (failure) => !isUnreachable(failure) && !isHopeless(failure)
    }).pipe(Effect.catch((failure) => Effect.logInfo("setting the chat menu failed", { reason: failure.message })))
  yield* set(menuOf(false))
  for (const { admin, user_id } of dms) yield* set(admin ? menuOf(true) : undefined, user_id)
})

/** Learns the bot's name, by which people find it. */
const introduce = Effect.fnUntraced(function* (gateway: ResourceName) {
  const api = yield* TelegramApi
  const health = yield* GatewayHealth
  yield* health.named(gateway, yield* Effect.retry(api.name, { schedule: CHANNEL_RETRY }))
})

/** Runs a bot until it is interrupted. No answer of Telegram ends it. */
export const runTelegram = Effect.fn("Telegram.run")(function* (gateway: ResourceName, dms: ReadonlyArray<ChannelDm>) {
  const paceOf = makePaces()
  const watch = yield* makePollWatch(gateway)
  const chats = dms.map(({ name, user_id }): Chat => ({
    dm: name,
    user_id,
    chat_id: user_id,
    pace: paceOf(user_id),
    left: Deferred.makeUnsafe()
  }))
  yield* Effect.retry(tolerant(findMoved(chats)), { schedule: CHANNEL_RETRY })
  const channelChat = yield* makeChannelChat
  const speakers = chats.flatMap((chat) => [
    speak(channelChat(chat)),
    stageFiles(chat),
    showTyping(chat),
    showDrafts(chat),
    showReactions(chat)
  ])
  yield* Effect.all(
    [
      poll(gateway, chats, watch),
      watch.run,
      Effect.andThen(Effect.all([introduce(gateway), announce(dms)]), Effect.never),
      ...speakers
    ],
    {
      concurrency: "unbounded",
      discard: true
    }
  )
})
