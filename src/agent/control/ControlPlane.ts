/** The agent's requests to choird: the verbs of the agent API with the envelope filled in, and the push stream. */
import { Context, Effect, Layer, Redacted, Ref, Schedule, type Schema, Stream } from "effect"
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
import type { AskedApproval } from "#schema/Approval.ts"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { ToolStatus } from "#schema/Event.ts"
import type { CallId, SecretName, SessionId } from "#schema/Ids.ts"
import type { ProposalKind } from "#schema/ProposedChange.ts"
import type { Signal } from "#schema/Signal.ts"
import type { Summary } from "#schema/Summary.ts"
import type { ToolName } from "#schema/Tool.ts"
import { jobToken } from "#src/shared/wire/jobToken.ts"
import { makeConnections } from "./choirdConnections.ts"
import {
  answerTime,
  type Asked,
  asked,
  type Denied,
  failure,
  retryVerb,
  RPC_RETRY_MS,
  RPC_TIMEOUT_MS
} from "./verbAnswer.ts"

/** One request with a proposal: two repositories are looked at before the answer. */
const PROPOSAL_ASK_MS_MAX = 60_000

/** A signal with the id to resume after. */
export interface Pushed {
  readonly id: string | undefined
  readonly signal: Signal
}

/** A tool that choird is to run. `timeout_ms` covers everything: the wait for a connection, repeats, and the tool itself. */
export interface HostCall {
  readonly tool_name: ToolName
  readonly call_id: CallId
  readonly input: Schema.Json
  readonly timeout_ms: number
}

/** A request for a person's decision; `payload` is what `request_type` demands. */
export interface ApprovalRequest {
  readonly request_type: "confirm_tool" | ProposalKind
  readonly call_id: CallId
  readonly payload: Schema.Json
}

/** How a host tool ended. */
export interface HostReply {
  readonly status: ToolStatus
  readonly output: Schema.Json
}

/** The values of the secrets that were asked for, and the names of those that choird does not give. */
export interface GivenSecrets {
  readonly secrets: ReadonlyMap<SecretName, Redacted.Redacted>
  /** They belong to no bound resource. */
  readonly unbound: ReadonlySet<SecretName>
  /** They are bound and have no value. */
  readonly unset: ReadonlySet<SecretName>
}

/** The silence after which choird takes an agent for crashed, until its configuration says another one. */
const SILENCE_MS = 10_000

/** Speaks to choird. It holds the token: the bootstrap one until INIT_HELLO answers, then the lease's, in memory only (D12). */
export class ControlPlane extends Context.Service<
  ControlPlane,
  {
    hello(request: InitHello): Asked<InitHelloReply>
    secrets(resources: ReadonlyArray<SecretName>): Asked<GivenSecrets>
    /** One heartbeat, given up with its connection after `timeout_ms`, RPC_TIMEOUT_MS by default, so that a lost packet does not hold up the next one. */
    heartbeat(request: Heartbeat, timeout_ms?: number): Asked<HeartbeatReply>
    /**
     * Runs a host tool; for a core with the proof that its job runs. It is asked again with the same request id while choird is away,
     * so that it runs once (R28). At most SLOW_HOST_CALLS_MAX of those with more than RPC_TIMEOUT_MS are with choird at once, the
     * others wait in order: quick calls, heartbeats and the push stream always find a connection (R62).
     */
    execute(call: HostCall, job?: CallId): Asked<HostReply>
    /** A person's decision, requested by the first call. One attempt without patience: a call that waits asks again anyway. */
    approval(request: ApprovalRequest): Asked<AskedApproval>
    /** Says goodbye; Denied NOT_FLUSHED when choird lacks events. */
    terminate(request: {
      readonly reason: string
      readonly final_rev: number
      readonly final_hash: string
      /** The summary that choird keeps of the session. */
      readonly summary?: Summary
    }): Asked<void>
    /** The newest configuration, if it is newer. */
    config(current: number): Asked<{ readonly config_version: number; readonly config?: AgentConfig }>
    /** Passes a draft or a context on to people. One attempt: the next draft says more. */
    report(status: ReportStatus): Asked<void>
    /** Signals from the push stream, which is opened again after the last id whenever it breaks. Fails only when denied. */
    readonly signals: Stream.Stream<Pushed, Denied>
  }
>()("choir/agent/ControlPlane") {
  static readonly layer = (session_id: SessionId, bootstrap: Redacted.Redacted) =>
    Layer.effect(ControlPlane, make(session_id, bootstrap))
}

/** Requests that are repeated until choird answers. */
const makeInsistence = () => {
  let silence_ms = SILENCE_MS
  /** Asks until choird answers. The agent sends no heartbeat while it waits for these, so that each attempt is as short as theirs. */
  const insistently = <A, E>(verb: string, call: Effect.Effect<A, E>): Asked<A> =>
    Effect.suspend(() => {
      let given_up = 0
      // An answer that says to ask again came in time, however often it comes.
      const attempt = Effect.onInterrupt(call, () => Effect.sync(() => void given_up++))
      return retryVerb(Effect.suspend(() => asked(verb, answerTime(silence_ms, given_up))(attempt)))
    })
  return {
    insistently,
    /** After so long without a sign choird counts the agent as dead. */
    heed: (ms: number) => void (silence_ms = ms)
  }
}

