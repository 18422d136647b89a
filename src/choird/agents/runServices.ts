/** Takes what every run is given, once, when the lifecycle is built. */
import { Effect } from "effect"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import { AgentSockets } from "#src/choird/listeners/AgentSockets.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { makeAgentViews } from "./AgentViews.ts"
import type { Hearing } from "./hearing.ts"
import { Images } from "#src/choird/images/Images.ts"
import { Leases } from "./Leases.ts"
import type { RunServices } from "./RunContext.ts"

export const runServices = Effect.fnUntraced(function* (programs: RunServices["programs"]) {
  return {
    audit: yield* Audit,
    config: yield* ConfigStore,
    crashes: new Map<AgentId, ReadonlyArray<number>>(),
    hearings: new Map<SessionId, Hearing>(),
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
