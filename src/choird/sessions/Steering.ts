/**
 * Requests of people to a running session, from the command line and from gateways alike: instructions to edge, answers to jobs, the end of a
 * job or of a turn, compaction. Each is checked against the acknowledged events, stored once for its request id, and ends in an event; each request and
 * each refusal is audited (R77).
 */
import { Context, Effect, Layer, Option, Stream } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { Rev, type SessionId, type SignalId } from "#schema/Ids.ts"
import { isPrintedEvent } from "#schema/SessionsApi.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import type { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"
import { EventStore } from "./EventStore.ts"
import { auditDetail, isSame, type Order, ORDER_ACTIONS, refused, SteeringRefused, signalBodyOf } from "./Order.ts"
import { SessionUnknown } from "./readLog.ts"
import { type SessionRow, SessionStore } from "./SessionStore.ts"
import { type Sent, Signals, type SignalBody } from "#src/choird/queues/Signals.ts"

export interface Request {
  readonly session_id: SessionId
  /** The same id and order make one signal, however often they are asked for (R28). */
  readonly request_id: string
  /** For the audit: `operator`, `gateway:<name>`. */
  readonly who: string
  /** How long to wait for the event, in milliseconds; 0 does not wait. */
  readonly wait_ms: number
}

/** The event that a signal ended in. `refused` says why nothing came of it. */
export interface Ended {
  readonly rev: Rev
  readonly refused: string | null
}

export interface Ordered<T extends Order["type"] = Order["type"]> {
  readonly signal_id: SignalId
  readonly body: Extract<
    SignalBody,
    {
      readonly type: T extends "Cancel" | "CancelSkill" ? "CancelCore" | "StopTurn" : T extends "Answer" ? "Inject" : T
    }
  >
  /** Null while no event that choird knows of ends it. */
  readonly ended: Ended | null
}

/** A stored request, with the event that it ended in as far as choird knows of it. */
export interface Answer {
  readonly ended: Ended | null
}

/** Steers sessions. */
export class Steering extends Context.Service<
  Steering,
  {
    /** Makes a signal of an order and waits for its event as long as the request says. */
    order<const O extends Order>(
      request: Request,
      order: O
    ): Effect.Effect<Ordered<O["type"]>, SteeringRefused | SessionUnknown | DatabaseAway>
    /** The outcome of an earlier request: undefined for one that was never stored. It waits for nothing. */
    answer(session_id: SessionId, request_id: string): Effect.Effect<Answer | undefined, DatabaseAway>
  }
>()("choir/choird/Steering") {
  static readonly layer = Layer.effect(
    Steering,
    Effect.suspend(() => make())
  )
}

const queued = ({ agent_id }: SessionRow, sent: Sent, order: Order) => {
  switch (sent.type) {
    case "inactive":
      return refused("NOT_RUNNING", `the session is ${sent.status}`, `choirctl agent start ${agent_id}`)
    case "full":
      return refused("SIGNALS_FULL", `${sent.pending} requests are already waiting for this session`, "ask again later")
    case "queued":
      return isSame(order, sent.body)
        ? Effect.succeed(sent)
        : refused("REQUEST_ID_REUSED", "this request id was used for another request", "take a new one")
  }
}

const signalOf = ({ event_type, payload }: ChoirEvent): string | undefined =>
  event_type === "InjectedInstruction" ||
  event_type === "Cancelled" ||
  event_type === "CompactionCommitted" ||
  event_type === "SkillTransitionCommitted"
    ? payload.signal_id
    : undefined

const endedIn = (event: ChoirEvent): Ended => {
  if (event.event_type === "InjectedInstruction") return { rev: event.rev, refused: event.payload.refused ?? null }
  const reason = event.event_type === "Cancelled" ? event.payload.reason : undefined
  if (reason === "jobs_run") return { rev: event.rev, refused: "a job began meanwhile, and would have ended" }
  if (reason === "no_such_turn") return { rev: event.rev, refused: "the turn had already ended" }
  return { rev: event.rev, refused: reason === "no_such_job" ? "the job had already stopped" : null }
}