type Rpc = Effect.Success<ReturnType<typeof makeRpc>>

const makeRpc = (httpClient: HttpClient.HttpClient) =>
  Effect.map(HttpApiClient.makeWith(AgentApi, { httpClient, baseUrl: "http://choird" }), ({ rpc }) => rpc)

/** Signals from the push stream, as long as somebody reads them. */
const makeSignals = Effect.fnUntraced(function* (session_id: SessionId, events: Rpc["events"]) {
  const last = yield* Ref.make<string | undefined>(undefined)
  const connect = Effect.fnUntraced(function* () {
    const after = yield* Ref.get(last)
    const headers = after === undefined ? {} : { "last-event-id": after }
    return yield* events({ headers, query: { session_id } })
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
  // A stream that ends or breaks is opened again: choird sends again what no event acknowledged.
  return Stream.repeat(connection, Schedule.spaced(RPC_RETRY_MS))
})

const make = Effect.fnUntraced(function* (session_id: SessionId, bootstrap: Redacted.Redacted) {
  const connections = yield* makeConnections
  const token = yield* Ref.make(bootstrap)
  const http = HttpClient.mapRequestEffect(yield* HttpClient.HttpClient, (request) =>
    Effect.map(Ref.get(token), (current) => HttpClientRequest.bearerToken(request, current))
  )
  const rpc = yield* makeRpc(http)
  const envelope = (request_id = randomUUID() as string) => ({
    headers: { "x-choir-request-id": request_id, "x-choir-session-id": session_id }
  })
  /** The envelope of a core's call with the proof that its job runs (D35). */
  const proven = (job: CallId | undefined) =>
    Effect.map(Ref.get(token), (lease) => {
      const { headers } = envelope()
      if (job === undefined) return headers
      return { ...headers, "x-choir-job": jobToken(Redacted.value(lease), job) }
    })

  const { heed, insistently } = makeInsistence()
  const signals = yield* makeSignals(session_id, rpc.events)

  return ControlPlane.of({
    hello: Effect.fn("ControlPlane.hello")(function* (payload) {
      const request = { ...envelope(), payload }
      const reply = yield* insistently("INIT_HELLO", rpc.INIT_HELLO(request))
      heed(reply.config.crash_detection_threshold_ms ?? SILENCE_MS)
      yield* Ref.set(token, Redacted.make(reply.lease_token))
      return reply
    }),
    secrets: Effect.fn("ControlPlane.secrets")(function* (resources) {
      const request = { ...envelope(), payload: { resources } }
      const { secrets, unbound, unset } = yield* insistently("GET_SECRETS", rpc.GET_SECRETS(request))
      return {
        secrets: new Map(Object.entries(secrets).map(([name, value]) => [name as SecretName, Redacted.make(value)])),
        unbound: new Set(unbound),
        unset: new Set(unset)
      }
    }),
    heartbeat: (payload, timeout_ms) => asked("HEARTBEAT", timeout_ms)(rpc.HEARTBEAT({ ...envelope(), payload })),
    execute: Effect.fn("ControlPlane.execute")(function* ({ timeout_ms, ...payload }, job) {
      const headers = yield* proven(job)
      const call = Effect.mapError(rpc.EXECUTE_HOST_TOOL({ headers, payload }), (error) =>
        failure("EXECUTE_HOST_TOOL", error)
      )
      const { output, status } = yield* connections.host(timeout_ms, retryVerb(call))
      return { output, status }
    }),
    approval: Effect.fn("ControlPlane.approval")(function* (payload) {
      const request = { ...envelope(), payload }
      // choird looks into the agent's repository before it takes a proposal.
      const timeout_ms = payload.request_type === "confirm_tool" ? RPC_TIMEOUT_MS : PROPOSAL_ASK_MS_MAX
      return yield* asked("REQUEST_APPROVAL", timeout_ms)(connections.one(rpc.REQUEST_APPROVAL(request)))
    }),
    report: (payload) =>
      Effect.asVoid(asked("REPORT_STATUS")(connections.one(rpc.REPORT_STATUS({ ...envelope(), payload })))),
    terminate: Effect.fn("ControlPlane.terminate")(function* (payload) {
      const request = { ...envelope(), payload }
      yield* insistently("TERMINATE_SELF", rpc.TERMINATE_SELF(request))
    }),
    config: (current_config_version) =>
      insistently(
        "FETCH_DYNAMIC_CONFIG",
        rpc.FETCH_DYNAMIC_CONFIG({ ...envelope(), payload: { current_config_version } })
      ),
    signals
  })
})
