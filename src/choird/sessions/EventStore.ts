/**
 * The durable replica of every session's log. choird stores events and never invents one: what an agent sends is checked
 * against revision, chain and fold, and answered as D4 says.
 */
import { Context, Effect, Layer, Option, PubSub, Schema, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { Caller, Heartbeat, HeartbeatReply, Snapshot } from "#schema/AgentApi.ts"
import { type ChoirEvent, isKnownEvent } from "#schema/Event.ts"
import { type AgentId, ResourceName, Rev, SessionId } from "#schema/Ids.ts"
import type { LogLine, Verification } from "#schema/SessionsApi.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { hex } from "#src/shared/events/hashChain.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { makeNotifier } from "#src/shared/Notifier.ts"
import { makeAppendPatches, type Settled } from "./appendPatches.ts"
import { archivedLog, archiveOf, archivePath, type ArchiveUnreadable } from "./archivedLog.ts"
import { type ForgetRefused, forgetPayloads, type Reduction } from "./forgetPayloads.ts"
import { printedEvents, printedLog, readHead, storedEvent, verifyLog } from "./readLog.ts"
import { type NewerEvents, newerFrom } from "./newerEvents.ts"
import { makeSessionStates } from "./sessionStates.ts"
import { makeSnapshots, offerSnapshot, SESSION_STATES_MAX, TAIL_PAGE_BYTES_MAX } from "./snapshots.ts"
import { readNamed, readPage, replayLog, replayStart, storedLog } from "./storedEvents.ts"
import { AppendRules } from "./AppendRules.ts"
import { EVENT_BYTES_MAX } from "#src/shared/events/storedPayload.ts"

/** Appends that a slow reader of the EventStore may be behind before it loses the oldest. */
const APPENDS_BUFFERED_MAX = 256
/** How long an agent waits before it sends again what the database could not take. */
export const APPEND_RETRY_MS = 1000

export class SessionUnknown extends Schema.TaggedError<SessionUnknown>()("SessionUnknown", { session_id: SessionId }) {
  override get message() {
    return `there is no session ${this.session_id}`
  }
  get hint() {
    return "choirctl session list"
  }
}

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

/** Told after each append that stored something. */
export interface Appended {
  readonly session_id: SessionId
  readonly agent_id: AgentId
  readonly events: ReadonlyArray<ChoirEvent>
  readonly state: SessionState
}

/** A page of stored events, whether more follow, and on the first one the snapshot that the tail belongs to. */
export interface Tail {
  readonly events: ReadonlyArray<ChoirEvent>
  readonly more: boolean
  readonly snapshot?: Snapshot
}

/** Appends, folds, reads and verifies the events of sessions. */
export class EventStore extends Context.Service<
  EventStore,
  {
    /**
     * Stores the patches of a heartbeat in one transaction with what follows from them: acknowledged inbox rows and signals,
     * and an outbox row for each AgentMessage (D6). Resent events are a no-op, a gap is asked for, a difference or a refused
     * event freezes the session, an older epoch is fenced (D4). BACKOFF says that the database cannot take it now. From the first event
     * on that is not known here the chain alone is checked (D53).
     */
    append(caller: Caller, heartbeat: Heartbeat): Effect.Effect<HeartbeatReply, EventTooLarge>
    /** The fold of what is acknowledged. */
    state(session_id: SessionId): Effect.Effect<SessionState, SessionUnknown | NewerEvents>
    /** The newest acknowledged revision and digest. */
    head(session_id: SessionId): Effect.Effect<{ readonly rev: number; readonly hash: string }, SessionUnknown>
    /**
     * What a new epoch begins with: the newest snapshot that fits the log and a reply, if there is one, and the first page of the
     * tail, from the oldest revision that it names (docs/protocol.md, Snapshots). Both are at most TAIL_PAGE_BYTES_MAX.
     */
    recovery(session_id: SessionId): Effect.Effect<Tail, SessionUnknown | NewerEvents>
    /** Single events of the log, those that it has. */
    named(session_id: SessionId, revs: ReadonlyArray<number>): Effect.Effect<ReadonlyArray<ChoirEvent>>
    /** A page of at most TAIL_PAGE_BYTES_MAX from a revision on, for recovery. */
    tail(session_id: SessionId, from: number): Effect.Effect<Tail, SessionUnknown | NewerEvents>
    /** Stored events in order from a revision on, or the last few, then, when asked, what is appended after. */
    events(
      session_id: SessionId,
      options: { readonly from?: number; readonly last?: number; readonly follow: boolean }
    ): Stream.Stream<LogLine, SessionUnknown>
    /**
     * Reduces payloads that stored events list to what the fold needs, all or none (D52); answers how many. What was reduced before is no
     * error, and counts for nothing.
     */
    forget(
      session_id: SessionId,
      reductions: ReadonlyArray<Reduction>
    ): Effect.Effect<number, SessionUnknown | ForgetRefused>
    /** Recomputes the chain and the fold from the stored text alone, also of an archived session. */
    verify(session_id: SessionId): Effect.Effect<Verification, SessionUnknown | ArchiveUnreadable>
    /** Appends as they happen; a slow reader loses the oldest and reads the store instead. */
    readonly appended: Stream.Stream<Appended>
  }
>()("choir/choird/EventStore") {
  static readonly layer = Layer.effect(
    EventStore,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const store = yield* ConfigStore
      const outbox = yield* Outbox
      const states = makeSessionStates(sql)
      const snapshots = yield* makeSnapshots(sql)
      const readers = yield* makeNotifier
      const appends = yield* PubSub.sliding<Appended>({ capacity: APPENDS_BUFFERED_MAX })
      const find = Effect.fnUntraced(function* (session_id: SessionId) {
        const head = yield* readHead(sql, session_id)
        return head === undefined ? yield* new SessionUnknown({ session_id }) : head
      })
      const headOf = (session_id: SessionId) => Effect.catchTag(find(session_id), "SqlError", Effect.die)
      /** The log of an archived session, whose events are in a file. */
      const archived = (session_id: SessionId, last_rev: number) =>
        Effect.map(archiveOf(sql, session_id), (archive) =>
          archive === undefined ? undefined : archivedLog(archivePath(store.home, archive), last_rev)
        )
      const prove = Effect.fnUntraced(function* (session_id: SessionId) {
        const { hash, last_rev } = yield* find(session_id)
        const log = yield* archived(session_id, last_rev)
        if (log !== undefined) return yield* Effect.orDie(replayLog(log, replayStart(session_id)))
        return yield* states.at(session_id, last_rev, hash)
      })

      const appendPatches = yield* makeAppendPatches(
        sql,
        states,
        yield* AppendRules,
        store.current,
        ({ dms, hash, isNewer, ...appended }) =>
          Effect.gen(function* () {
            if (!isNewer) {
              const at = { hash, state: appended.state }
              states.keep(appended.session_id, at)
              yield* snapshots.progressed(appended.session_id, at)
            }
            if (appended.events.length > 0) yield* PubSub.publish(appends, appended)
            yield* readers.wake(appended.session_id)
            yield* Effect.forEach(dms, outbox.wake, { discard: true })
          })
      )

      /** Sessions whose newest request failed, though the database may have committed it; the newest of them. */
      const unheard = new Set<SessionId>()
      const failed = (session_id: SessionId) => {
        unheard.delete(session_id)
        unheard.add(session_id)
        const [oldest] = unheard
        if (unheard.size > SESSION_STATES_MAX && oldest !== undefined) unheard.delete(oldest)
      }
      /** An agent sends again what it has no answer to. choird may not have heard of that commit either: then nobody was told. */
      const tellAgain = Effect.fnUntraced(function* ({ agent_id, session_id }: Caller, { patches }: Heartbeat) {
        if (unheard.has(session_id)) {
          const proved = yield* Effect.option(prove(session_id))
          const state = Option.getOrUndefined(proved)?.at.state
          const events = patches.filter((event) => isKnownEvent(event))
          if (state !== undefined) yield* PubSub.publish(appends, { session_id, agent_id, events, state })
        }
        yield* readers.wake(session_id)
        const { dms } = (yield* store.current).config
        yield* Effect.forEach(Object.keys(dms), (dm) => outbox.wake(ResourceName.make(dm)), { discard: true })
      })

      const append = Effect.fn("EventStore.append")(function* (caller: Caller, heartbeat: Heartbeat) {
        // A long log is proved before its session is locked, or whoever sends it a message would wait.
        if (caller.standing !== "superseded" && !states.has(caller.session_id))
          yield* Effect.ignore(prove(caller.session_id))
        const settled = yield* appendPatches(caller, heartbeat)
        if (settled.decision.type === "duplicate" && heartbeat.patches.length > 0) yield* tellAgain(caller, heartbeat)
        if (settled.decision.type === "backoff") failed(caller.session_id)
        else unheard.delete(caller.session_id)
        const reply = yield* answer(settled, heartbeat)
        return { ...reply, config_version_latest: (yield* store.current).version }
      })

      const state = Effect.fn("EventStore.state")(function* (session_id: SessionId) {
        const { at, problem } = yield* Effect.catchTag(prove(session_id), "SqlError", Effect.die)
        if (problem === undefined) return at.state
        if (problem.newer !== undefined) return yield* yield* Effect.orDie(newerFrom(sql, session_id, problem.newer))
        return yield* Effect.die(new Error(`the log of ${session_id} is broken at ${problem.rev}: ${problem.reason}`))
      })

      const page = Effect.fnUntraced(function* (session_id: SessionId, from: number, last_rev: number, bytes: number) {
        if (from > last_rev) return { events: [], more: false }
        const rows = yield* Effect.orDie(readPage(sql, session_id, Math.max(1, from), bytes))
        const events = yield* Effect.forEach(rows, (row) => storedEvent(sql, session_id, row))
        return { events, more: (events.at(-1)?.rev ?? last_rev) < last_rev }
      })

      const recovery = Effect.fn("EventStore.recovery")(function* (session_id: SessionId) {
        const { last_rev } = yield* headOf(session_id)
        const offer = last_rev === 0 ? undefined : yield* Effect.orDie(offerSnapshot(sql, session_id, last_rev))
        if (offer === undefined) return yield* page(session_id, 1, last_rev, TAIL_PAGE_BYTES_MAX)
        const { bytes, snapshot } = offer
        const room = TAIL_PAGE_BYTES_MAX - bytes
        return { snapshot, ...(yield* page(session_id, snapshot.tail_after.rev + 1, last_rev, room)) }
      })

      return EventStore.of({
        append,
        state,
        recovery,
        named: Effect.fn("EventStore.named")(function* (session_id, revs) {
          if (revs.length === 0) return []
          const rows = yield* readNamed(sql, session_id, revs)
          return yield* Effect.forEach(rows, (row) => storedEvent(sql, session_id, row))
        }, Effect.orDie),
        tail: Effect.fn("EventStore.tail")(function* (session_id, from) {
          const { last_rev } = yield* headOf(session_id)
          return yield* page(session_id, from, last_rev, TAIL_PAGE_BYTES_MAX)
        }),
        head: Effect.fn("EventStore.head")(function* (session_id) {
          const { hash, last_rev } = yield* headOf(session_id)
          return { rev: last_rev, hash: hex(hash) }
        }),
        events: (session_id, options) =>
          Stream.unwrap(
            Effect.gen(function* () {
              const { last_rev } = yield* headOf(session_id)
              const log = yield* archived(session_id, last_rev)
              const from = firstRev(options, last_rev)
              if (log !== undefined) return Stream.orDie(printedLog(log, from))
              const wakes = options.follow ? readers.wakes(session_id) : Stream.make(undefined)
              return printedEvents(sql, session_id, from, wakes)
            })
          ),
        forget: Effect.fn("EventStore.forget")(function* (session_id, reductions) {
          yield* headOf(session_id)
          return yield* Effect.catchTag(
            sql.withTransaction(forgetPayloads(sql, session_id, reductions)),
            "SqlError",
            Effect.die
          )
        }),
        verify: Effect.fn("EventStore.verify")(function* (session_id) {
          const head = yield* headOf(session_id)
          const log = yield* archived(session_id, head.last_rev)
          if (log !== undefined) return yield* verifyLog(session_id, head, log)
          return yield* Effect.orDie(verifyLog(session_id, head, storedLog(sql, session_id, head.newest_rev)))
        }),
        appended: Stream.fromPubSub(appends)
      })
    })
  )
}

/** Any number may come from an operator; nothing lies after the end but what is appended later. */
const firstRev = (options: { readonly from?: number; readonly last?: number }, last_rev: number): number => {
  const wanted = Math.max(1, options.from ?? 1, options.last === undefined ? 1 : last_rev + 1 - options.last)
  return Math.min(Math.trunc(wanted), last_rev + 1)
}

/** Where the caller learns nothing of the session, it is told the revision that it named itself. */
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
