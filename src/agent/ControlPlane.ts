/** What this agent asks of choird: the verbs of the agent API with the envelope filled in, and the push stream. */
import { Context, Effect, Layer, Redacted, Ref, Schedule, Schema, Semaphore, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { randomUUID } from "node:crypto"
import {
  AgentApi,
  type Heartbeat,
  type HeartbeatReply,
  type InitHello,
  type InitHelloReply,
  type ReportStatus
} from "#schema/AgentApi.ts"
import { type ApiError, ApiErrors, Unauthorized } from "#schema/ApiError.ts"
import type { AskedApproval } from "#schema/Approval.ts"
import type { AgentConfig } from "#schema/Config.ts"
import type { ToolStatus } from "#schema/Event.ts"
import type { CallId, SecretName, SessionId } from "#schema/Ids.ts"
import type { ProposalKind } from "#schema/ProposedChange.ts"
import type { Signal } from "#schema/Signal.ts"
import type { Summary } from "#schema/Summary.ts"
import type { ToolName } from "#schema/Tool.ts"
import { jobToken } from "#src/shared/jobToken.ts"
import {
  AGENT_CALLS_MAX,
  HOST_CALLS_MAX,
  PROPOSAL_ASK_MS_MAX,
  RPC_ATTEMPTS_MAX,
  RPC_RETRY_AFTER_MS_MAX,
  RPC_RETRY_MS,
  RPC_TIMEOUT_MS,
  SLOW_HOST_CALLS_MAX
} from "#src/shared/limits.ts"

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

/** A signal with the id to resume after. */
export interface Pushed {
  readonly id: string | undefined
  readonly signal: Signal
}

/** A core job and when its time is up, in milliseconds since 1970. */
export interface RunningJob {
  readonly job_id: CallId
  readonly expires_ms: number
}

/** A tool that choird is to run. `timeout_ms` covers everything: the wait for a connection, repeats, and the tool itself. */
export interface HostCall {
  readonly tool_name: ToolName
  readonly call_id: CallId
  readonly input: Schema.Json
  readonly timeout_ms: number
}

/** What a person is to decide on; `payload` is what `request_type` demands. */
export interface ApprovalWish {
  readonly request_type: "confirm_tool" | ProposalKind
  readonly call_id: CallId
  readonly payload: Schema.Json
}

/** How a host tool ended. */
export interface HostReply {
  readonly status: ToolStatus
  readonly output: Schema.Json
}

type Asked<A> = Effect.Effect<A, Unreachable | Denied>

/** Speaks to choird. It holds the token: the bootstrap one until INIT_HELLO answers, then the lease's, in memory only (D12). */
export class ControlPlane extends Context.Service<
  ControlPlane,
  {
    hello(request: InitHello): Asked<InitHelloReply>
    /** The values of bound secrets; one unbound name refuses them all. */
    secrets(resources: ReadonlyArray<SecretName>): Asked<ReadonlyMap<SecretName, Redacted.Redacted>>
    heartbeat(request: Heartbeat): Asked<HeartbeatReply>
    /** Tells how a lane does; for a core with the proof that its job runs, which expires with the job (D35). */
    report(status: ReportStatus, job?: RunningJob): Asked<void>
    /**
     * Runs a host tool; for a core with the proof that its job runs. It is asked again with the same request id while choird is away,
     * so that it runs once (R28). At most SLOW_HOST_CALLS_MAX of those with more than RPC_TIMEOUT_MS are with choird at once, the
     * others wait in order: quick calls, heartbeats and the push stream always find a connection (R62).
     */
    execute(call: HostCall, job?: RunningJob): Asked<HostReply>
    /** How a person decided, asking for it at the first time. Once, without patience: who waits asks again anyway. */
    approval(wish: ApprovalWish): Asked<AskedApproval>
    /** Says goodbye; Denied NOT_FLUSHED when choird lacks events. */
    terminate(request: {
      readonly reason: string
      readonly final_rev: number
      readonly final_hash: string
      /** What choird keeps of the session (spec 11.8). */
      readonly summary?: Summary
    }): Asked<void>
    /** The newest configuration, if it is newer. */
    config(current: number): Asked<{ readonly config_version: number; readonly config?: AgentConfig }>
    /** Signals from the push stream, which is opened again after the last id whenever it breaks. Fails only when denied. */
    readonly signals: Stream.Stream<Pushed, Denied>
  }
>()("choir/agent/ControlPlane") {
  static readonly layer = (session_id: SessionId, bootstrap: Redacted.Redacted) =>
    Layer.effect(ControlPlane, make(session_id, bootstrap))
}

const isRefusal = (error: unknown): error is ApiError | Unauthorized =>
  [Unauthorized, ...ApiErrors].some((refusal) => error instanceof refusal)

/** What choird could not do right now may be asked again; what it refused may not. */
const RETRYABLE = new Set(["INTERNAL", "RATE_LIMITED"])

const failure = (verb: string, error: unknown): Unreachable | Denied => {
  if (!isRefusal(error))
    return new Unreachable({ verb, reason: error instanceof Error ? error.message : String(error) })
  const { message: reason, retry_after_ms, type } = error.error
  if (!RETRYABLE.has(type)) return new Denied({ verb, type, reason })
  return new Unreachable({ verb, reason, ...(retry_after_ms === undefined ? {} : { retry_after_ms }) })
}

const asked =
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

/** Repeats a request with its id while choird is away or wants to be left alone; a lost reply is answered again (R28). */
const patiently = <A>(call: Asked<A>): Asked<A> =>
  Effect.retry(call, { while: (error) => error._tag === "Unreachable", schedule: pauses, times: RPC_ATTEMPTS_MAX })

/**
 * Keeps connections free for heartbeats and the push stream, and one for quick calls: a permit of `all` is a connection, and a slow
 * call needs one of `slow` too.
 */
const makeConnections = Effect.gen(function* () {
  const all = yield* Semaphore.make(AGENT_CALLS_MAX)
  const slow = yield* Semaphore.make(SLOW_HOST_CALLS_MAX)
  let waiting = 0
  return {
    one: all.withPermit,
    /** Refuses more than HOST_CALLS_MAX at once. */
    host: <A>(timeout_ms: number, call: Asked<A>): Asked<A> => {
      const verb = "EXECUTE_HOST_TOOL"
      const connected = timeout_ms > RPC_TIMEOUT_MS ? slow.withPermit(all.withPermit(call)) : all.withPermit(call)
      const timely = Effect.timeoutOrElse(connected, {
        duration: timeout_ms,
        orElse: () => Effect.fail(new Unreachable({ verb, reason: `there was no answer within ${timeout_ms} ms` }))
      })
      return Effect.suspend(() => {
        if (waiting >= HOST_CALLS_MAX)
          return Effect.fail(new Unreachable({ verb, reason: `${waiting} host tools are waited for already` }))
        waiting += 1
        return Effect.ensuring(
          timely,
          Effect.sync(() => void (waiting -= 1))
        )
      })
    }
  }
})

const make = Effect.fnUntraced(function* (session_id: SessionId, bootstrap: Redacted.Redacted) {
  const connections = yield* makeConnections
  const token = yield* Ref.make(bootstrap)
  const http = HttpClient.mapRequestEffect(yield* HttpClient.HttpClient, (request) =>
    Effect.map(Ref.get(token), (current) => HttpClientRequest.bearerToken(request, current))
  )
  const { rpc } = yield* HttpApiClient.makeWith(AgentApi, { httpClient: http, baseUrl: "http://choird" })
  const envelope = (request_id = randomUUID() as string) => ({
    headers: { "x-choir-request-id": request_id, "x-choir-session-id": session_id }
  })
  /** The envelope of a core's call with the proof that its job runs (D35). */
  const proven = (job: RunningJob | undefined) =>
    Effect.map(Ref.get(token), (lease) => {
      const { headers } = envelope()
      if (job === undefined) return headers
      return { ...headers, "x-choir-job": jobToken(Redacted.value(lease), job.job_id, job.expires_ms) }
    })

  const last = yield* Ref.make<string | undefined>(undefined)
  const connect = Effect.fnUntraced(function* () {
    const after = yield* Ref.get(last)
    const headers = after === undefined ? {} : { "last-event-id": after }
    return yield* rpc.events({ headers, query: { session_id } })
  })
  const connection = Stream.unwrap(Effect.timeout(connect(), RPC_TIMEOUT_MS)).pipe(
    Stream.map(({ data, id }): Pushed => ({ id, signal: data })),
    Stream.tap(({ id }) => (id === undefined ? Effect.void : Ref.set(last, id))),
    Stream.mapError((error) => failure("events", error)),
    // The usual pause follows.
    Stream.catchTag("Unreachable", ({ wait_ms }) =>
      Stream.fromEffectDrain(Effect.sleep(Math.max(0, wait_ms - RPC_RETRY_MS)))
    )
  )
  // A stream that ends or breaks is opened again: choird sends anew what no event acknowledged.
  const signals = Stream.repeat(connection, Schedule.spaced(RPC_RETRY_MS))

  return ControlPlane.of({
    hello: Effect.fn("ControlPlane.hello")(function* (payload) {
      const request = { ...envelope(), payload }
      const reply = yield* patiently(asked("INIT_HELLO")(rpc.INIT_HELLO(request)))
      yield* Ref.set(token, Redacted.make(reply.lease_token))
      return reply
    }),
    secrets: Effect.fn("ControlPlane.secrets")(function* (resources) {
      const request = { ...envelope(), payload: { resources } }
      const { secrets } = yield* patiently(asked("GET_SECRETS")(rpc.GET_SECRETS(request)))
      return new Map(Object.entries(secrets).map(([name, value]) => [name as SecretName, Redacted.make(value)]))
    }),
    heartbeat: (payload) => asked("HEARTBEAT")(rpc.HEARTBEAT({ ...envelope(), payload })),
    report: Effect.fn("ControlPlane.report")(function* (payload, job) {
      const headers = yield* proven(job)
      yield* asked("REPORT_STATUS")(connections.one(rpc.REPORT_STATUS({ headers, payload })))
    }),
    execute: Effect.fn("ControlPlane.execute")(function* ({ timeout_ms, ...payload }, job) {
      const headers = yield* proven(job)
      const call = Effect.mapError(rpc.EXECUTE_HOST_TOOL({ headers, payload }), (error) =>
        failure("EXECUTE_HOST_TOOL", error)
      )
      const { output, status } = yield* connections.host(timeout_ms, patiently(call))
      return { output, status }
    }),
    approval: Effect.fn("ControlPlane.approval")(function* (payload) {
      const request = { ...envelope(), payload }
      // choird looks into the agent's repository before it takes a proposal.
      const timeout_ms = payload.request_type === "confirm_tool" ? RPC_TIMEOUT_MS : PROPOSAL_ASK_MS_MAX
      return yield* asked("REQUEST_APPROVAL", timeout_ms)(connections.one(rpc.REQUEST_APPROVAL(request)))
    }),
    terminate: Effect.fn("ControlPlane.terminate")(function* (payload) {
      const request = { ...envelope(), payload }
      yield* patiently(asked("TERMINATE_SELF")(rpc.TERMINATE_SELF(request)))
    }),
    config: (current_config_version) =>
      patiently(
        asked("FETCH_DYNAMIC_CONFIG")(rpc.FETCH_DYNAMIC_CONFIG({ ...envelope(), payload: { current_config_version } }))
      ),
    signals
  })
})
