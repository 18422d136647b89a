/** The tool that edge of each agent runs, and since when, by the clock of this process. */
import { Effect } from "effect"
import type { AgentId, InboxId } from "#schema/Ids.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import type { OpenCall, SessionState } from "#src/shared/session/State.ts"

/** A tool that runs in the turn of a person's message. */
export interface Runs {
  readonly agent_id: AgentId
  readonly inbox_id: InboxId
  /** Its name without that of Choir before it, as a terminal shows it. */
  readonly tool: string
  readonly seconds: number
}

export const makeRunningCalls = () => {
  const calls = new Map<AgentId, { readonly call: OpenCall; readonly since_ms: number }>()
  return {
    /** Takes the newest state of an agent's session. */
    note: Effect.fnUntraced(function* (agent_id: AgentId, { edge }: SessionState) {
      const call = edge.calls.find(({ stage }) => stage === "committed")
      if (call === undefined) calls.delete(agent_id)
      else if (calls.get(agent_id)?.call.call_id !== call.call_id)
        calls.set(agent_id, { call, since_ms: yield* monotonicMs })
    }),
    /** The tool that runs in the turn of this message. */
    of: Effect.fnUntraced(function* (agent_id: AgentId, inbox_id: InboxId) {
      const known = calls.get(agent_id)
      if (known === undefined) return undefined
      const seconds = Math.floor(((yield* monotonicMs) - known.since_ms) / 1000)
      return { agent_id, inbox_id, tool: known.call.name.replace(/^choir-/u, ""), seconds } satisfies Runs
    })
  }
}
