/** One bot: a long poll for incoming messages, and an ordered reader of each DM's outbox for outgoing ones (E6, R42-R44). */
import { Cause, Deferred, Duration, Effect, Queue, Result, Schedule, Stream } from "effect"
import type { ResourceName } from "#schema/Ids.ts"
import { logDeath, restarted } from "#src/shared/background.ts"
import { awayIn, type DatabaseAway, databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import type { Chat } from "./Chat.ts"
import { makeDeliverMessage } from "./deliverMessage.ts"
import { endedJobs, makeJobTopics } from "./jobTopics.ts"
import { OutgoingFiles } from "./OutgoingFiles.ts"
import { makePaces } from "./Pace.ts"
import { GatewayHealth } from "./GatewayHealth.ts"
import { Gateways } from "./Gateways.ts"
import { asConfigured, findMoved, followMoves } from "./movedChats.ts"
import { makePollWatch, type PollWatch } from "./PollWatch.ts"
import { menuOf } from "./readCommand.ts"
import { defectWords, logDefect } from "#src/shared/defects.ts"
import { showReactions } from "./showReactions.ts"
import { showDrafts, showTyping } from "./signsOfLife.ts"
import { TelegramApi } from "./TelegramApi.ts"
import {
  isHopeless,
  isUnreachable,
  pauseAfter,
  TELEGRAM_RETRY_MS,
  TELEGRAM_RETRY_MS_MAX,
  TelegramFailed
} from "./TelegramFailed.ts"
import { CardTaps } from "./CardTaps.ts"
import type { TelegramTap } from "./readUpdates.ts"
import { untilRecorded } from "./untilRecorded.ts"

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

const RETRY = Schedule.min([Schedule.exponential(TELEGRAM_RETRY_MS), Schedule.spaced(TELEGRAM_RETRY_MS_MAX)])

const tryLater = (description: string) =>
  Effect.fail(new TelegramFailed({ method: "choird", code: 0, description, retry_after_ms: null }))

/** Turns an absent database or a defect into one more reason to try again later. The log has a defect in full, under its reference. */
const tolerant = <A, E, R>(work: Effect.Effect<A, E | DatabaseAway, R>) =>
  databaseDefect(work).pipe(
    Effect.catchDefect((defect) => {
      const away = awayIn(Cause.die(defect))
      return away === undefined
        ? Effect.flatMap(logDefect("a gateway could not continue", defect), (ref) =>
            tryLater(defectWords("choird failed", ref))
          )
        : Effect.andThen(Effect.logWarning(`a gateway could not continue: ${away.message}`), tryLater(away.message))
    })
  )

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

/** Reads a DM's outbox, answers and notices in order each. A stop waits until what is under way is noted; a death between sending and noting it sends one message twice, never none (R43). */
const speak = Effect.fnUntraced(function* (chat: Chat) {
  const deliverMessage = yield* makeDeliverMessage
  const events = yield* EventStore
  const outbox = yield* Outbox
  const topics = yield* makeJobTopics
  const drain = Effect.gen(function* () {
    for (;;) {
      const row = yield* outbox.next(chat.dm)
      if (row === undefined) break
      yield* untilRecorded(chat, deliverMessage(chat, row))
    }
    return yield* topics.closeEnded(chat)
  })
  const patient = Effect.retry(tolerant(drain), { schedule: RETRY })
  const wakes = yield* Queue.sliding<void>(1)
  // A job may end without a further message.
  yield* Stream.merge(outbox.wakes(chat.dm), endedJobs(events)).pipe(
    Stream.runForEach(() => Queue.offer(wakes, undefined)),
    restarted("what wakes the delivery of a chat"),
    Effect.forkScoped({ startImmediately: true })
  )
  let again_ms: number | undefined
  for (;;) {
    yield* Effect.timeoutOption(Queue.take(wakes), again_ms ?? Duration.infinity)
    again_ms = yield* patient
  }
}, Effect.scoped)

/** Copies the files of a DM's messages as soon as they are there, however long Telegram takes none: the agent may change them. */
const stageFiles = Effect.fnUntraced(function* (chat: Chat) {
  const files = yield* OutgoingFiles
  const outbox = yield* Outbox
  const stage = Effect.gen(function* () {
    for (const row of yield* outbox.filed(chat.dm)) yield* files.stage(row)
  })
  const patient = Effect.retry(tolerant(stage), { schedule: RETRY })
  yield* Stream.runForEach(outbox.wakes(chat.dm), () => patient)
})

/** One person or group at a bot. */
export interface TelegramDm {
  readonly name: ResourceName
  readonly user_id: string
  readonly admin: boolean
}

/** Sends Telegram the menus once in choird's life; nothing waits for them (E6). An admin's chat has a menu of its own. */
const announce = Effect.fnUntraced(function* (dms: ReadonlyArray<TelegramDm>) {
  const api = yield* TelegramApi
  const set = (...menu: Parameters<typeof api.menu>) =>
    // A chat that the bot does not know yet has no menu either.
    Effect.retry(api.menu(...menu), {
      schedule: RETRY,
      while: (failure) => !isUnreachable(failure) && !isHopeless(failure)
    }).pipe(Effect.catch((failure) => Effect.logInfo("setting the chat menu failed", { reason: failure.message })))
  yield* set(menuOf(false))
  for (const { admin, user_id } of dms) yield* set(admin ? menuOf(true) : undefined, user_id)
})

/** Learns the bot's name, by which people find it. */
const introduce = Effect.fnUntraced(function* (gateway: ResourceName) {
  const api = yield* TelegramApi
  const health = yield* GatewayHealth
  yield* health.named(gateway, yield* Effect.retry(api.name, { schedule: RETRY }))
})

/** Runs a bot until it is interrupted. No answer of Telegram ends it. */
export const runTelegram = Effect.fn("Telegram.run")(function* (gateway: ResourceName, dms: ReadonlyArray<TelegramDm>) {
  const paceOf = makePaces()
  const watch = yield* makePollWatch(gateway)
  const chats = dms.map(({ name, user_id }): Chat => ({
    dm: name,
    user_id,
    chat_id: user_id,
    pace: paceOf(user_id),
    left: Deferred.makeUnsafe()
  }))
  yield* Effect.retry(tolerant(findMoved(chats)), { schedule: RETRY })
  const speakers = chats.flatMap((chat) => [
    speak(chat),
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
