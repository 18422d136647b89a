/** The events with which a job begins and ends. */
import type { EventDraft, EventOf } from "#schema/Event.ts"
import { CallId, coreLane, JobName } from "#schema/Ids.ts"

type Started = EventOf<"CoreStarted">["payload"]
type Stopped = EventOf<"CoreStopped">["payload"]

/** A job's own parts of its beginning, in the place of the least that there can be. */
type Beginning = Partial<Omit<Started, "start">> & { readonly start?: Partial<Started["start"]> }

const idsOf = (name: string) => ({ job_id: CallId.make(`job-${name}`), job_name: JobName.make(name) })

export const started = (name: string, { start, ...own }: Beginning = {}): EventDraft => {
  const { job_id, job_name } = { ...idsOf(name), ...own }
  return {
    event_type: "CoreStarted",
    lane: coreLane(job_name),
    payload: {
      job_id,
      job_name,
      start: {
        job_id,
        job_name,
        task_spec: "x",
        context_bundle: { facts: [], excerpts: [], constraints: [] },
        tool_constraints: { allowed_tools: [], time_budget_ms: 0 },
        verbosity: "normal",
        ...start
      },
      model: "m",
      budgets: { max_steps: 1, max_tool_calls: 1, wall_time_ms: 1, max_injections: 1 },
      ...own
    }
  }
}

export const stopped = (name: string, own: Partial<Stopped> = {}): EventDraft => ({
  event_type: "CoreStopped",
  lane: coreLane(JobName.make(name)),
  payload: {
    ...idsOf(name),
    outcome: "completed",
    summary: "done",
    usage: { input_tokens: 10, output_tokens: 5 },
    ...own
  }
})
