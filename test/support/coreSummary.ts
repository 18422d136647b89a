/** A running job as choird lists it. */
import { JobName } from "#schema/Ids.ts"
import type { CoreSummary } from "#schema/SessionsApi.ts"

export const coreSummary: CoreSummary = {
  job_name: JobName.make("research"),
  state: "REASONING",
  step: 2,
  started_at: "1970-01-01T00:00:00.000Z",
  tool_calls: 3,
  files_read: 1,
  files_changed: 0,
  commands: 0,
  tokens: 1200,
  ran_ms: 90_000,
  cost_usd: 0.02,
  last_tool: "choir.fs.read",
  task: "Read it all"
}
