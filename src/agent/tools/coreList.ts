/** choir.core.list: the running jobs, as the fold knows them. */
import { Effect, Schema } from "effect"
import type { SessionState } from "#src/shared/session/State.ts"
import type { Tool } from "./Tool.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { CONTROL_TIMEOUT_MS } from "./coreReport.ts"

export const coreList = (state: () => SessionState): Tool => ({
  llm: llmView("choir.core.list", "List the running core jobs with their state and step.", Schema.Struct({})),
  effect: "none",
  lanes: "edge",
  readOnly: true,
  prepare: () =>
    Effect.succeed({
      locks: [],
      timeout_ms: CONTROL_TIMEOUT_MS,
      run: () =>
        Effect.sync(() => {
          const jobs = [...state().cores.values()].map(({ job_name, started_at, state: lane_state, step }) => ({
            job_name,
            state: lane_state,
            step,
            started_at
          }))
          return { status: "success", summary: `${jobs.length} running`, output: { jobs } }
        })
    })
})
