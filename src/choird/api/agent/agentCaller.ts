/** The caller of a verb: the services that verbs use, the caller's run, and audited refusals. */
import { Effect } from "effect"
import type { Caller } from "#schema/AgentApi.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import type { Config } from "#schema/Config.ts"
import { agentConfig } from "#src/choird/config/agentShare.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { HostTools } from "#src/choird/hosttools/HostTools.ts"
import { Audit, type AuditEntry } from "#src/choird/logs/Audit.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { Runs } from "#src/choird/sessions/Runs.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { WorkspaceLabels, workspacePath } from "#src/choird/sessions/WorkspaceLabels.ts"
import { Contexts } from "#src/choird/queues/Contexts.ts"
import { Drafts } from "#src/choird/queues/Drafts.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { conflict, unauthorized } from "#src/choird/api/refusals.ts"
import { isKnownEvent, type SentEvent } from "#schema/Event.ts"

/** Characters of an agent's own words that an audit row or a reason repeats. */
const AGENT_WORDS_CHARS_MAX = 200

export const services = Effect.gen(function* () {
  return {
    approvals: yield* Approvals,
    audit: yield* Audit,
    config: yield* ConfigStore,
    contexts: yield* Contexts,
    drafts: yield* Drafts,
    events: yield* EventStore,
    hostTools: yield* HostTools,
    labels: yield* WorkspaceLabels,
    lifecycle: yield* Lifecycle,
    runs: yield* Runs,
    sessions: yield* SessionStore,
    signals: yield* Signals,
    tokens: yield* Tokens
  }
})
export type Services = Effect.Success<typeof services>

/** An agent's own words, safe to store and print. */
export const words = (text: string) => text.slice(0, AGENT_WORDS_CHARS_MAX).toWellFormed().replaceAll(/\p{C}/gu, "?")

/** An agent's share of a configuration, with how its jobs ended of late, and what is known of the files of its workspace. */
export const shareOf = Effect.fnUntraced(function* (
  { labels, runs }: Services,
  { agent_id }: Caller,
  config: Config,
  bindings: Parameters<typeof agentConfig>[1]
) {
  const profiles = yield* databaseDefect(runs.history(agent_id))
  const path = workspacePath(config, bindings.workspace)
  const workspace_label = path === undefined ? {} : yield* databaseDefect(labels.of(path))
  return {
    ...agentConfig(config, bindings, agent_id),
    ...(Object.keys(profiles).length === 0 ? {} : { profiles }),
    ...(Object.keys(workspace_label).length === 0 ? {} : { workspace_label })
  }
})

/** A refusal that R77 requires on record. */
export const audited = ({ audit }: Services, caller: Caller, verb: string, detail: AuditEntry["detail"]) =>
  audit.record({
    who: `agent:${caller.agent_id}`,
    action: `rpc.${verb}`,
    session_id: caller.session_id,
    agent_id: caller.agent_id,
    detail
  })

export const denied = (services: Services, caller: Caller, verb: string, reason: string) =>
  Effect.andThen(audited(services, caller, verb, { refused: "AUTH", reason }), Effect.fail(unauthorized()))

/** The run that the caller belongs to; a caller of an earlier run gets 401. */
export const runOf = Effect.fnUntraced(function* (services: Services, caller: Caller, verb: string) {
  const view = yield* Effect.catch(services.lifecycle.view(caller.agent_id), (error) =>
    denied(services, caller, verb, error.kind)
  )
  if (view.session_id !== caller.session_id || view.epoch !== caller.epoch)
    return yield* denied(services, caller, verb, "the agent runs another session or epoch")
  if (view.bindings === null) return yield* conflict("NOT_READY", "the agent has no resources bound")
  return { view, bindings: view.bindings }
})

/** Rows that one heartbeat writes; equal refusals are counted in one row anyway. */
const DENIED_ROWS_MAX = 16

/**
 * A row of the audit for each skill, begun by a model, a person or its time, and each call of a skill that the agent refused because it can
 * do more than it declares or than it is granted. `patches` are the events of a heartbeat, of which those up to `ack_rev` are stored.
 */
export const auditDenied = (
  services: Services,
  caller: Caller,
  patches: ReadonlyArray<SentEvent>,
  ack_rev: number
): Effect.Effect<void> => {
  const refused = patches.flatMap((event) => {
    if (!isKnownEvent(event) || event.rev > ack_rev) return []
    const isRefusal = event.event_type === "ToolResultCommitted" || event.event_type === "InjectedInstruction"
    return isRefusal ? (event.payload.denied ?? []) : []
  })
  return Effect.forEach(
    refused.slice(0, DENIED_ROWS_MAX),
    ({ capabilities, skill }) =>
      audited(services, caller, "HEARTBEAT", { refused: "CAPABILITY", skill: words(skill), capabilities }),
    { discard: true }
  )
}
