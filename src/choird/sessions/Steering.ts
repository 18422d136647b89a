/**
 * Requests of people to a running session, from the command line and from gateways alike: instructions to edge, answers to jobs, the end of a
 * job or of a turn, compaction. Each is checked against the acknowledged events, stored once for its request id, and ends in an event; each request and
 * each refusal is audited (R77).
 */
import { Context, Effect, Layer, Option, Schema, Stream } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { type InboxId, jobOf, JobName, type LaneId, Rev, type SessionId, type SignalId } from "#schema/Ids.ts"
import { isPrintedEvent } from "#schema/SessionsApi.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { CHAT_TEXT_LIMIT, isTooLong } from "#src/shared/text/chatText.ts"
import type { SkillName } from "#schema/Skill.ts"
import { canonicalJson, storableJson } from "#src/shared/text/canonicalJson.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { turnToStop } from "#src/shared/session/turns.ts"
import type { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"
import { EventStore } from "./EventStore.ts"
import { SessionUnknown } from "./readLog.ts"
import { type SessionRow, SessionStore } from "./SessionStore.ts"
import { type Sent, Signals, type Wish } from "#src/choird/queues/Signals.ts"

/** A refused order with its reason and a way out. `kind` is also the API's error type. */
export class SteeringRefused extends Schema.TaggedError<SteeringRefused>()("SteeringRefused", {
  kind: Schema.Literals([
    "EMPTY",
    "TOO_LARGE",
    "NO_SUCH_JOB",
    "NO_QUESTION",
    "JOB_AMBIGUOUS",
    "NOTHING_RUNS",
    "NOT_RUNNING",
    "NEWER_EVENTS",
    "SIGNALS_FULL",
    "REQUEST_ID_REUSED"
  ]),
  reason: Schema.String,
  hint: Schema.String
}) {
  override get message() {
    return this.reason
  }
}

/** A person's order. A job that is not named is the only one that runs. `Cancel` ends that job, or the turn when no job runs. */
export type Order =
  | { readonly type: "Inject"; readonly content: string }
  /** The answer to a job's question. The job is named, by the first word of the content where it asks one, or the only one that asks. */
  | { readonly type: "Answer"; readonly content: string; readonly job_name?: JobName }
  | { readonly type: "CancelCore"; readonly job_name?: JobName }
  /** Runs a skill in a job of its own. `trigger` is what began it, where no person did. */
  | {
      readonly type: "StartSkill"
      readonly skill: SkillName
      readonly input?: Schema.Json
      readonly trigger?: string
    }
  /** Ends the job that runs a skill, or edge's turn where edge does. */
  | { readonly type: "CancelSkill"; readonly skill: SkillName }
  | { readonly type: "StopTurn" }
  | { readonly type: "Cancel" }
  | { readonly type: "Compact"; readonly lane?: LaneId }

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
  readonly wish: Extract<
    Wish,
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

const refused = (kind: SteeringRefused["kind"], reason: string, hint: string) =>
  Effect.fail(new SteeringRefused({ kind, reason, hint }))

const ACTIONS = {
  Inject: "session.inject",
  Answer: "session.answer",
  CancelCore: "session.cancel",
  StartSkill: "skill.start",
  CancelSkill: "skill.cancel",
  Cancel: "session.cancel",
  StopTurn: "session.stop",
  Compact: "session.compact"
} as const

/** The one job that is meant: the named one, or the only one. */
const chosenJob = ({ cores }: SessionState, named: JobName | undefined) => {
  const running = [...cores.keys()]
  const names = running.join(", ") || "none"
  if (named !== undefined)
    return running.includes(named)
      ? Effect.succeed(named)
      : refused("NO_SUCH_JOB", `no job ${named} runs`, `running: ${names}`)
  const [only, ...others] = running
  if (only === undefined) return refused("NO_SUCH_JOB", "no job runs in this session", `running: ${names}`)
  return others.length === 0
    ? Effect.succeed(only)
    : refused("JOB_AMBIGUOUS", "several jobs run", `name one of: ${names}`)
}

/** An answer with the job that it is for: jobs that ask at once are told apart by name. */
const chosenAnswer = (
  { cores }: SessionState,
  { content, job_name }: Extract<Order, { type: "Answer" }>
): Effect.Effect<{ readonly job_name: JobName; readonly content: string }, SteeringRefused> => {
  const asking = [...cores.values()].flatMap((core) => (core.question === undefined ? [] : [core.job_name]))
  const hint = `jobs that ask: ${asking.join(", ") || "none"}`
  const [, word = "", rest = ""] = /^(\S+)\s*([^]*)$/u.exec(content.trim()) ?? []
  const named = job_name ?? asking.find((name) => name === word)
  const text = job_name === undefined && named !== undefined ? rest : content.trim()
  const [only, ...others] = asking
  const chosen = named ?? (others.length === 0 ? only : undefined)
  if (chosen === undefined && others.length > 0) return refused("JOB_AMBIGUOUS", "several jobs ask something", hint)
  const unasked = job_name ?? [...cores.keys()].find((name) => name === word)
  if (unasked !== undefined && !asking.includes(unasked))
    return refused("NO_QUESTION", `the job ${unasked} does not wait for an answer`, hint)
  if (chosen === undefined) return refused("NO_QUESTION", "no job waits for an answer", hint)
  return text === ""
    ? refused("EMPTY", "the answer is empty", `say what ${chosen} is to know`)
    : Effect.succeed({ job_name: chosen, content: text })
}

const sized = (content: string) =>
  isTooLong(content)
    ? refused(
        "TOO_LARGE",
        `an instruction may have ${CHAT_TEXT_LIMIT}`,
        "put the rest into a file of the workspace and name it"
      )
    : Effect.succeed(content)

const chosenTurn = (state: SessionState, next: InboxId | undefined) => {
  const turn = turnToStop(state, next)
  return turn === undefined
    ? refused("NOTHING_RUNS", "no turn runs in this session", "choirctl session cores shows its jobs")
    : Effect.succeed<Wish>({ type: "StopTurn", turn })
}

/** Bytes of the input that a person gives a skill. */
const SKILL_INPUT_BYTES_MAX = 64 * 1024
const JOB_NAME_CHARS_MAX = 40

/** The job in which a person's order runs a skill. */
const skillJob = (skill: SkillName): JobName =>
  JobName.make(`run-${skill.replaceAll(/[^a-z0-9]+/gu, "-")}`.slice(0, JOB_NAME_CHARS_MAX))

/** The signal that an order becomes in this state. `next` is the oldest message that was not taken shortly before. */
const wishOf = Effect.fnUntraced(function* (state: SessionState, order: Order, next: InboxId | undefined) {
  switch (order.type) {
    case "StopTurn":
      return yield* chosenTurn(state, next)
    case "Cancel":
      return state.cores.size === 0
        ? yield* chosenTurn(state, next)
        : ({ type: "CancelCore", job_name: yield* chosenJob(state, undefined) } satisfies Wish)
    case "Inject": {
      const { content } = order
      if (content.trim() === "") return yield* refused("EMPTY", "the instruction is empty", "say what edge is to know")
      return { type: "Inject", content: yield* sized(content) } satisfies Wish
    }
    case "Answer": {
      const { content, job_name } = yield* chosenAnswer(state, order)
      return { type: "Inject", content: yield* sized(content), job_name } satisfies Wish
    }
    case "CancelCore":
      return { type: "CancelCore", job_name: yield* chosenJob(state, order.job_name) } satisfies Wish
    case "StartSkill": {
      const { input, skill, trigger } = order
      if (Buffer.byteLength(JSON.stringify(input ?? null)) > SKILL_INPUT_BYTES_MAX)
        return yield* refused(
          "TOO_LARGE",
          `a skill's input may have ${SKILL_INPUT_BYTES_MAX} bytes`,
          "put the rest into a file of the workspace and name it"
        )
      const job_name = skillJob(skill)
      return {
        type: "StartSkill",
        skill,
        job_name,
        ...(input === undefined ? {} : { input }),
        ...(trigger === undefined ? {} : { trigger })
      } satisfies Wish
    }
    case "CancelSkill": {
      const job = [...state.cores.values()].find((core) => core.skill?.name === order.skill)
      if (job !== undefined) return { type: "CancelCore", job_name: job.job_name } satisfies Wish
      if (state.edge.skill?.name === order.skill) return yield* chosenTurn(state, next)
      return yield* refused(
        "NOTHING_RUNS",
        `the skill ${order.skill} does not run`,
        "choirctl skill runs lists what ran"
      )
    }
    case "Compact": {
      const job_name = order.lane === undefined ? undefined : jobOf(order.lane)
      if (job_name !== undefined) yield* chosenJob(state, job_name)
      return (order.lane === undefined ? { type: "Compact" } : { type: "Compact", lane: order.lane }) satisfies Wish
    }
  }
})

/** Whether an order is the one that a stored wish came from. */
const isSame = (order: Order, wish: Wish): boolean => {
  switch (order.type) {
    case "Inject":
      return wish.type === "Inject" && wish.job_name === undefined && wish.content === storableJson(order.content)
    case "Answer":
      return (
        wish.type === "Inject" &&
        wish.job_name !== undefined &&
        (order.job_name === undefined || order.job_name === wish.job_name) &&
        storableJson(order.content).trim().endsWith(wish.content)
      )
    case "CancelCore":
      return wish.type === "CancelCore" && (order.job_name === undefined || wish.job_name === order.job_name)
    case "StopTurn":
      return wish.type === "StopTurn"
    case "StartSkill":
      return (
        wish.type === "StartSkill" &&
        wish.skill === order.skill &&
        wish.trigger === order.trigger &&
        canonicalJson(wish.input ?? null) === canonicalJson(order.input ?? null)
      )
    case "CancelSkill":
    case "Cancel":
      return wish.type === "CancelCore" || wish.type === "StopTurn"
    case "Compact":
      return wish.type === "Compact" && wish.lane === order.lane
  }
}

const queued = ({ agent_id }: SessionRow, sent: Sent, order: Order) => {
  switch (sent.type) {
    case "inactive":
      return refused("NOT_RUNNING", `the session is ${sent.status}`, `choirctl agent start ${agent_id}`)
    case "full":
      return refused("SIGNALS_FULL", `${sent.pending} requests wait for this session already`, "ask again later")
    case "queued":
      return isSame(order, sent.wish)
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
  if (reason === "no_such_turn") return { rev: event.rev, refused: "the turn had ended before" }
  return { rev: event.rev, refused: reason === "no_such_job" ? "the job had stopped before" : null }
}

/** The detail of an order in its audit row: never the words of an instruction. */
const auditDetail = (order: Order): Readonly<Record<string, string | number | null>> => {
  switch (order.type) {
    case "Inject":
      return { chars: order.content.length }
    case "Answer":
      return { chars: order.content.length, job_name: order.job_name ?? null }
    case "StartSkill":
      return { skill: order.skill, ...(order.trigger === undefined ? {} : { trigger: order.trigger }) }
    case "CancelSkill":
      return { skill: order.skill }
    case "CancelCore":
      return { job_name: order.job_name ?? null }
    case "Compact":
      return { lane: order.lane ?? null }
    case "StopTurn":
    case "Cancel":
      return {}
  }
}

const make = Effect.fnUntraced(function* () {
  const audit = yield* Audit
  const events = yield* EventStore
  const sessions = yield* SessionStore
  const signals = yield* Signals

  const place = Effect.fnUntraced(function* ({ request_id, session_id }: Request, row: SessionRow, order: Order) {
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
    const wish = yield* wishOf(state, order, next)
    return yield* queued(row, yield* signals.send(session_id, request_id, wish), order)
  })

  /** The end of a signal in a log from a revision on. */
  const ending = (session_id: SessionId, signal_id: SignalId, from: number, follow: boolean) =>
    events.events(session_id, { from, follow }).pipe(
      Stream.filter(isPrintedEvent),
      Stream.filter(({ event }) => signalOf(event) === signal_id),
      Stream.runHead,
      Effect.map(Option.map(({ event }) => endedIn(event)))
    )

  /** Reads the head before the row, so that the event is either acknowledged by now or comes after that head. */
  const outcome = Effect.fnUntraced(function* ({ request_id, session_id, wait_ms }: Request, signal_id: SignalId) {
    const { rev: head } = yield* events.head(session_id)
    const asked = yield* signals.asked(session_id, request_id)
    const acked_rev = asked?.acked_rev ?? null
    return acked_rev === null
      ? Option.getOrNull(
          Option.flatten(yield* Effect.timeoutOption(ending(session_id, signal_id, head + 1, true), wait_ms))
        )
      : Option.getOrNull(yield* ending(session_id, signal_id, acked_rev, false))
  })

  const answer = Effect.fn("Steering.answer")(function* (session_id: SessionId, request_id: string) {
    const asked = yield* signals.asked(session_id, request_id)
    if (asked === undefined) return undefined
    const { acked_rev, signal_id } = asked
    if (acked_rev === null) return { ended: null }
    const ended = Effect.catchTag(
      ending(session_id, signal_id, acked_rev, false),
      "SessionUnknown",
      () => Effect.succeedNone
    )
    return { ended: Option.getOrElse(yield* ended, (): Ended => ({ rev: Rev.make(acked_rev), refused: null })) }
  })

  const order = Effect.fn("Steering.order")(function* <const O extends Order>(request: Request, order: O) {
    const { session_id, who } = request
    const entry = { who, action: ACTIONS[order.type], session_id }
    const detail = auditDetail(order)
    const row = Option.getOrUndefined(yield* sessions.get(session_id))
    const placed = row === undefined ? new SessionUnknown({ session_id }) : place(request, row, order)
    const { signal_id, wish } = yield* Effect.tapError(placed, (error) =>
      error._tag === "DatabaseAway"
        ? Effect.void
        : audit.record({
            ...entry,
            detail: { ...detail, refused: error._tag === "SteeringRefused" ? error.kind : "UNKNOWN_SESSION" }
          })
    )
    const job = "job_name" in wish && wish.job_name !== undefined ? { job_name: wish.job_name } : {}
    const turn = wish.type === "StopTurn" ? wish.turn : {}
    // The agent says later whether a skill begins.
    const ordered = order.type === "StartSkill" ? { outcome: "ordered" } : {}
    yield* audit.record({ ...entry, detail: { ...detail, ...job, ...turn, ...ordered, signal_id } })
    const ended = request.wait_ms === 0 ? null : yield* outcome(request, signal_id)
    // A stored wish of another type is refused as another request's.
    return { signal_id, wish: wish as Ordered<O["type"]>["wish"], ended }
  })
  return Steering.of({ answer, order })
})
