/** One bot: a long poll for incoming messages, and an ordered reader of each DM's outbox for outgoing ones (E6, R42-R44). */
import { Clock, Effect, Result, Schedule, Stream } from "effect"
import type { ResourceName } from "#schema/Ids.ts"
import { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"
import { Outbox, type Outgoing } from "#src/choird/queues/Outbox.ts"
import { GatewayHealth } from "./GatewayHealth.ts"
import { Gateways } from "./Gateways.ts"
import { answerTaps } from "./answerTaps.ts"
import { menuOf } from "./readCommand.ts"
import { sendRow } from "./sendForm.ts"
import { showDrafts, showTyping } from "./signsOfLife.ts"
import { TelegramApi } from "./TelegramApi.ts"
import { TelegramFailed } from "./TelegramFailed.ts"

/** The first and the longest pause after a failed call (R44). */
const TELEGRAM_RETRY_MS = 1000
const TELEGRAM_RETRY_MS_MAX = 60_000
/** The longest retry_after of Telegram that is waited out in one piece. */
const TELEGRAM_RETRY_AFTER_MS_MAX = 600_000
/** The intervals between two messages to one chat, and between any two of one bot (R43). */
const TELEGRAM_CHAT_INTERVAL_MS = 1000
const TELEGRAM_BOT_INTERVAL_MS = 40

/** The wait after the n-th failure in a row, from 0: doubling up to a minute, unless Telegram asks for a different one. */
export const pauseAfter = ({ retry_after_ms }: Pick<TelegramFailed, "retry_after_ms">, failures: number): number =>
  retry_after_ms === null
    ? Math.min(TELEGRAM_RETRY_MS * 2 ** Math.min(failures, 10), TELEGRAM_RETRY_MS_MAX)
    : Math.min(Math.max(retry_after_ms, TELEGRAM_RETRY_MS), TELEGRAM_RETRY_AFTER_MS_MAX)

/** The person cannot be reached: has never written to the bot, or has blocked it. */
const isUnreachable = ({ code, description }: TelegramFailed) =>
  code === 403 || (code === 400 && /chat not found/iu.test(description))

/** Telegram will never accept this text, and everything behind it would wait forever. */
const isHopeless = (failure: TelegramFailed) => failure.code === 400 && !isUnreachable(failure)

/** The longest wait of a message for a person who has blocked the bot or never wrote to it. */
const UNREACHABLE_MS_MAX = 24 * 60 * 60 * 1000

/** The source of notices about undeliverable messages; an undeliverable notice causes no further one. */
const GIVEN_UP = "given-up/"

const RETRY = Schedule.min([Schedule.exponential(TELEGRAM_RETRY_MS), Schedule.spaced(TELEGRAM_RETRY_MS_MAX)])

/** Lets its callers through one after the other, at least `interval_ms` apart. */
const makePacer = (interval_ms: number) => {
  let next_ms = 0
  return Effect.gen(function* () {
    const now_ms = yield* Clock.currentTimeMillis
    const at_ms = Math.max(now_ms, next_ms)
    next_ms = at_ms + interval_ms
    yield* Effect.sleep(at_ms - now_ms)
  })
}

const tryLater = (cause: unknown) =>
  Effect.andThen(
    Effect.logError("a gateway could not continue", cause),
    Effect.fail(
      new TelegramFailed({ method: "choird", code: 0, description: "the database is away", retry_after_ms: null })
    )
  )

/** Turns an absent database or a defect into one more reason to try again later. */
const tolerant = <A, E, R>(work: Effect.Effect<A, E | DatabaseAway, R>) =>
  work.pipe(
    Effect.catchIf((error) => error instanceof DatabaseAway, tryLater),
    Effect.catchDefect(tryLater)
  )

/** Polls forever. Only the poll after the one whose messages were stored confirms an update. */
const poll = Effect.fnUntraced(function* (gateway: ResourceName) {
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
          if (batch === undefined) return
          yield* answerTaps(gateway, batch.taps)
          yield* gateways.receive(gateway, batch.arrivals, api.download)
          from = batch.update_id + 1
        })
      )
    )
    if (Result.isSuccess(polled)) {
      failures = 0
      yield* health.report(gateway, { ok: true, detail: "polling" })
      continue
    }
    const { failure } = polled
    if (failures === 0) yield* Effect.logWarning(failure.message, { gateway })
    yield* health.report(gateway, { ok: false, detail: failure.message })
    yield* Effect.sleep(pauseAfter(failure, failures))
    failures += 1
  }
})

