/** The context of a run, from its request to its end, and what a run tells the person at its DM. */
import { Clock, type Deferred, Effect } from "effect"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { type SessionRow, SessionStore } from "#src/choird/sessions/SessionStore.ts"
import type { AgentPrograms, ProgramMissing } from "#src/choird/runtime/AgentCommand.ts"
import type { EpochServices } from "./Epoch.ts"
import type { AgentView } from "./Lifecycle.ts"
import { retryDatabase } from "#src/choird/database/DatabaseAway.ts"
import type { Prepared, PrepareServices, StartRequest } from "./prepare.ts"
import type { Refusal } from "./startImage.ts"
import { AgentSockets } from "#src/choird/listeners/AgentSockets.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { makeAgentViews } from "./AgentViews.ts"
import type { Liveness } from "./Liveness.ts"
import { Images } from "#src/choird/images/Images.ts"
import { Leases } from "./Leases.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** Collects the services of every run, once, when the lifecycle is built. */
export const runServices = Effect.fnUntraced(function* (programs: RunServices["programs"]) {
  return {
    audit: yield* Audit,
    config: yield* ConfigStore,
    crashes: new Map<AgentId, ReadonlyArray<number>>(),
    livenessBySession: new Map<SessionId, Liveness>(),
    images: yield* Images,
    inbox: yield* Inbox,
    leases: yield* Leases,
    logs: yield* LogFiles,
    outbox: yield* Outbox,
    programs,
    runtime: yield* ContainerRuntime,
    sessions: yield* SessionStore,
    signals: yield* Signals,
    sockets: yield* AgentSockets,
    tokens: yield* Tokens,
    views: yield* makeAgentViews
  } satisfies RunServices
})

export interface RunServices extends EpochServices, PrepareServices {
  readonly audit: Audit["Service"]
  /** The crash times of each agent since its start, by the monotonic clock, as far as the breaker looks back. */
  readonly crashes: Map<AgentId, ReadonlyArray<number>>
  readonly inbox: Inbox["Service"]
  readonly outbox: Outbox["Service"]
  readonly programs: Effect.Effect<AgentPrograms, ProgramMissing>
}

export interface RunRequest extends StartRequest {
  /** Nobody waits for the outcome, so a failure is reported to the DM. */
  readonly unattended: boolean
  /** The session that an earlier choird left active; its container may still run. */
  readonly adopted?: SessionRow
}

/** The handle by which the rest of choird controls a run. */
export interface RunHandle {
  /** Completed to end the run. */
  readonly stop: Deferred.Deferred<void>
  /** Completed before `stop` if the agent is started again at once: its session stays active, so that the next choird starts it. */
  readonly again: Deferred.Deferred<void>
  /** The view once the agent runs, or why it does not. */
  readonly started: Deferred.Deferred<AgentView, Refusal>
}

export interface RunContext extends RunRequest, RunHandle {
  readonly services: RunServices
  readonly prepared: Prepared
  readonly programs: AgentPrograms
  /** A remark for the operator on a run that continues. */
  readonly remark: string | null
}

/** Tells the person at the agent's DM, in words for somebody who has no shell. */
export const tell = (
  { agent_id, bindings, services }: Pick<RunContext, "agent_id" | "bindings" | "services">,
  text: string
) =>
  Effect.gen(function* () {
    const { config } = yield* services.config.current
    const gateway = config.dms[bindings.dm]?.gateway
    if (gateway === undefined) return
    const source_id = `crashed:${agent_id}:${yield* Clock.currentTimeMillis}`
    const message = { source_id, gateway, dm: bindings.dm, agent_id, text, in_reply_to: null }
    yield* retryDatabase(services.outbox.tell({ ...message, kind: "notice" }))
  })

/** The shortest outage to report; a restart of the server is shorter. */
const TOLD_MS = 60_000
const MINUTE_MS = 60_000

/** Reads the facts for the next step of a run, however long the database is away. After a long outage the person at the DM gets a message. */
export const afterOutage = Effect.fnUntraced(function* <A>(
  context: Pick<RunContext, "agent_id" | "bindings" | "services">,
  read: Effect.Effect<A>
) {
  const since_ms = yield* monotonicMs
  const answer = yield* read
  const waited_ms = (yield* monotonicMs) - since_ms
  if (waited_ms >= TOLD_MS) {
    const minutes = Math.round(waited_ms / MINUTE_MS)
    yield* tell(context, `My database did not answer for ${minutes} min, so I could not work. It is back.`)
  }
  return answer
})
