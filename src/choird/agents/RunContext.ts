/** The context of a run, from its request to its end, and what a run tells the person at its DM. */
import { Clock, Context, type Deferred, Effect } from "effect"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { type SessionRow, SessionStore } from "#src/choird/sessions/SessionStore.ts"
import type { AgentPrograms, ProgramMissing } from "#src/choird/runtime/AgentCommand.ts"
import { type AgentView, AgentViews } from "./AgentViews.ts"
import { retryDatabase } from "#src/choird/database/DatabaseAway.ts"
import type { Prepared, StartRequest } from "./prepare.ts"
import type { Refusal } from "./startImage.ts"
import { AgentSockets } from "#src/choird/listeners/AgentSockets.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { Images } from "#src/choird/images/Images.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { CrashTimes } from "./Breaker.ts"
import { Leases } from "./Leases.ts"
import { LiveEpochs } from "./Liveness.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** The programs of this installation that every container gets. */
export class InstalledPrograms extends Context.Service<
  InstalledPrograms,
  { readonly find: Effect.Effect<AgentPrograms, ProgramMissing> }
>()("choir/choird/InstalledPrograms") {}

const RUN_SERVICES = [
  AgentSockets,
  AgentViews,
  Audit,
  ConfigStore,
  ContainerRuntime,
  CrashTimes,
  Images,
  Inbox,
  InstalledPrograms,
  Leases,
  LiveEpochs,
  LogFiles,
  Outbox,
  SessionStore,
  Signals,
  Tokens
] as const

/**
 * The services of every run, collected once, when the lifecycle is built. They are picked by name: a run logs by the loggers of the request
 * that starts it, not by those of choird's start.
 */
export const runServices = Effect.map(
  Effect.context<Context.Service.Identifier<(typeof RUN_SERVICES)[number]>>(),
  Context.pick(...RUN_SERVICES)
)

export interface RunRequest extends StartRequest {
  /** True if nobody waits for the outcome, so that a failure is reported to the DM. */
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
  readonly prepared: Prepared
  readonly programs: AgentPrograms
  /** A remark for the operator on a run that continues. */
  readonly remark: string | null
}

/** Tells the person at the agent's DM, in words for somebody who has no shell. */
export const tell = Effect.fnUntraced(function* (
  { agent_id, bindings }: Pick<RunContext, "agent_id" | "bindings">,
  text: string
) {
  const outbox = yield* Outbox
  const { config } = yield* (yield* ConfigStore).current
  const gateway = config.dms[bindings.dm]?.gateway
  if (gateway === undefined) return
  const source_id = `crashed:${agent_id}:${yield* Clock.currentTimeMillis}`
  const message = { source_id, gateway, dm: bindings.dm, agent_id, text, in_reply_to: null }
  yield* retryDatabase(outbox.tell({ ...message, kind: "notice" }))
})

/** The shortest outage to report; a restart of the server is shorter. */
const TOLD_MS = 60_000
const MINUTE_MS = 60_000

/** Reads the facts for the next step of a run, however long the database is away. After a long outage the person at the DM gets a message. */
export const afterOutage = Effect.fnUntraced(function* <A, R>(
  context: Pick<RunContext, "agent_id" | "bindings">,
  read: Effect.Effect<A, never, R>
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
