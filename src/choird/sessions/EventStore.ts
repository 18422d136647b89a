/**
 * The durable replica of every session's log. choird stores events and never invents one: an agent's events are checked
 * against revision, chain and fold, and answered as D4 says.
 */
import { Context, Effect, Layer, Option, Schema, Stream } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import type { Caller, Heartbeat, HeartbeatReply } from "#schema/AgentApi.ts"
import { isKnownEvent } from "#schema/Event.ts"
import { ResourceName, Rev, type SessionId } from "#schema/Ids.ts"
import type { LogLine } from "#schema/SessionsApi.ts"
import type { Verification } from "#schema/SessionsApi.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type DatabaseAway, inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import { hex } from "#src/shared/events/hashChain.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { makeNotifier } from "#src/choird/queues/Notifier.ts"
import { makeAppendPatches, type Settled, type Unstored } from "./appendPatches.ts"
import { type Appended, type Appends, makeAppends } from "./Appends.ts"
import { type ArchiveUnreadable } from "./archivedLog.ts"
import { FORGOTTEN_EVENTS_MAX, forgetEvents, type ForgottenEvents } from "./forgetEvents.ts"
import type { SessionWords } from "./jobSummaries.ts"
import { readHead } from "./readLog.ts"
import { type NewerEvents } from "./newerEvents.ts"
import { makeSnapshots, SESSION_STATES_MAX } from "./snapshots.ts"
import { EVENT_BYTES_MAX } from "#src/shared/events/storedPayload.ts"
import { type Notifier } from "#src/choird/queues/Notifier.ts"
import {
  firstTail,
  proveState,
  readEvents,
  readJobWords,
  readState,
  type SessionUnknown,
  type Tail,
  tailPage,
  verifySession
} from "./readLog.ts"
import { SessionStates } from "./SessionStates.ts"

/** How long an agent waits before it repeats a request that the database could not take. */
export const APPEND_RETRY_MS = 1000

/** An agent sent an event above EVENT_BYTES_MAX (R48). Nothing of its request was stored. */
export class EventTooLarge extends Schema.TaggedError<EventTooLarge>()("EventTooLarge", {
  rev: Rev,
  bytes: Schema.Natural
}) {
  override get message() {
    return `event ${this.rev} has ${this.bytes} canonical bytes, and at most ${EVENT_BYTES_MAX} are stored`
  }
  get hint() {
    return "put large results into files"
  }
}

