/** A row of the audit as the fake choird answers it. */
import type { AuditRow } from "#schema/SystemApi.ts"
import { AgentId, SessionId } from "#schema/Ids.ts"

export const auditRow: AuditRow = {
  audit_id: "7",
  at: "2026-01-02T03:04:05.678Z",
  since: "2026-01-02T03:03:06.000Z",
  who: "agent:agent-1",
  action: "rpc.GET_SECRETS",
  session_id: SessionId.make("0k8v3w9m2p1n4q7r"),
  agent_id: AgentId.make("agent-1"),
  count: 3,
  detail: { refused: "UNBOUND", names: ["other-key"] }
}
