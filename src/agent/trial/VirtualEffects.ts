/**
 * The tools of a skill that is tried: calls that read, and those that change the trial's own workspace, are made; a call that would act outside
 * is answered as done, and noted.
 */
import { Effect } from "effect"
import type { CallId } from "#schema/Ids.ts"
import type { PreparedCall, Tool, ToolOutcome } from "#src/agent/tools/Tool.ts"
import { FETCH_TOOL } from "#src/shared/web/hostQueries.ts"
import { layerReplaced } from "./replacedTools.ts"

/** It only reads; it counts as acting where its address could carry what a lane has read, and a trial has nothing of the user's. */
const READS: ReadonlySet<string> = new Set([FETCH_TOOL])

const HELD_BACK: ToolOutcome = { status: "success", summary: "done", output: {} }

const notOf = (name: string): ToolOutcome => ({
  status: "error",
  summary: `${name} needs a session; trials have none; continue without it`
})

/** Tools whose effect is on sessions, memory or proposals, which a trial has none of. */
const OF_SESSIONS = /^choir\.(?:core\.(?!report|writeback)|memory\.(?:query|upsert|delete)|propose\.)/u

/** Virtual effects of one trial, and the calls that they replace. */
export const makeVirtualEffects = () => {
  const held = new Set<CallId>()

  const virtual = (tool: Tool, prepared: PreparedCall): PreparedCall => {
    const effect = prepared.effect ?? tool.effect
    const { name } = tool.llm
    const unasked = { ...prepared, confirm: Effect.undefined }
    if (OF_SESSIONS.test(name)) return { ...unasked, effect: "none", run: () => Effect.succeed(notOf(name)) }
    if (effect !== "external") return { ...unasked, run: (context) => prepared.run({ ...context, network: false }) }
    if (READS.has(name)) return { ...unasked, effect: "none" }
    return {
      ...unasked,
      effect: "none",
      run: ({ call_id }) =>
        Effect.sync(() => {
          held.add(call_id)
          return HELD_BACK
        })
    }
  }

  return { layer: layerReplaced(virtual), isHeld: (call_id: CallId) => held.has(call_id) }
}
