/** Where the time of an answer went: from the message to the agent, in the agent with its model and tools, and from the agent to the person. */
import type { InboxId } from "#schema/Ids.ts"
import type { PrintedEvent } from "#schema/SessionsApi.ts"
import type { Turn } from "./honest.ts"

export interface Stages {
  readonly began_ms: number
  /** Until choird has the message, the agent has it, the agent has answered, and the person sees it; each from the one before. */
  readonly sent_ms: number
  readonly heard_ms: number
  readonly worked_ms: number
  readonly shown_ms: number
}

/** The stages of the turns that the log tells of. An agent's clock is the machine's. */
export const stagesOf = (turns: ReadonlyArray<Turn>, history: ReadonlyArray<PrintedEvent>): ReadonlyArray<Stages> => {
  const heard = new Map<InboxId, number>()
  const answered = new Map<InboxId, number>()
  for (const { event } of history) {
    const at_ms = Date.parse(event.created_at) - performance.timeOrigin
    if (event.event_type === "UserMsg") heard.set(event.payload.inbox_id, at_ms)
    if (
      event.event_type === "AgentMessage" &&
      event.payload.kind === "reply" &&
      event.payload.in_reply_to !== undefined
    )
      answered.set(event.payload.in_reply_to, at_ms)
  }
  return turns.flatMap(({ began_ms, inbox_id, sent_ms, took_ms }) => {
    const from = heard.get(inbox_id)
    const until = answered.get(inbox_id)
    if (from === undefined || until === undefined) return []
    const stages = {
      heard_ms: from - began_ms - sent_ms,
      worked_ms: until - from,
      shown_ms: began_ms + took_ms - until
    }
    return [{ began_ms, sent_ms, ...stages }]
  })
}
