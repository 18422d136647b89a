/** The meaning of choird's answer to a verb: a success, a final refusal, or a reason to ask again. */
import { Effect, Schedule, Schema } from "effect"
import { type ApiError, ApiErrors, Unauthorized } from "#schema/ApiError.ts"

/** One RPC of an agent, answer included. A chunk of 1 MiB over a local socket takes milliseconds. */
export const RPC_TIMEOUT_MS = 15_000
/** The pause before an RPC that got no answer is asked again. */
export const RPC_RETRY_MS = 200
/** Repeats of a one-time RPC; with its pauses about a minute, in which choird can restart. */
const RPC_ATTEMPTS_MAX = 300
/** The longest Retry-After of choird that an agent obeys. */
export const RPC_RETRY_AFTER_MS_MAX = 60_000

/** choird gave no usable answer in time; asking again later is safe, since every verb is idempotent by request id. */
export class Unreachable extends Schema.TaggedError<Unreachable>()("Unreachable", {
  verb: Schema.String,
  reason: Schema.String,
  /** How long choird wants to be left alone (429). */
  retry_after_ms: Schema.optionalKey(Schema.Natural)
}) {
  /** When it may be asked again, in ms: after the usual pause, or later when choird says so (R47). */
  get wait_ms() {
    return Math.min(Math.max(RPC_RETRY_MS, this.retry_after_ms ?? 0), RPC_RETRY_AFTER_MS_MAX)
  }
  override get message() {
    return `choird did not answer ${this.verb}: ${this.reason}`
  }
}

/** choird understood and said no; the same request gets the same answer. */
export class Denied extends Schema.TaggedError<Denied>()("Denied", {
  verb: Schema.String,
  type: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `choird refused ${this.verb}: ${this.type}: ${this.reason}`
  }
}

export type Asked<A> = Effect.Effect<A, Unreachable | Denied>

const isRefusal = (error: unknown): error is ApiError | Unauthorized =>
  [Unauthorized, ...ApiErrors].some((refusal) => error instanceof refusal)

/** The errors after which a verb may be asked again: choird could not answer right now. A refusal is final. */
const RETRYABLE = new Set(["INTERNAL", "RATE_LIMITED"])

export const failure = (verb: string, error: unknown): Unreachable | Denied => {
  if (!isRefusal(error))
    return new Unreachable({ verb, reason: error instanceof Error ? error.message : String(error) })
  const { message: reason, retry_after_ms, type } = error.error
  if (!RETRYABLE.has(type)) return new Denied({ verb, type, reason })
  return new Unreachable({ verb, reason, ...(retry_after_ms === undefined ? {} : { retry_after_ms }) })
}

/** Asks once, with a time limit. */
export const asked =
  (verb: string, timeout_ms = RPC_TIMEOUT_MS) =>
  <A, E>(call: Effect.Effect<A, E>): Asked<A> =>
    call.pipe(
      Effect.timeout(timeout_ms),
      Effect.mapError((error) => failure(verb, error))
    )

/** The pauses between two attempts. */
const pauses = Schedule.spaced(0).pipe(
  Schedule.setInputType<Unreachable | Denied>(),
  Schedule.modifyDelay(({ input }) => Effect.succeed(input._tag === "Unreachable" ? input.wait_ms : 0))
)

/** The attempts that fit into the silence after which choird takes an agent for crashed. */
const ATTEMPTS_BEFORE_CRASH = 3
const DOUBLINGS_MAX = 10

/** The time in which choird has to hear of an agent, so that a lost packet can be made up for. */
export const attemptTime = (threshold_ms: number): number => Math.ceil(threshold_ms / ATTEMPTS_BEFORE_CRASH)

/**
 * How long an attempt waits for its answer: short enough that a lost packet is made up for in time, and twice as long after each one that
 * was given up, since a slow choird needs the time to answer at all.
 */
export const answerTime = (threshold_ms: number, given_up: number): number =>
  Math.min(RPC_TIMEOUT_MS, attemptTime(threshold_ms) * 2 ** Math.min(given_up, DOUBLINGS_MAX))

/** Repeats a request with its id while choird is away or wants to be left alone; a lost reply is answered again (R28). */
export const retryVerb = <A>(call: Asked<A>): Asked<A> =>
  Effect.retry(call, { while: (error) => error._tag === "Unreachable", schedule: pauses, times: RPC_ATTEMPTS_MAX })
