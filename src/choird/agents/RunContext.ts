/** The context of a run, from its request to its end. */
import { Context, type Deferred, Effect } from "effect"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { type SessionRow, SessionStore } from "#src/choird/sessions/SessionStore.ts"
import type { AgentPrograms } from "#src/choird/runtime/AgentCommand.ts"
import { type AgentView, AgentViews } from "./AgentViews.ts"
import type { Prepared, StartRequest } from "./prepareStart.ts"
import type { AgentRefused } from "./AgentRefused.ts"
import { AgentSockets } from "#src/choird/listeners/AgentSockets.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { Images } from "#src/choird/images/Images.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { AgentNumbers } from "#src/choird/sessions/AgentNumbers.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { CrashTimes } from "./CrashTimes.ts"
import { InstalledPrograms } from "./InstalledPrograms.ts"
import { Leases } from "./Leases.ts"
import { LiveEpochs } from "./LiveEpochs.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"

const RUN_SERVICES = [
  AgentNumbers,
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
  readonly started: Deferred.Deferred<AgentView, AgentRefused>
}

export interface RunContext extends RunRequest, RunHandle {
  readonly prepared: Prepared
  readonly programs: AgentPrograms
  /** A remark for the operator on a run that continues. */
  readonly remark: string | null
}
