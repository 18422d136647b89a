/** choir.core.report: a job tells how it goes (CoreEvent, spec 12.7). It changes nothing and may be lost. */
import { Effect, Schema } from "effect"
import { CoreEventKind } from "#schema/Core.ts"
import { jobOf } from "#schema/Ids.ts"
import { CONTROL_TIMEOUT_MS } from "#src/shared/limits.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import type { ControlPlane } from "#src/agent/ControlPlane.ts"
import type { AgentSettings } from "#src/agent/AgentSettings.ts"
import type { Tool } from "./Tool.ts"
import { decodeInput, llmView } from "./toolInput.ts"

const Input = Schema.Struct({
  kind: CoreEventKind.pick(["progress", "plan", "thought_summary", "tool_proposal", "need_info", "partial_result"]),
  text: Schema.NonEmptyString.check(Schema.isMaxLength(8192)),
  percent: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 100 })))
})

export const coreReport = (
  state: () => SessionState,
  plane: ControlPlane["Service"],
  settings: AgentSettings["Service"],
  acknowledged: (rev: number) => Effect.Effect<void>
): Tool => {
  const decode = decodeInput(Input)
  return {
    llm: llmView("choir.core.report", "Tell how the task goes: a plan, progress, or what is missing.", Input),
    effect: "none",
    lanes: "core",
    readOnly: true,
    prepare: Effect.fn("coreReport.prepare")(function* (raw) {
      const event = yield* decode(raw)
      return {
        locks: [],
        timeout_ms: CONTROL_TIMEOUT_MS,
        run: ({ lane }) => {
          const job_name = jobOf(lane)
          const job = job_name === undefined ? undefined : state().cores.get(job_name)
          const { budgets } = settings.current().config
          if (job_name === undefined || job === undefined)
            return Effect.succeed({ status: "error", summary: "only a running job reports" } as const)
          const expires_ms = Date.parse(job.started_at) + job.budgets.wall_time_ms
          const status = {
            lane,
            state: job.state,
            step: job.step,
            budget_remaining: {
              tokens: budgets.total_session_tokens - state().spent.tokens,
              tool_calls: budgets.max_tool_calls_per_session - state().spent.tool_calls
            },
            core_event: { job_name, ...event }
          }
          // choird takes the job's word only once it knows that the job runs.
          const report = Effect.andThen(
            acknowledged(job.started_rev),
            plane.report(status, { job_id: job.job_id, expires_ms })
          )
          return Effect.match(report, {
            onSuccess: () => ({ status: "success", summary: `${event.kind} reported` }) as const,
            onFailure: ({ message }) => ({ status: "error", summary: `not reported: ${message}` }) as const
          })
        }
      }
    })
  }
}
