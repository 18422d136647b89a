/**
 * Carries the log to choird (D4, D7): at once for what people or effects wait for, else at the interval. The log runs ahead of
 * choird on purpose; what is not acknowledged when this process dies is lost.
 */
import { Clock, Context, Deferred, Effect, Layer, Queue, Schema } from "effect"
import type { HeartbeatReply } from "#schema/AgentApi.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { ControlPlane } from "./ControlPlane.ts"
import { type Batch, EventLog, residentRevs } from "#src/agent/arbiter/EventLog.ts"
import { fetchSecrets } from "./fetchSecrets.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { answerTime, attemptTime, RPC_RETRY_MS, RPC_TIMEOUT_MS } from "./verbAnswer.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import type { CallId } from "#schema/Ids.ts"
import { CORE_REPORT } from "#src/shared/session/calls.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { OpenCall, SessionState } from "#src/shared/session/State.ts"

/** Patches of one heartbeat; the body around them stays below BODY_BYTES_MAX unless a single batch is larger. */
export const HEARTBEAT_PATCH_BYTES_MAX = 768 * 1024
/** How long events that nobody waits for at that moment gather before they are sent (D7). */
const REPLICATION_GATHER_MS = 20
/** How long an event that somebody waits for gathers company before it is sent (D7). */
const REPLICATION_DEBOUNCE_MS = 1
/** Unacknowledged events beyond which no new model call starts (R14). */
export const REPLICATION_EVENTS_MAX = 50_000
/** Unacknowledged canonical bytes beyond which no new model call starts (R14). */
export const REPLICATION_BYTES_MAX = 12 * 1024 * 1024

/** The refusal of choird to take this agent's events: a newer epoch runs, or the session is frozen or over. */
export class Severed extends Schema.TaggedError<Severed>()("Severed", { reason: Schema.String }) {
  override get message() {
    return `the session was taken from this agent: ${this.reason}`
  }
}

/** Sends heartbeats and knows what choird has. */
export class Replication extends Context.Service<
  Replication,
  {
    /** The newest revision that choird acknowledged. */
    acked(): number
    /** Waits until choird has acknowledged a revision. */
    reached(rev: number): Effect.Effect<void>
    /** Waits while too much is unacknowledged to start more work (R14). */
    readonly room: Effect.Effect<void>
    /** Sends now and waits until everything committed so far is acknowledged. */
    readonly flush: Effect.Effect<void>
    /** Takes over a newer configuration with its secrets, if there is one. */
    readonly refresh: Effect.Effect<void>
    /** Sends heartbeats until choird severs the session. */
    readonly run: Effect.Effect<never, Severed>
  }
>()("choir/agent/Replication") {
  static readonly layer = Layer.effect(
    Replication,
    Effect.suspend(() => make())
  )
}

/** The part of the log that choird has acknowledged, and the fibers that wait for it. */
const makeAcknowledged = (log: EventLog["Service"]) => {
  const waiters = new Set<{ readonly rev: number; readonly done: Deferred.Deferred<void> }>()
  let acked = log.head()

  const raise = (rev: number) => {
    acked = Math.max(acked, Math.min(rev, log.head()))
    for (const waiter of waiters) {
      if (waiter.rev > acked) continue
      waiters.delete(waiter)
      Deferred.doneUnsafe(waiter.done, Effect.void)
    }
  }
  const reached = (rev: number) =>
    Effect.suspend(() => {
      if (rev <= acked) return Effect.void
      const waiter = { rev, done: Deferred.makeUnsafe<void>() }
      waiters.add(waiter)
      return Effect.ensuring(
        Deferred.await(waiter.done),
        Effect.sync(() => waiters.delete(waiter))
      )
    })
  const hasRoom = () => log.head() - acked <= REPLICATION_EVENTS_MAX && log.bytesAfter(acked) <= REPLICATION_BYTES_MAX
  const room: Effect.Effect<void> = Effect.suspend(() =>
    hasRoom() ? Effect.void : Effect.andThen(reached(acked + 1), room)
  )
  return { newest: () => acked, raise, reached, hasRoom, room }
}

