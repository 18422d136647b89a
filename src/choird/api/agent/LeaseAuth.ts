/**
 * Authorization of an agent's request, before any of its body is decoded: the token, the listener and the session named in the request
 * must all agree on one session.
 */
import { Effect, Layer, Option, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { type Caller, Lease, LeaseAuth } from "#schema/AgentApi.ts"
import type { SessionId } from "#schema/Ids.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { Audit, CurrentAuditedRequest } from "#src/choird/logs/Audit.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { jobOfToken } from "#src/shared/wire/jobToken.ts"
import { unauthorized } from "#src/choird/api/refusals.ts"
import { CurrentOpenSession } from "#src/choird/listeners/OpenSession.ts"

interface Claim {
  readonly endpoint: string
  /** The x-choir-session-id header; the push stream names its session in the query instead. */
  readonly named: string | undefined
  readonly socket: SessionId | undefined
}

/** The reason to refuse a caller, for the audit alone; `undefined` if it may proceed. */
const refusal = (caller: Caller | undefined, { endpoint, named, socket }: Claim): string | undefined => {
  if (caller === undefined) return "unknown token"
  if (caller.session_id !== socket) return "token of another session"
  if (named !== caller.session_id && !(endpoint === "events" && named === undefined)) return "another session is named"
  if (caller.standing === "bootstrap" && endpoint !== "INIT_HELLO") return "bootstrap token beyond INIT_HELLO"
  return caller.standing === "superseded" && endpoint !== "HEARTBEAT" ? "token of an older epoch" : undefined
}

/** Tokens compares the bearer token in constant time; the refusal reveals nothing, the audit row names the failed check. */
export const layerLeaseAuth = Layer.effect(
  LeaseAuth,
  Effect.gen(function* () {
    const tokens = yield* Tokens
    const audit = yield* Audit
    const events = yield* EventStore

    /** The job of a token, which is valid while the job runs by the acknowledged events (R21). */
    const runningJob = Effect.fnUntraced(function* (caller: Caller, lease: Redacted.Redacted, token: string) {
      const job_id = jobOfToken(Redacted.value(lease), token)
      if (job_id === undefined) return undefined
      const state = yield* Effect.option(databaseDefect(events.state(caller.session_id)))
      const runs = Option.exists(state, ({ cores }) => [...cores.values()].some((core) => core.job_id === job_id))
      return runs ? job_id : undefined
    })

    return LeaseAuth.of({
      lease: Effect.fnUntraced(function* (httpEffect, { credential, endpoint }) {
        const request = yield* HttpServerRequest.HttpServerRequest
        const session = yield* CurrentOpenSession
        const caller = Option.getOrUndefined(yield* tokens.identify(credential))
        const claim = {
          endpoint: endpoint.identifier,
          named: request.headers["x-choir-session-id"],
          socket: session?.session_id
        }
        // Only TCP has an address.
        const from = Option.match(request.remoteAddress, { onNone: () => ({}), onSome: (address) => ({ address }) })
        const token = request.headers["x-choir-job"]
        const early = refusal(caller, claim)
        const job_id =
          caller === undefined || early !== undefined || token === undefined
            ? undefined
            : yield* runningJob(caller, credential, token)
        const reason =
          early ?? (token === undefined || job_id !== undefined ? undefined : "token of a job that does not run")
        if (caller === undefined || reason !== undefined) {
          yield* audit.record({
            who: `agent:${caller?.agent_id ?? "unknown"}`,
            action: `rpc.${endpoint.identifier}`,
            ...(session === undefined ? {} : { session_id: session.session_id }),
            ...(caller === undefined ? {} : { agent_id: caller.agent_id }),
            detail: { refused: "AUTH", reason: reason ?? null, ...from }
          })
          return yield* unauthorized()
        }
        const asked = yield* CurrentAuditedRequest
        if (asked !== undefined) Object.assign(asked, { agent_id: caller.agent_id, session_id: caller.session_id })
        if (endpoint.identifier !== "INIT_HELLO" && caller.standing === "current")
          yield* databaseDefect(tokens.settle(caller))
        return yield* Effect.provideService(httpEffect, Lease, job_id === undefined ? caller : { ...caller, job_id })
      })
    })
  })
)
