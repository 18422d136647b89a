/** What a run has at hand, from its request to its end. */
import { Clock, type Deferred, Effect } from "effect"
import type { Inbox } from "#src/choird/queues/Inbox.ts"
import type { Outbox } from "#src/choird/queues/Outbox.ts"
import type { AgentId } from "#schema/Ids.ts"
import type { Audit } from "#src/choird/logs/Audit.ts"
import type { SessionRow } from "#src/choird/sessions/SessionStore.ts"
import type { AgentPrograms, ProgramMissing } from "#src/choird/runtime/AgentPrograms.ts"
import type { EpochServices } from "./Epoch.ts"
import type { AgentView } from "./Lifecycle.ts"
import { patiently } from "./patience.ts"
import type { Prepared, PrepareServices, StartRequest } from "./prepare.ts"
import type { Refusal } from "./startImage.ts"

export interface RunServices extends EpochServices, PrepareServices {
  readonly audit: Audit["Service"]
  /** When each agent crashed since its start, by the monotonic clock, as far as the breaker looks back. */
  readonly crashes: Map<AgentId, ReadonlyArray<number>>
  readonly inbox: Inbox["Service"]
  readonly outbox: Outbox["Service"]
  readonly programs: Effect.Effect<AgentPrograms, ProgramMissing>
}

export interface RunRequest extends StartRequest {
  /** Nobody waits for the outcome, so the DM is told when it is bad. */
  readonly unattended: boolean
  /** The session that an earlier choird left active; its container may still run. */
  readonly adopted?: SessionRow
}

/** How the rest of choird speaks with a run. */
export interface RunHandle {
  /** Completed by whoever wants the run to end. */
  readonly stop: Deferred.Deferred<void>
  /** Completed before `stop` by whoever starts the agent again at once: its session stays active, so that a next choird does it. */
  readonly again: Deferred.Deferred<void>
  /** The view once the agent runs, or why it does not. */
  readonly started: Deferred.Deferred<AgentView, Refusal>
}

export interface RunContext extends RunRequest, RunHandle {
  readonly services: RunServices
  readonly prepared: Prepared
  readonly programs: AgentPrograms
  /** What an operator is to know of a run that goes on. */
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
    yield* patiently(services.outbox.tell({ ...message, kind: "notice" }))
  })