/** Sends heartbeats, each with the events after a revision that fit. */
const makeHeartbeats = Effect.gen(function* () {
  const log = yield* EventLog
  const plane = yield* ControlPlane
  const settings = yield* AgentSettings
  /** Heartbeats in a row that choird did not answer in their time. */
  let given_up = 0
  let sent_ms = yield* monotonicMs
  let isWaiting = false

  const requestOf = Effect.fnUntraced(function* (batch: Batch | undefined, sent: number) {
    const { config_version, epoch } = settings.current()
    const base_rev = batch?.base_rev ?? sent
    const now = yield* Clock.currentTimeMillis
    sent_ms = yield* monotonicMs
    return {
      epoch,
      base_rev,
      new_rev: batch?.new_rev ?? base_rev,
      hash_prev: batch?.hash_prev ?? log.hashAt(base_rev),
      hash_new: batch?.hash_new ?? log.hashAt(base_rev),
      patches: batch?.events ?? [],
      config_version,
      timestamp: new Date(now).toISOString()
    }
  })

  const send = Effect.fnUntraced(function* (batch: Batch | undefined, sent: number) {
    const request = yield* requestOf(batch, sent)
    const { crash_detection_threshold_ms: threshold_ms } = settings.current().config
    const timeout_ms = threshold_ms === undefined ? RPC_TIMEOUT_MS : answerTime(threshold_ms, given_up)
    const asked_ms = yield* monotonicMs
    // A choird that refuses the connection is away, and not slow.
    const answerless = Effect.map(monotonicMs, (now_ms) => {
      given_up = now_ms - asked_ms >= timeout_ms ? given_up + 1 : 0
    })
    const reply = yield* plane.heartbeat(request, timeout_ms).pipe(Effect.tapError(() => answerless))
    given_up = 0
    return reply
  })

  /**
   * Heartbeats without events beside an answer that is waited for longer than a lost packet may take: choird goes by their arrival. Their own
   * answers do not count.
   */
  const signs = (sent: () => number) =>
    Effect.gen(function* () {
      const { crash_detection_threshold_ms: threshold_ms } = settings.current().config
      const pace_ms = attemptTime(threshold_ms ?? RPC_TIMEOUT_MS)
      const since_ms = (yield* monotonicMs) - sent_ms
      if (!isWaiting || since_ms < pace_ms) return yield* Effect.sleep(pace_ms - (isWaiting ? since_ms : 0))
      yield* Effect.ignore(plane.heartbeat(yield* requestOf(undefined, sent()), pace_ms))
    }).pipe(Effect.forever)

  /** Tells {@link signs} that nothing else is sent meanwhile. */
  const whileWaiting = <A, E, R>(answer: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      isWaiting = true
      return Effect.ensuring(
        answer,
        Effect.sync(() => (isWaiting = false))
      )
    })

  return { send, signs, whileWaiting }
})

/** An outage of choird is logged once, since a heartbeat is tried several times a second. */
const makeOutage = () => {
  let isOn = false
  return {
    isOn: () => isOn,
    ends: () => void (isOn = false),
    missed: (message: string) =>
      Effect.suspend(() => {
        if (isOn) return Effect.void
        isOn = true
        return Effect.logWarning(message)
      })
  }
}

/** Replaces the configuration and its secrets by newer ones, if there are any; says whether it did. */
const replaceSettings = Effect.gen(function* () {
  const plane = yield* ControlPlane
  const secrets = yield* SecretStore
  const settings = yield* AgentSettings
  const { config, config_version } = yield* plane.config(settings.current().config_version)
  if (config === undefined) return false
  // The secrets come first: a reader of the new configuration finds what it names.
  yield* secrets.replaceAll(yield* fetchSecrets(config, secrets.named()))
  yield* settings.replace(config_version, config)
  return true
})

/** How jobs ended of late, which choird counts. A newer configuration comes with its secrets instead. */
const replaceHistories = Effect.gen(function* () {
  const plane = yield* ControlPlane
  const settings = yield* AgentSettings
  const { config, config_version } = yield* plane.config(0)
  if (config !== undefined && config_version === settings.current().config_version)
    yield* settings.replace(config_version, config)
})