/** Appends, folds, reads and verifies the events of sessions. */
export class EventStore extends Context.Service<
  EventStore,
  {
    /**
     * Stores the patches of a heartbeat in one transaction with their projections: acknowledged inbox rows and signals,
     * and an outbox row for each AgentMessage (D6). Resent events are a no-op, a gap is asked for, a difference or a refused
     * event freezes the session, an older epoch is fenced (D4). BACKOFF says that the database cannot take it now, or that an answer has no room
     * in the outbox. From the first event on that is not known here the chain alone is checked (D53).
     */
    append(caller: Caller, heartbeat: Heartbeat): Effect.Effect<HeartbeatReply, EventTooLarge>
    /** The agents whose events the database does not take, until it takes some. */
    readonly unstored: Effect.Effect<ReadonlyArray<Unstored>>
    /** The fold of the acknowledged events. */
    state(session_id: SessionId): Effect.Effect<SessionState, SessionUnknown | NewerEvents | DatabaseAway>
    /** The newest acknowledged revision and digest. */
    head(
      session_id: SessionId
    ): Effect.Effect<{ readonly rev: number; readonly hash: string }, SessionUnknown | DatabaseAway>
    /**
     * The start of a new epoch: the newest snapshot that fits the log and a reply, if there is one, and the first page of the
     * tail, from the oldest revision that it names (docs/protocol.md, Snapshots). Both are at most TAIL_PAGE_BYTES_MAX.
     */
    recovery(session_id: SessionId): Effect.Effect<Tail, SessionUnknown | NewerEvents | DatabaseAway>
    /** The task, the reports and the question of each running job of a state, and the jobs that wait to start. */
    jobWords(session_id: SessionId, state: SessionState): Effect.Effect<SessionWords, DatabaseAway>
    /** A page of at most TAIL_PAGE_BYTES_MAX from a revision on, for recovery. */
    tail(session_id: SessionId, from: number): Effect.Effect<Tail, SessionUnknown | NewerEvents | DatabaseAway>
    /** Stored events in order from a revision on, or the last few; with `follow` also those that are appended later. */
    events(
      session_id: SessionId,
      options: { readonly from?: number; readonly last?: number; readonly follow: boolean }
    ): Stream.Stream<LogLine, SessionUnknown | DatabaseAway>
    /**
     * Reduces events to what the fold needs, and lists them at the end of the log (D52). Those that were reduced before do not count, nor
     * do those without free text. The epoch of an active session is fenced, so its agent must start again. Of many events a part at a time is
     * reduced; `also` is done in the transaction of each part.
     */
    forget(
      session_id: SessionId,
      revs: ReadonlyArray<Rev>,
      also?: (reduced: number) => Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient>
    ): Effect.Effect<ForgottenEvents, SessionUnknown | DatabaseAway>
    /** Recomputes the chain and the fold from the stored text alone, also of an archived session. */
    verify(session_id: SessionId): Effect.Effect<Verification, SessionUnknown | ArchiveUnreadable | DatabaseAway>
    /** Appends as they happen; a slow reader loses the oldest and reads the store instead. */
    readonly appended: Stream.Stream<Appended>
  }
>()("choir/choird/EventStore") {
  static readonly layer = Layer.effect(
    EventStore,
    Effect.suspend(() => make)
  ).pipe(Layer.provide(SessionStates.layer))
}

const make = Effect.gen(function* () {
  const onDatabase = yield* useDatabase
  const context = yield* Effect.context<ConfigStore | SessionStates | SqlClient.SqlClient>()
  const states = yield* SessionStates
  const readers = yield* makeNotifier
  const appends = yield* makeAppends
  const { append, unstored } = yield* makeAppend(readers, appends)
  const read = <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.provideContext(onDatabase(work), context)

  return EventStore.of({
    append: Effect.fn("EventStore.append")(append),
    unstored,
    state: Effect.fn("EventStore.state")(readState, read),
    recovery: Effect.fn("EventStore.recovery")(firstTail, read),
    jobWords: Effect.fn("EventStore.jobWords")(readJobWords, read),
    tail: Effect.fn("EventStore.tail")(function* (session_id, from) {
      const { last_rev } = yield* readHead(session_id)
      return yield* tailPage(session_id, from, last_rev)
    }, read),
    head: Effect.fn("EventStore.head")(function* (session_id) {
      const { hash, last_rev } = yield* readHead(session_id)
      return { rev: last_rev, hash: hex(hash) }
    }, read),
    events: (session_id, options) => {
      const wakes = options.follow ? readers.wakes(session_id) : Stream.make(undefined)
      return Stream.unwrap(read(readEvents(session_id, options, wakes)))
    },
    forget: Effect.fn("EventStore.forget")(function* (session_id, revs, also = () => Effect.void) {
      yield* readHead(session_id)
      let all: ForgottenEvents = { reduced: 0, fixed: 0, archived: false }
      for (let from = 0; from < revs.length; from += FORGOTTEN_EVENTS_MAX) {
        const forgets = forgetEvents(session_id, revs.slice(from, from + FORGOTTEN_EVENTS_MAX))
        const part = yield* inTransaction(Effect.tap(forgets, ({ reduced }) => also(reduced)))
        all = { ...part, reduced: all.reduced + part.reduced, fixed: all.fixed + part.fixed }
      }
      // A state that was folded before holds summaries of what is forgotten.
      states.drop(session_id)
      yield* readers.wake(session_id)
      return all
    }, read),
    verify: Effect.fn("EventStore.verify")(verifySession, read),
    appended: appends.stream
  })
})

