/** A bot of the Telegram double over stores in memory, on the clock of the test. */
import { Effect, Layer, PubSub, Redacted, Schema, Stream } from "effect"
import { Config } from "#schema/Config.ts"
import { InboxId, type JobName, SignalId } from "#schema/Ids.ts"
import { Plans } from "#src/choird/plans/Plans.ts"
import { Schedules } from "#src/choird/schedules/Schedules.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { ChatSettings, type JobTopic } from "#src/choird/chatcommands/ChatSettings.ts"
import { GatewayHealth } from "#src/choird/gateway/GatewayHealth.ts"
import { OutgoingFiles } from "#src/choird/gateway/OutgoingFiles.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import type { Incoming } from "#src/choird/queues/Incoming.ts"
import { Outbox, type OutboxMessage, type Outgoing } from "#src/choird/queues/Outbox.ts"
import { runTelegram } from "#src/choird/telegram/Telegram.ts"
import { TelegramApi } from "#src/choird/telegram/TelegramApi.ts"
import type { AuditEntry } from "#src/choird/logs/Audit.ts"
import { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import type { Order } from "#src/choird/sessions/Order.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { type Request, Steering } from "#src/choird/sessions/Steering.ts"
import type { CoreLane } from "#src/shared/session/State.ts"
import { initialState } from "#src/shared/session/fold.ts"
import { makeNotifier } from "#src/choird/queues/Notifier.ts"
import { makeJournal } from "./testing/Journal.ts"
import { CONFIG, PHONE } from "./stores.ts"
import { AGENT, BOT, DMS, gateways, lifecycle, noApprovals } from "./telegramBot.ts"
import { memoryAudit } from "./audited.ts"
import { makeTelegram } from "./testing/Telegram.ts"

type Appended = Stream.Success<EventStore["Service"]["appended"]>

const config = Schema.decodeUnknownSync(Config)(CONFIG)

/** As the outbox orders them: nobody waits for what an agent sends on its own, and for approval cards. */
const isUnasked = ({ kind, source, source_id }: Outgoing) =>
  kind === "notice" && (source === "event" || source_id.startsWith("approval/"))

/** Stores in memory, on the test's own clock. */
const makeMemory = Effect.gen(function* () {
  const stored = makeJournal<Incoming>()
  const orders = makeJournal<{ readonly request: Request; readonly order: Order }>()
  const health = makeJournal<string>()
  const rows: Array<Outgoing & Pick<OutboxMessage, "labelled">> = []
  const delivered: Array<string> = []
  const outcomes = makeJournal<string>()
  const refusals: Array<AuditEntry> = []
  const moved = new Map<string, string>()
  const topics = new Map<string, ReadonlyArray<JobTopic>>()
  /** The jobs that run, with whether each asks the person. */
  const jobs = new Map<JobName, boolean>()
  const world = { full: false, away: false, broken: false, rich: false }
  const { wake, wakes } = yield* makeNotifier
  const appends = yield* PubSub.unbounded<Appended>()
  /** Ends a job without a message about it. */
  const endJob = (job_name: JobName) =>
    Effect.suspend(() => {
      jobs.delete(job_name)
      return PubSub.publish(appends, { events: [{ event_type: "CoreStopped" }] } as never)
    })
  /** Messages as they were sent, with whether their words may repeat text from outside. */
  const sentAs = new Map<string, boolean>()
  const put = (text: string, extra: Partial<Outgoing & Pick<OutboxMessage, "labelled">> = {}) =>
    Effect.suspend(() => {
      const outbox_id = String(rows.length + 1)
      const place = { gateway: BOT, dm: PHONE, agent_id: AGENT, kind: "reply", in_reply_to: null } as const
      const row = { outbox_id, source: "event", source_id: outbox_id, part: 0, sent_parts: 0, created_ms: 0 } as const
      rows.push({ ...row, ...place, text, labelled: extra.source === "choird", ...extra })
      return wake(PHONE)
    })
  const received = (message: Incoming) => {
    if (world.full) return { type: "full" as const, pending: 500 }
    stored.record(message)
    return { type: "queued" as const, inbox_id: InboxId.make("1"), position: 0 }
  }
  const services = Layer.mergeAll(
    Layer.mock(ConfigStore, { home: "/", current: Effect.succeed({ version: 1, config }) }),
    Layer.mock(EventStore, {
      appended: Stream.fromPubSub(appends),
      state: () =>
        Effect.sync(() => ({
          ...initialState,
          cores: new Map(
            [...jobs].map(([job_name, asks]) => [
              job_name,
              { job_name, ...(asks ? { question: { rev: 1, asked_at: "" } } : {}) } as CoreLane
            ])
          )
        }))
    }),
    Layer.mock(Inbox, {
      release: () => Effect.undefined,
      edit: () => Effect.succeed("unknown" as const),
      receiveAll: (messages) =>
        world.broken
          ? Effect.die(new Error("a mistake of choird's"))
          : world.away
            ? Effect.fail(new DatabaseAway({ problem: "the server is gone" }))
            : Effect.sync(() => messages.map(received))
    }),
    Layer.mock(Outbox, {
      tell: (message) =>
        rows.some((row) => row.source_id === message.source_id)
          ? Effect.void
          : put(message.text, { ...message, source: "choird" }),
      told: (source_id) => Effect.sync(() => rows.some((row) => row.source_id === source_id)),
      next: (dm) =>
        Effect.sync(() => {
          const open = rows.filter((row) => row.dm === dm && !delivered.includes(row.outbox_id))
          return open.find((row) => !isUnasked(row)) ?? open[0]
        }),
      waiting: (dm, rows_max) =>
        Effect.sync(() =>
          rows
            .filter((row) => row.dm === dm && !delivered.includes(row.outbox_id))
            .slice(0, rows_max)
            .map(({ outbox_id, text }) => ({ outbox_id, bytes: text.length }))
        ),
      filed: (dm) =>
        Effect.sync(() =>
          rows.filter((row) => row.dm === dm && !delivered.includes(row.outbox_id) && row.form?.files !== undefined)
        ),
      mayRepeat: (_, { chat_id, message_id }) => Effect.sync(() => sentAs.get(`${chat_id}/${message_id}`) ?? true),
      delivered: (ids, sent) =>
        Effect.sync(() => {
          const labelled = rows.find(({ outbox_id }) => outbox_id === ids[0])?.labelled ?? true
          if (sent !== undefined) sentAs.set(`${sent.chat_id}/${sent.message_id}`, labelled)
          outcomes.record(`delivered ${ids.join()}`)
          return delivered.push(...ids)
        }),
      sentParts: (id, count, failure) =>
        Effect.sync(() => {
          const at = rows.findIndex((row) => row.outbox_id === id)
          const row = rows[at]
          if (row !== undefined) rows[at] = { ...row, sent_parts: count, ...(failure === undefined ? {} : { failure }) }
        }),
      failed: (id) => Effect.sync(() => outcomes.record(`failed ${id}`)),
      giveUp: (id, reason) =>
        Effect.sync(() => {
          outcomes.record(`given up ${id}: ${reason}`)
          return delivered.push(id) > 0
        }),
      wakes,
      wake
    }),
    Layer.mock(ChatSettings, {
      rich: () => Effect.sync(() => world.rich),
      moved: (dm, from) => Effect.sync(() => moved.get(`${dm} ${from}`)),
      topics: (dm) => Effect.sync(() => topics.get(dm) ?? []),
      setTopics: (dm, all) => Effect.sync(() => void topics.set(dm, all)),
      setMoved: (dm, from, to) => Effect.sync(() => void moved.set(`${dm} ${from}`, to))
    }),
    Layer.mock(GatewayHealth, {
      report: (_, { detail, ok }) => Effect.sync(() => health.record(`${ok} ${detail}`)),
      named: () => Effect.void,
      all: Effect.succeed(new Map())
    }),
    Layer.mock(SessionStore, {}),
    Layer.mock(Steering, {
      order: (request, order) =>
        Effect.sync(() => {
          orders.record({ request, order })
          return { signal_id: SignalId.make("1"), body: order as never, ended: null }
        })
    }),
    Layer.mock(Models, {}),
    Layer.mock(Plans, { about: () => Effect.undefined }),
    Layer.mock(Schedules, {}),
    noApprovals,
    memoryAudit(refusals),
    lifecycle
  )
  return {
    orders: orders.journal,
    stored: stored.journal,
    health: health.journal,
    outcomes: outcomes.journal,
    put,
    rows,
    jobs,
    endJob,
    refusals,
    world,
    services
  }
})

/** A world whose messages may have files, which are found and kept by `files`. */
export const setUpTelegramWith = Effect.fnUntraced(function* (files: Layer.Layer<OutgoingFiles>) {
  const telegram = yield* makeTelegram
  const bot = telegram.bot("1000:secret")
  const memory = yield* makeMemory
  const api = TelegramApi.layer(Redacted.make(bot.token), `${telegram.url}/`)
  const as = (dms: typeof DMS) =>
    runTelegram(BOT, dms).pipe(
      Effect.provide(Layer.merge(gateways.pipe(Layer.provideMerge(Layer.merge(api, memory.services))), files))
    )
  return { telegram, bot, ...memory, as, run: as(DMS) }
})

export const setUpTelegram = setUpTelegramWith(
  Layer.mock(OutgoingFiles, { stage: () => Effect.void, ready: () => Effect.succeed([]), end: () => Effect.void })
)
