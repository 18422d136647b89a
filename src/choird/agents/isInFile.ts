/** Whether config.json on disk has an agent that choird does not know yet: its operator wrote it and has not applied it. */
import { Effect } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { loadFiles } from "#src/shared/config/configFiles.ts"

/** False as well for a file that is not valid: then `config validate` says what is wrong with it. */
export const isInFile = (home: string, agent_id: AgentId) =>
  loadFiles(home).pipe(
    Effect.match({
      onSuccess: ({ config }) => Object.hasOwn(config.agents, agent_id),
      onFailure: () => false
    })
  )
