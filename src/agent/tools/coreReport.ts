/**
 * choir.core.report: a job tells how it goes, or asks the user something (CoreEvent, spec 12.7). The call itself is the record: edge
 * is shown the newest in its prompts, and a question opens a report turn.
 */
import { Effect, Schema } from "effect"
import { type CoreEvent, CoreEventKind } from "#schema/Core.ts"
import { jobOf, type LaneId } from "#schema/Ids.ts"
import { CONTROL_TIMEOUT_MS, CORE_EVENT_CHARS_MAX } from "#src/shared/limits.ts"
import type { Tool } from "./Tool.ts"
import { decodeInput, llmView } from "./toolInput.ts"

const Input = Schema.Struct({
  kind: CoreEventKind.pick([
    "progress",
    "plan",
    "thought_summary",
    "tool_proposal",
    "need_info",
    "partial_result"
  ]).annotate({
    description: "need_info asks the user; the others tell how it goes"
  }),
  text: Schema.NonEmptyString.check(Schema.isMaxLength(CORE_EVENT_CHARS_MAX)).annotate({
    description: "What to tell or to ask, short"
  }),
  percent: Schema.optionalKey(
    Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 100 })).annotate({
      description: "How much of the task is done"
    })
  )
})
const decode = decodeInput(Input)

export const coreReport = (tell: (lane: LaneId, event: CoreEvent) => void): Tool => ({
  llm: llmView(
    "choir.core.report",
    "Tell how the task goes (plan, progress, partial_result), or ask the user (need_info): the answer comes as a further instruction.",
    Input
  ),
  effect: "none",
  lanes: "core",
  readOnly: true,
  prepare: (raw) =>
    Effect.map(decode(raw), (event) => ({
      locks: [],
      timeout_ms: CONTROL_TIMEOUT_MS,
      run: ({ lane }) =>
        Effect.sync(() => {
          const job_name = jobOf(lane)
          if (job_name === undefined) return { status: "error", summary: "only a job reports" }
          tell(lane, { job_name, ...event })
          const isQuestion = event.kind === "need_info"
          return { status: "success", summary: isQuestion ? "the user is being asked" : `${event.kind} reported` }
        })
    }))
})
