/** Topics of Telegram, one for each job: its lines and questions are there, and answers to them. Where a chat has no topics, they are in the chat. */
import { Effect, Option, Result, Schema, Stream } from "effect"
import { JobName, SessionId } from "#schema/Ids.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import type { Outgoing } from "#src/choird/queues/Outbox.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { askedJob } from "#src/shared/session/jobText.ts"
import type { Chat } from "./Chat.ts"
import { ChatSettings, type JobTopic } from "#src/choird/chatcommands/ChatSettings.ts"
import { makeMoveChat } from "./movedChats.ts"
import { CHANNEL_RETRY_MS_MAX } from "#src/choird/gateway/tolerant.ts"
import { TelegramApi } from "./TelegramApi.ts"
import { isGone, isHopeless, isUnreachable, pauseAfter, type TelegramFailed } from "./TelegramFailed.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { DAY_MS } from "#src/shared/days.ts"

/** Topics of a chat that are remembered; the oldest are forgotten. */
const TOPICS_KEPT_MAX = 50
/** How long it is believed that a chat has no topics. */
const NO_TOPICS_MS = 600_000
/** Tries to make a topic while a message waits for it; then the message comes in the chat. */
const TOPIC_ATTEMPTS_MAX = 3
/** For how long Telegram is asked to close a topic, as long as it does not refuse it for good. */
const TOPIC_CLOSE_MS_MAX = DAY_MS

const decodeJob = Schema.decodeUnknownOption(Schema.Struct({ session_id: SessionId, job_name: JobName }))

type Job = Pick<JobTopic, "session_id" | "job_name">

/** The job that a row is about: a line on its work, or its question. Pure. */
const jobOf = ({ source, source_id, text }: Outgoing): Job | undefined => {
  if (source !== "event") return undefined
  const [session_id, , line] = source_id.split(":", 3)
  return Option.getOrUndefined(decodeJob({ session_id, job_name: line ?? askedJob(text) }))
}

/** Emits when a job of any agent has ended. */
export const endedJobs = ({ appended }: EventStore["Service"]): Stream.Stream<void> =>
  appended.pipe(
    Stream.filter(({ events }) => events.some(({ event_type }) => event_type === "CoreStopped")),
    Stream.map(() => undefined)
  )

const isOf = (job: Job) => (topic: JobTopic) => topic.job_name === job.job_name && topic.session_id === job.session_id

/** Telegram will give the same answer again. A server that knows no topics answers with 404. */
const isFinal = (failure: TelegramFailed) => isHopeless(failure) || isGone(failure) || failure.code === 404

/** Makes what finds or makes the topic of a job. */
const makeCreate = Effect.gen(function* () {
  const api = yield* TelegramApi
  const moveChat = yield* makeMoveChat
  /** Until when a chat is believed to have none. */
  const without_until_ms = new Map<string, number>()

  return Effect.fnUntraced(function* (chat: Chat, { job_name }: Job) {
    if ((yield* monotonicMs) < (without_until_ms.get(chat.chat_id) ?? 0)) return undefined
    let none_ms = NO_TOPICS_MS
    for (let failures = 0; failures < TOPIC_ATTEMPTS_MAX; failures += 1) {
      yield* chat.pace.sign
      const made = yield* Effect.result(
        Effect.flatMap(api.hasTopics(chat.chat_id), (has) =>
          has ? api.createTopic(chat.chat_id, job_name) : Effect.undefined
        )
      )
      if (Result.isSuccess(made) && made.success !== undefined) return made.success
      if (Result.isSuccess(made)) break
      const { failure } = made
      if (failures === 0) yield* Effect.logInfo("creating the job's topic failed", { reason: failure.message })
      if (failure.migrated_to !== undefined) {
        yield* moveChat(chat, failure.migrated_to)
        continue
      }
      if (isFinal(failure) || isUnreachable(failure)) break
      none_ms = CHANNEL_RETRY_MS_MAX
      if (failures < TOPIC_ATTEMPTS_MAX - 1) yield* rest(chat, failure, failures)
    }
    without_until_ms.set(chat.chat_id, (yield* monotonicMs) + none_ms)
    return undefined
  })
})

/** Waits after a failure; a pause that Telegram asks for holds the chat back. */
const rest = ({ pace }: Chat, failure: TelegramFailed, failures: number) =>
  failure.retry_after_ms === null ? Effect.sleep(pauseAfter(failure, failures)) : pace.hold(failure.retry_after_ms)

/** Makes what finds the open topic of a job in a chat; it makes none, and finds none while the database is away. */
export const makeOpenTopic = Effect.map(ChatSettings, (settings) =>
  Effect.fnUntraced(function* ({ dm }: Pick<Chat, "dm">, job: Job) {
    const topics = yield* Effect.orElseSucceed(settings.topics(dm), () => [])
    const topic = topics.findLast(isOf(job))
    return topic?.state === "open" ? topic.thread_id : undefined
  })
)

