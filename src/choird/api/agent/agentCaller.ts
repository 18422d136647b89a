/** The caller of a verb: its run, its share of the configuration, and audited refusals. */
import { Effect } from "effect"
import type { Caller } from "#schema/AgentApi.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import type { Config } from "#schema/Config.ts"
import { agentConfig } from "#src/choird/config/agentShare.ts"
import { withOfflineAddress } from "#src/choird/config/offlineAddress.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { Audit, type AuditEntry } from "#src/choird/logs/Audit.ts"
import { Runs } from "#src/choird/sessions/Runs.ts"
import { WorkspaceLabels, workspacePath } from "#src/choird/sessions/WorkspaceLabels.ts"
import { conflict, unauthorized } from "#src/choird/api/refusals.ts"
import { isKnownEvent, type SentEvent } from "#schema/Event.ts"

/** Characters of an agent's own words that an audit row or a reason repeats. */
const AGENT_WORDS_CHARS_MAX = 200

/** An agent's own words, safe to store and print. */
export const words = (text: string) => text.slice(0, AGENT_WORDS_CHARS_MAX).toWellFormed().replaceAll(/\p{C}/gu, "?")

/** An agent's share of a configuration, with how its jobs ended of late, and what is known of the files of its workspace. */
export const shareOf = Effect.fnUntraced(function* (
  { agent_id, session_id }: Pick<Caller, "agent_id"> & Partial<Pick<Caller, "session_id">>,
  config: Config,
  bindings: Parameters<typeof agentConfig>[1]
) {
  const labels = yield* WorkspaceLabels
  const runs = yield* Runs
  const profiles = yield* databaseDefect(runs.history(agent_id))
  const path = workspacePath(config, bindings.workspace)
  const workspace_label = path === undefined ? {} : yield* databaseDefect(labels.of(path, session_id))
  return {
    ...(yield* withOfflineAddress(agentConfig(config, bindings, agent_id))),
    ...(Object.keys(profiles).length === 0 ? {} : { profiles }),
    ...(Object.keys(workspace_label).length === 0 ? {} : { workspace_label })
  }
})

/** A refusal that R77 requires on record. */
export const audited = ({ agent_id, session_id }: Caller, verb: string, detail: AuditEntry["detail"]) =>
  Effect.flatMap(Audit, (audit) =>
    audit.record({ who: `agent:${agent_id}`, action: `rpc.${verb}`, session_id, agent_id, detail })
  )

export const denied = (caller: Caller, verb: string, reason: string) =>
  Effect.andThen(audited(caller, verb, { refused: "AUTH", reason }), Effect.fail(unauthorized()))

/** The run that the caller belongs to; a caller of an earlier run gets 401. */
export const runOf = Effect.fnUntraced(function* (caller: Caller, verb: string) {
  const lifecycle = yield* Lifecycle
  const view = yield* Effect.catch(lifecycle.view(caller.agent_id), ({ kind }) => denied(caller, verb, kind))
  if (view.session_id !== caller.session_id || view.epoch !== caller.epoch)
    return yield* denied(caller, verb, "the agent runs another session or epoch")
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
  caller: Caller,
  patches: ReadonlyArray<SentEvent>,
  ack_rev: number
): Effect.Effect<void, never, Audit> => {
  const refused = patches.flatMap((event) => {
    if (!isKnownEvent(event) || event.rev > ack_rev) return []
    const isRefusal = event.event_type === "ToolResultCommitted" || event.event_type === "InjectedInstruction"
    return isRefusal ? (event.payload.denied ?? []) : []
  })
  return Effect.forEach(
    refused.slice(0, DENIED_ROWS_MAX),
    ({ capabilities, skill }) =>
      audited(caller, "HEARTBEAT", { refused: "CAPABILITY", skill: words(skill), capabilities }),
    { discard: true }
  )
}
