import type { AgentId } from "#schema/Ids.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"

/** What choird knows of an agent that runs, in its first epoch, unless told otherwise. */
export const agentView = (agent_id: AgentId, view: Partial<AgentView> = {}): AgentView => ({
  agent_id,
  status: "running",
  session_id: null,
  epoch: 1,
  bindings: null,
  image_version: null,
  manifests: null,
  since_ms: 0,
  config_version: 1,
  started_with: null,
  reason: null,
  ...view
})
