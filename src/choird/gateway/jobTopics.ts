/** Topics of Telegram, one for each job: its lines and questions are there, and answers to them. Where a chat has no topics, they are in the chat. */
import { Clock, Effect, Option, Result, Schema, Stream } from "effect"
import { JobName, SessionId } from "#schema/Ids.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import type { Outgoing } from "#src/choird/queues/Outbox.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { askedJob } from "#src/shared/session/jobText.ts"
import type { Chat } from "./attempt.ts"
import { ChatSettings, type JobTopic } from "./ChatSettings.ts"
import { TelegramApi } from "./TelegramApi.ts"

/** Topics of a chat that are remembered; the oldest are forgotten. */
const TOPICS_KEPT_MAX = 50
/** How long it is believed that a chat has no topics. */
const NO_TOPICS_MS = 600_000

const decodeJob = Schema.decodeUnknownOption(Schema.Struct({ session_id: SessionId, job_name: JobName }))

type Job = Pick<JobTopic, "session_id" | "job_name">

/** The job that a row is about: a line on its work, or its question. Pure. */
export const jobOf = ({ source, source_id, text }: Outgoing): Job | undefined => {
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

/** Makes what puts rows into the topics of their jobs, and closes those of jobs that ended. */
export const makeJobTopics = Effect.gen(function* () {
  const api = yield* TelegramApi
  const events = yield* EventStore
  const settings = yield* ChatSettings
  const without = new Map<string, number>()

  const create = Effect.fnUntraced(function* (chat: Chat, { job_name }: Job) {
    const now_ms = yield* Clock.currentTimeMillis
    if (now_ms - (without.get(chat.chat_id) ?? -NO_TOPICS_MS) < NO_TOPICS_MS) return undefined
    yield* chat.pace.sign
    const made = yield* Effect.result(
      Effect.flatMap(api.hasTopics(chat.chat_id), (has) =>
        has ? api.createTopic(chat.chat_id, job_name) : Effect.undefined
      )
    )
    if (Result.isFailure(made)) yield* Effect.logInfo("a job has no topic", { reason: made.failure.message })
    const thread_id = Result.isSuccess(made) ? made.success : undefined
    if (thread_id === undefined) without.set(chat.chat_id, now_ms)
    return thread_id
  })

  /** A row with the topic of its job; it quotes nothing there, since what it answers is elsewhere. */
  const place = Effect.fnUntraced(function* (chat: Chat, row: Outgoing) {
    const job = jobOf(row)
    if (job === undefined) return row
    const topics = yield* settings.topics(chat.dm)
    const known = topics.find(isOf(job))
    // One that the person deleted is not made again.
    if (known !== undefined && known.state !== "open") return row
    const thread_id = known?.thread_id ?? (yield* create(chat, job))
    if (thread_id === undefined) return row
    if (known === undefined)
      yield* settings.setTopics(
        chat.dm,
        [...topics, { ...job, thread_id, state: "open" } as const].slice(-TOPICS_KEPT_MAX)
      )
    return { ...row, thread_id, reply_to: null }
  })

  /** Closes the topics whose jobs do not run any more. A refusal leaves one open in the app, where it harms nobody. */
  const closeEnded = Effect.fnUntraced(function* (chat: Chat) {
    const topics = yield* settings.topics(chat.dm)
    const ended = new Set<JobTopic>()
    for (const topic of topics.filter(({ state }) => state === "open")) {
      const state = yield* Effect.option(databaseDefect(events.state(topic.session_id)))
      if (Option.isNone(state) || state.value.cores.has(topic.job_name)) continue
      yield* chat.pace.sign
      yield* Effect.ignore(api.closeTopic(chat.chat_id, topic.thread_id, topic.job_name))
      ended.add(topic)
    }
    if (ended.size > 0)
      yield* settings.setTopics(
        chat.dm,
        topics.map((topic) => (ended.has(topic) ? { ...topic, state: "closed" as const } : topic))
      )
  })

  return { place, closeEnded }
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

/** Makes what finds the job whose question a message in its topic answers. */
export const makeAskedInTopic = Effect.gen(function* () {
  const events = yield* EventStore
  const settings = yield* ChatSettings
  return Effect.fnUntraced(function* (dm: Chat["dm"], thread_id: number | undefined) {
    if (thread_id === undefined) return undefined
    const topic = (yield* databaseDefect(settings.topics(dm))).find((one) => one.thread_id === thread_id)
    if (topic === undefined) return undefined
    const state = yield* Effect.option(databaseDefect(events.state(topic.session_id)))
    const asks = Option.isSome(state) && state.value.cores.get(topic.job_name)?.question !== undefined
    return { job_name: topic.job_name, asks }
  })
})
