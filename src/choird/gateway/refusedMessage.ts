import { Effect } from "effect"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import { Audit } from "#src/choird/logs/Audit.ts"

/** Audits a message that no agent gets, without its text (R77). */
export const makeRefused = Effect.map(
  Audit,
  (audit) => (gateway: ResourceName, kind: string, agent_id: AgentId | undefined, who: Record<string, string>) =>
    audit.record({
      who: `gateway:${gateway}`,
      action: "gateway.message",
      ...(agent_id === undefined ? {} : { agent_id }),
      detail: { refused: kind, ...who }
    })
)