/** Whether a batch that choird has holds the end of a job whose type is measured. */
const hasMeasured = (batch: Batch | undefined, ack_rev: number): boolean =>
  batch?.events.some(
    (event) =>
      event.event_type === "CoreStopped" &&
      event.rev <= ack_rev &&
      (event.payload.orphan === true || event.payload.writeback !== undefined)
  ) === true

/** The reason for which a reply ends the agent, if it does. */
const severedBy = (reply: HeartbeatReply): string | undefined => {
  if (reply.action === "FENCED") return "a newer start of this agent runs"
  return reply.action === "CONFLICT" ? "choird's stored log differs; the session is frozen" : undefined
}

/** The revision after which choird wants events. */
const wantedAfter = ({ ack_rev, action, resend_from }: HeartbeatReply): number =>
  action === "RESEND_FROM" && resend_from !== undefined ? Math.max(0, resend_from - 1) : ack_rev

/** Asks for the settings that choird has; whether they are new. */
const newSettings = replaceSettings.pipe(
  // The next heartbeat asks again; until then events matter more.
  Effect.timeout(RPC_TIMEOUT_MS),
  Effect.catch((error) => Effect.logWarning("the new configuration did not arrive", error.message))
)

const remeasure = replaceHistories.pipe(
  Effect.timeout(RPC_TIMEOUT_MS),
  Effect.catch((error) => Effect.logWarning("the counts of how jobs ended did not arrive", error.message))
)

/** Moments at which heartbeats are due. Tokens only: each taker sends all there is, so that a lost race loses nothing. */
const makeDue = Effect.gen(function* () {
  const settings = yield* AgentSettings
  const now = yield* Queue.sliding<void>(1)
  const soon = yield* Queue.sliding<void>(1)
  const urgent = Effect.andThen(Queue.take(now), Effect.sleep(REPLICATION_DEBOUNCE_MS))
  const gathered = Effect.andThen(Queue.take(soon), Effect.raceFirst(Effect.sleep(REPLICATION_GATHER_MS), urgent))
  return {
    mark: (delays: ReadonlySet<FlushDelay>) => {
      if (delays.has("now")) Queue.offerUnsafe(now, undefined)
      else if (delays.has("soon")) Queue.offerUnsafe(soon, undefined)
    },
    /** Waits until the next heartbeat is due. */
    wait: Effect.suspend(() =>
      Effect.raceFirst(urgent, gathered).pipe(
        Effect.timeoutOrElse({
          duration: settings.current().config.heartbeat_interval_ms,
          orElse: () => Effect.void
        })
      )
    )
  }
})

const NOW: ReadonlySet<FlushDelay> = new Set(["now"])

type Acknowledged = ReturnType<typeof makeAcknowledged>
type Heartbeats = Effect.Success<typeof makeHeartbeats>

