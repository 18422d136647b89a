/** Calls of tools that write what choird keeps for the agent, such as facts and plans. choird does the work of a call id once, so an open one is asked again. */
import { Effect, Schema } from "effect"
import type { CallId, LaneId } from "#schema/Ids.ts"
import type { ToolName } from "#schema/Tool.ts"
import { type AskHost, HOST_CALL_GRACE_MS } from "./hostTool.ts"
import { refusal, type ToolOutcome } from "./Tool.ts"

/** One request to choird, which may have to ask a provider for a vector. */
export const CHOIRD_MS_MAX = 12_000
/** Beyond choird's own limit, so that its words reach the model. */
export const KEPT_TIMEOUT_MS = CHOIRD_MS_MAX + HOST_CALL_GRACE_MS

/** The error of an answer, in words. */
export const problemOf = (output: Schema.Json): string | undefined => {
  const error = typeof output === "object" && output !== null && "error" in output ? output["error"] : undefined
  return typeof error === "string" ? error : undefined
}

/** Anything but a success, in words; `acted` where choird may have done it all the same. */
export interface NotDone extends Pick<ToolOutcome, "acted"> {
  readonly message: string
}

export const refused = ({ acted, message }: NotDone): ToolOutcome => ({
  ...refusal({ message }),
  ...(acted === undefined ? {} : { acted })
})

/** The output of a success. */
export const asked = (ask: AskHost, lane: LaneId, tool_name: ToolName, call_id: CallId, input: Schema.Json) =>
  Effect.gen(function* () {
    const call = { tool_name, call_id, input, timeout_ms: CHOIRD_MS_MAX }
    const { output, status } = yield* Effect.mapError(ask(lane, call), ({ _tag, message }): NotDone =>
      _tag === "Denied" ? { message } : { message, acted: "unknown" }
    )
    if (status === "success") return output
    const message = problemOf(output) ?? `choird ended with ${status}`
    return yield* Effect.fail<NotDone>(status === "error" ? { message } : { message, acted: "unknown" })
  })

/** The outcome of a call that was asked for again; fails where even choird does not know it. */
export const again = (outcome: Effect.Effect<ToolOutcome, NotDone>) =>
  Effect.catch(outcome, (error) => (error.acted === undefined ? Effect.succeed(refused(error)) : Effect.fail(error)))