/** Stores the signal of an order once, if the session and its state allow it. */
const place = Effect.fnUntraced(function* ({ request_id, session_id }: Request, row: SessionRow, order: Order) {
  const events = yield* EventStore
  const signals = yield* Signals
  // The job or turn may have ended by now, so a repeated request is not checked again.
  const earlier = yield* signals.asked(session_id, request_id)
  if (earlier !== undefined) return yield* queued(row, { type: "queued", ...earlier }, order)
  if (row.status !== "active") return yield* queued(row, { type: "inactive", status: row.status }, order)
  // Asked before the state, which has every message that is not waiting any more.
  const next = yield* signals.nextMessage(session_id)
  const state = yield* Effect.catchTag(
    events.state(session_id),
    "NewerEvents",
    ({ hint, message }) => new SteeringRefused({ kind: "NEWER_EVENTS", reason: message, hint })
  )
  const body = yield* signalBodyOf(state, order, next)
  return yield* queued(row, yield* signals.send(session_id, request_id, body), order)
})

/** The end of a signal in a log from a revision on. */
const ending = Effect.fnUntraced(function* (session_id: SessionId, signal_id: SignalId, from: number, follow: boolean) {
  const events = yield* EventStore
  const found = yield* events.events(session_id, { from, follow }).pipe(
    Stream.filter(isPrintedEvent),
    Stream.filter(({ event }) => signalOf(event) === signal_id),
    Stream.runHead
  )
  return Option.map(found, ({ event }) => endedIn(event))
})

/** Reads the head before the row, so that the event is either acknowledged by now or comes after that head. */
const outcome = Effect.fnUntraced(function* ({ request_id, session_id, wait_ms }: Request, signal_id: SignalId) {
  const events = yield* EventStore
  const signals = yield* Signals
  const { rev: head } = yield* events.head(session_id)
  const asked = yield* signals.asked(session_id, request_id)
  const acked_rev = asked?.acked_rev ?? null
  return acked_rev === null
    ? Option.getOrNull(
        Option.flatten(yield* Effect.timeoutOption(ending(session_id, signal_id, head + 1, true), wait_ms))
      )
    : Option.getOrNull(yield* ending(session_id, signal_id, acked_rev, false))
})

const make = Effect.fnUntraced(function* () {
  const audit = yield* Audit
  const sessions = yield* SessionStore
  const signals = yield* Signals
  const provide = Effect.provideContext(
    Context.pick(EventStore, Signals)(yield* Effect.context<EventStore | Signals>())
  )

  const answer = Effect.fn("Steering.answer")(function* (session_id: SessionId, request_id: string) {
    const asked = yield* signals.asked(session_id, request_id)
    if (asked === undefined) return undefined
    const { acked_rev, signal_id } = asked
    if (acked_rev === null) return { ended: null }
    const ended = Effect.catchTag(
      ending(session_id, signal_id, acked_rev, false),
      "SessionUnknown",
      () => Effect.succeedNone
    ).pipe(provide)
    return { ended: Option.getOrElse(yield* ended, (): Ended => ({ rev: Rev.make(acked_rev), refused: null })) }
  })

  const order = Effect.fn("Steering.order")(function* <const O extends Order>(request: Request, order: O) {
    const { session_id, who } = request
    const entry = { who, action: ORDER_ACTIONS[order.type], session_id }
    const detail = auditDetail(order)
    const row = Option.getOrUndefined(yield* sessions.get(session_id))
    const placed = row === undefined ? new SessionUnknown({ session_id }) : provide(place(request, row, order))
    const { signal_id, body } = yield* Effect.tapError(placed, (error) =>
      error._tag === "DatabaseAway"
        ? Effect.void
        : audit.record({
            ...entry,
            detail: { ...detail, refused: error._tag === "SteeringRefused" ? error.kind : "UNKNOWN_SESSION" }
          })
    )
    const job = "job_name" in body && body.job_name !== undefined ? { job_name: body.job_name } : {}
    const turn = body.type === "StopTurn" ? body.turn : {}
    // The agent says later whether a skill begins.
    const ordered = order.type === "StartSkill" ? { outcome: "ordered" } : {}
    yield* audit.record({ ...entry, detail: { ...detail, ...job, ...turn, ...ordered, signal_id } })
    const ended = request.wait_ms === 0 ? null : yield* provide(outcome(request, signal_id))
    // A stored signal of another type is refused as another request's.
    return { signal_id, body: body as Ordered<O["type"]>["body"], ended }
  })
  return Steering.of({ answer, order })
})