/** Makes what puts rows into the topics of their jobs, and closes those of jobs that ended. */
export const makeJobTopics = Effect.gen(function* () {
  const create = yield* makeCreate
  const events = yield* EventStore
  const settings = yield* ChatSettings
  const closing = yield* makeClosing

  /** Whether a job runs; undefined where its session cannot be read. */
  const runs = ({ job_name, session_id }: Job) =>
    Effect.map(
      Effect.option(databaseDefect(events.state(session_id))),
      Option.match({ onNone: () => undefined, onSome: ({ cores }) => cores.has(job_name) })
    )

  /** A row with the topic of its job; it quotes nothing there, since what it answers is elsewhere. */
  const place = Effect.fnUntraced(function* (chat: Chat, row: Outgoing) {
    const job = jobOf(row)
    if (job === undefined) return row
    const topics = yield* settings.topics(chat.dm)
    const known = topics.findLast(isOf(job))
    // One that the person deleted is not made again.
    if (known?.state === "gone") return row
    // A later job may have the name of one that ended.
    if (known?.state === "closed" && (yield* runs(job)) !== true) return row
    const open = known?.state === "open" ? known.thread_id : undefined
    const thread_id = open ?? (yield* create(chat, job))
    if (thread_id === undefined) return row
    if (open === undefined)
      yield* settings.setTopics(
        chat.dm,
        [...topics, { ...job, thread_id, state: "open" } as const].slice(-TOPICS_KEPT_MAX)
      )
    return { ...row, thread_id, reply_to: null }
  })

  /** Closes the topics whose jobs do not run any more. Returns after how long it wants to try again, if one could not be closed now. */
  const closeEnded = Effect.fnUntraced(function* (chat: Chat) {
    const topics = yield* settings.topics(chat.dm)
    const ended = new Set<JobTopic>()
    let again_ms: number | undefined
    for (const topic of topics.filter(({ state }) => state === "open")) {
      if ((yield* runs(topic)) !== false) continue
      const pause_ms = yield* closing(chat, topic)
      if (pause_ms === undefined) ended.add(topic)
      else again_ms = Math.min(pause_ms, again_ms ?? pause_ms)
    }
    if (ended.size > 0)
      yield* settings.setTopics(
        chat.dm,
        topics.map((topic) => (ended.has(topic) ? { ...topic, state: "closed" as const } : topic))
      )
    return again_ms
  })

  return { place, closeEnded }
})

/** Makes what closes a topic: returns the pause before the next try, or nothing when it is closed or Telegram will never close it. */
const makeClosing = Effect.gen(function* () {
  const api = yield* TelegramApi
  const moveChat = yield* makeMoveChat
  const failed = new Map<string, { readonly since_ms: number; readonly failures: number; readonly next_ms: number }>()

  return Effect.fnUntraced(function* (chat: Chat, { job_name, thread_id }: JobTopic) {
    const key = `${chat.dm} ${thread_id}`
    const now_ms = yield* monotonicMs
    const { failures, next_ms, since_ms } = failed.get(key) ?? { since_ms: now_ms, failures: 0, next_ms: now_ms }
    // What wakes the reader meanwhile does not shorten the pause.
    if (next_ms > now_ms) return next_ms - now_ms
    yield* chat.pace.sign
    const closed = yield* Effect.result(api.closeTopic(chat.chat_id, thread_id, job_name))
    failed.delete(key)
    if (Result.isSuccess(closed)) return undefined
    const { failure } = closed
    if (failure.migrated_to !== undefined) yield* moveChat(chat, failure.migrated_to)
    else if (isFinal(failure)) return undefined
    const at_ms = yield* monotonicMs
    if (at_ms - since_ms > TOPIC_CLOSE_MS_MAX) return undefined
    if (failure.retry_after_ms !== null) yield* chat.pace.hold(failure.retry_after_ms)
    const pause_ms = pauseAfter(failure, failures)
    failed.set(key, { since_ms, failures: failures + 1, next_ms: at_ms + pause_ms })
    return pause_ms
  })
})

/** Notes that the person deleted a topic. */
export const makeDropTopic = Effect.map(ChatSettings, (settings) =>
  Effect.fnUntraced(function* ({ dm }: Chat, thread_id: number) {
    const topics = yield* settings.topics(dm)
    if (topics.some((topic) => topic.thread_id === thread_id))
      yield* settings.setTopics(
        dm,
        topics.map((topic) => (topic.thread_id === thread_id ? { ...topic, state: "gone" as const } : topic))
      )
  })
)