/** Appends the patches of heartbeats, and announces stored events to the readers of a session, its DMs and `appends`. */
const makeAppend = Effect.fnUntraced(function* (readers: Notifier, appends: Appends) {
  const store = yield* ConfigStore
  const outbox = yield* Outbox
  const snapshots = yield* makeSnapshots
  const states = yield* SessionStates
  const context = yield* Effect.context<ConfigStore | SessionStates | SqlClient.SqlClient>()
  const prove = (session_id: SessionId) => Effect.provideContext(proveState(session_id), context)
  /** Sessions whose newest request failed, though the database may have committed it. */
  const uncertain = new BoundedMap<SessionId, true>(SESSION_STATES_MAX)

  const patches = yield* makeAppendPatches(({ bytes, dms, hash, isNewer, ...appended }) =>
    Effect.gen(function* () {
      if (!isNewer) {
        const at = { hash, state: appended.state }
        states.keep(appended.session_id, at)
        yield* snapshots.progressed(appended.session_id, at)
      }
      if (appended.events.length > 0) yield* appends.publish(appended, bytes)
      yield* readers.wake(appended.session_id)
      yield* Effect.forEach(dms, outbox.wake, { discard: true })
    })
  )

  /** An agent repeats a request that it has no answer to. choird may have missed the answer to that commit as well, and then announced nothing. */
  const announceAgain = Effect.fnUntraced(function* ({ agent_id, session_id }: Caller, { patches }: Heartbeat) {
    if (uncertain.has(session_id)) {
      const proved = yield* Effect.option(prove(session_id))
      const state = Option.getOrUndefined(proved)?.at.state
      const events = patches.filter((event) => isKnownEvent(event))
      const bytes = Buffer.byteLength(JSON.stringify(events))
      if (state !== undefined) yield* appends.publish({ session_id, agent_id, events, state }, bytes)
    }
    yield* readers.wake(session_id)
    const { dms } = (yield* store.current).config
    yield* Effect.forEach(Object.keys(dms), (dm) => outbox.wake(ResourceName.make(dm)), { discard: true })
  })

  const append = Effect.fnUntraced(function* (caller: Caller, heartbeat: Heartbeat) {
    const { session_id, standing } = caller
    // A long log is proved before its session is locked, or messages to it would have to wait.
    if (standing !== "superseded" && !states.has(session_id)) yield* Effect.ignore(prove(session_id))
    const settled = yield* patches.append(caller, heartbeat)
    if (settled.decision.type === "duplicate" && heartbeat.patches.length > 0) yield* announceAgain(caller, heartbeat)
    if (settled.decision.type === "backoff") uncertain.set(session_id, true)
    else uncertain.delete(session_id)
    const reply = yield* answer(settled, heartbeat)
    return { ...reply, config_version_latest: (yield* store.current).version }
  })
  return { append, unstored: patches.unstored }
})

/** A caller that learns nothing of the session gets the revision that it named itself. */
const answer = ({ decision, last_rev }: Settled, { base_rev, new_rev }: Heartbeat) => {
  switch (decision.type) {
    case "fenced":
      return Effect.succeed({ action: "FENCED" as const, ack_rev: base_rev })
    case "backoff":
      return Effect.succeed({ action: "BACKOFF" as const, ack_rev: base_rev, retry_after_ms: APPEND_RETRY_MS })
    case "frozen":
    case "conflict":
      return Effect.succeed({ action: "CONFLICT" as const, ack_rev: last_rev })
    case "gap":
      return Effect.succeed({ action: "RESEND_FROM" as const, ack_rev: last_rev, resend_from: last_rev + 1 })
    case "duplicate":
      return Effect.succeed({ action: "OK" as const, ack_rev: last_rev })
    case "store":
      return Effect.succeed({ action: "OK" as const, ack_rev: new_rev })
    case "too_large":
      return Effect.fail(new EventTooLarge({ rev: decision.rev, bytes: decision.bytes }))
  }
}
