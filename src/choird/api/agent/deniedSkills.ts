/**
 * Skills, begun by a model, a person or their time, and calls of skills, that an agent refused because they can do more than they declare or than it
 * is granted: a row of the audit each.
 */
import { Effect } from "effect"
import type { Caller } from "#schema/AgentApi.ts"
import { isKnownEvent, type SentEvent } from "#schema/Event.ts"
import { audited, type Services, words } from "./agentCaller.ts"

/** Rows that one heartbeat writes; equal refusals are counted in one row anyway. */
const DENIED_ROWS_MAX = 16

/** `patches` are the events of a heartbeat, of which those up to `ack_rev` are stored. */
export const auditDenied = (
  services: Services,
  caller: Caller,
  patches: ReadonlyArray<SentEvent>,
  ack_rev: number
): Effect.Effect<void> => {
  const denied = patches.flatMap((event) => {
    if (!isKnownEvent(event) || event.rev > ack_rev) return []
    const isRefusal = event.event_type === "ToolResultCommitted" || event.event_type === "InjectedInstruction"
    return isRefusal ? (event.payload.denied ?? []) : []
  })
  return Effect.forEach(
    denied.slice(0, DENIED_ROWS_MAX),
    ({ capabilities, skill }) =>
      audited(services, caller, "HEARTBEAT", { refused: "CAPABILITY", skill: words(skill), capabilities }),
    { discard: true }
  )
}