/** Sends what choird lacks, one heartbeat after the other. @param refresh asks for the settings that choird has */
const makeSending = Effect.fnUntraced(function* (
  acknowledged: Acknowledged,
  heartbeats: Heartbeats,
  refresh: Effect.Effect<void>
) {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const settings = yield* AgentSettings
  const context = Context.pick(
    ControlPlane,
    SecretStore,
    AgentSettings
  )(yield* Effect.context<Effect.Services<typeof remeasure>>())
  const outage = makeOutage()
  // The revision that choird's next patches start after: what it has, or less where it asks to be sent again.
  let sent = acknowledged.newest()

  const acknowledge = (rev: number) =>
    Effect.sync(() => {
      acknowledged.raise(rev)
      if (log.isFull()) log.trim(acknowledged.newest(), residentRevs(arbiter.state(), log))
    })

  const obey = Effect.fnUntraced(function* (reply: HeartbeatReply, batch: Batch | undefined) {
    const severed = severedBy(reply)
    if (severed !== undefined) return yield* new Severed({ reason: severed })
    const before = sent
    yield* acknowledge(reply.ack_rev)
    sent = Math.min(wantedAfter(reply), log.head())
    if (sent < log.oldest() - 1)
      return yield* new Severed({ reason: `choird lost events before ${log.oldest()}, which it had acknowledged` })
    if (reply.action === "BACKOFF") yield* Effect.sleep(reply.retry_after_ms ?? RPC_RETRY_MS)
    // What was sent and not taken is not sent again at once. What was committed meanwhile was not sent, and does not wait.
    else if (batch !== undefined && sent <= before) yield* Effect.sleep(RPC_RETRY_MS)
    if (reply.config_version_latest !== settings.current().config_version) yield* refresh
    else if (hasMeasured(batch, reply.ack_rev)) yield* Effect.provide(remeasure, context)
  })

  const beat: Effect.Effect<void, Severed> = Effect.gen(function* () {
    const batch = log.after(sent, HEARTBEAT_PATCH_BYTES_MAX)
    const reply = yield* heartbeats.send(batch, sent)
    outage.ends()
    yield* obey(reply, batch)
  }).pipe(
    heartbeats.whileWaiting,
    Effect.catchTags({
      Denied: ({ reason }) => Effect.fail(new Severed({ reason })),
      Unreachable: ({ message, wait_ms }) => Effect.andThen(outage.missed(message), Effect.sleep(wait_ms))
    })
  )
  // The next heartbeat follows at once when one could not hold everything, when choird wants events again, and when there was no answer:
  // choird may not have heard it. What was committed meanwhile waits its time.
  const drain: Effect.Effect<void, Severed> = Effect.suspend(() => {
    const head = log.head()
    return Effect.andThen(
      beat,
      Effect.suspend(() => (sent < head || !acknowledged.hasRoom() || outage.isOn() ? drain : Effect.void))
    )
  })
  return { drain, sent: () => sent }
})

const make = Effect.fnUntraced(function* () {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const context = Context.pick(
    AgentSettings,
    ControlPlane,
    SecretStore
  )(yield* Effect.context<AgentSettings | ControlPlane | SecretStore>())
  const due = yield* makeDue
  const acknowledged = makeAcknowledged(log)
  const heartbeats = yield* makeHeartbeats
  yield* arbiter.onCommit((events) => due.mark(new Set(events.map((event) => flushDelayOf(event, arbiter.state())))))

  const refresh = newSettings.pipe(
    // choird shows this agent as behind until it hears of it (R58).
    Effect.map((isNew) => (isNew === true ? due.mark(NOW) : undefined)),
    Effect.provide(context)
  )

  const { drain, sent } = yield* makeSending(acknowledged, heartbeats, refresh)

  return Replication.of({
    acked: acknowledged.newest,
    reached: acknowledged.reached,
    refresh,
    room: acknowledged.room,
    flush: Effect.suspend(() => {
      due.mark(NOW)
      return acknowledged.reached(log.head())
    }),
    run: Effect.raceFirst(Effect.forever(Effect.andThen(drain, due.wait)), heartbeats.signs(sent))
  })
})

/** How long an event may wait for company before it is sent. */
type FlushDelay = "now" | "soon" | "whenever"

const isExternal = (call_id: CallId) => (call: OpenCall) => call.call_id === call_id && call.effect === "external"

export const flushDelayOf = (event: ChoirEvent, state: SessionState): FlushDelay => {
  switch (event.event_type) {
    case "AgentMessage":
      return "now"
    case "UserMsg":
    case "ModelOutput":
    case "CoreStarted":
    case "CoreStopped":
    case "Cancelled":
      return "soon"
    case "InjectedInstruction":
    case "CompactionCommitted":
      // Somebody waits for the outcome of the order.
      return event.payload.signal_id === undefined ? "whenever" : "soon"
    case "ToolCallRequested":
      // choird asks a person about what it has in its log. A report is shown to people who watch the job.
      if (event.payload.confirm !== undefined) return "now"
      return event.payload.tool === CORE_REPORT ? "soon" : "whenever"
    case "ToolCallCommitted":
      return laneOf(state, event.lane)?.calls.some(isExternal(event.payload.call_id)) === true ? "now" : "whenever"
    default:
      return "whenever"
  }
}