/**
 * Sends a message, however long it takes; returns Telegram's id of it, or the failure if it gives up. A person who blocks the bot and
 * unblocks it within UNREACHABLE_MS_MAX gets everything in order.
 */
const send = Effect.fnUntraced(function* (chat_id: string, row: Outgoing, paced: Effect.Effect<void>) {
  const outbox = yield* Outbox
  for (let failures = 0; ; failures += 1) {
    yield* paced
    const sent = yield* Effect.result(sendRow(chat_id, row))
    if (Result.isSuccess(sent)) return { sent_id: sent.success }
    const { failure } = sent
    yield* outbox.failed(row.outbox_id)
    if (failures === 0) yield* Effect.logWarning(failure.message, { dm: row.dm, outbox_id: row.outbox_id })
    const age_ms = (yield* Clock.currentTimeMillis) - row.created_ms
    if (isHopeless(failure) || (isUnreachable(failure) && age_ms > UNREACHABLE_MS_MAX)) return { refused: failure }
    yield* Effect.sleep(pauseAfter(failure, failures))
  }
})

/** Delivers a message or gives up on it, and then reports that in the log, in `status` and to the person. */
const deliver = Effect.fnUntraced(function* (chat_id: string, row: Outgoing, paced: Effect.Effect<void>) {
  const gateways = yield* Gateways
  const outbox = yield* Outbox
  const { refused, sent_id } = yield* send(chat_id, row, paced)
  if (refused === undefined) return yield* outbox.delivered([row.outbox_id], sent_id)
  yield* Effect.logError("gave up on a message", { dm: row.dm, outbox_id: row.outbox_id, reason: refused.message })
  const isNew = yield* outbox.giveUp(row.outbox_id, refused.message)
  if (!isNew || row.source_id.startsWith(GIVEN_UP)) return undefined
  // A person who cannot be reached in this chat gets the notice in another one, if the agent has one.
  const place = isUnreachable(refused) ? yield* gateways.otherPlace(row) : row
  if (place === undefined) return undefined
  return yield* outbox.tell({
    gateway: place.gateway,
    dm: place.dm,
    agent_id: row.agent_id,
    source_id: `${GIVEN_UP}${row.outbox_id}`,
    kind: "notice",
    text: `A message of ${row.agent_id} to the DM ${row.dm} could not be delivered: ${refused.description}. An operator finds it with choirctl session events.`,
    in_reply_to: null
  })
})

/** Messages that nobody waits for: approval cards, and those that an agent sends on its own. */
const isUnasked = ({ kind, source, source_id }: Outgoing) =>
  kind === "notice" && (source === "event" || source_id.startsWith("approval/"))

/** Answers come first: an agent that asks a lot does not delay its own replies. */
const nextOf = (rows: ReadonlyArray<Outgoing>) => rows.find((row) => !isUnasked(row)) ?? rows[0]

/** Reads a DM's outbox, answers and notices in order each. A death between sending and noting it sends one message twice, never none (R43). */
const speak = Effect.fnUntraced(function* (dm: ResourceName, chat_id: string, botPacer: Effect.Effect<void>) {
  const outbox = yield* Outbox
  const paced = Effect.andThen(makePacer(TELEGRAM_CHAT_INTERVAL_MS), botPacer)
  const drain = Effect.gen(function* () {
    for (;;) {
      const row = nextOf(yield* outbox.undelivered(dm, undefined))
      if (row === undefined) return
      yield* deliver(chat_id, row, paced)
    }
  })
  const patient = Effect.retry(tolerant(drain), { schedule: RETRY })
  yield* Stream.runForEach(outbox.wakes(dm), () => patient)
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
    }).pipe(Effect.catch((failure) => Effect.logInfo("a chat got no menu", { reason: failure.message })))
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
  const botPacer = makePacer(TELEGRAM_BOT_INTERVAL_MS)
  const speakers = dms.flatMap(({ name, user_id }) => [
    speak(name, user_id, botPacer),
    showTyping(name, user_id, botPacer),
    showDrafts(name, user_id, botPacer)
  ])
  yield* Effect.all(
    [poll(gateway), Effect.andThen(Effect.all([introduce(gateway), announce(dms)]), Effect.never), ...speakers],
    {
      concurrency: "unbounded",
      discard: true
    }
  )
})
