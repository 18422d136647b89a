/** The rows that an event acknowledges by carrying their ids (docs/protocol.md, Push stream). */
import type { ChoirEvent } from "#schema/Event.ts"

export const inboxIdOf = (event: ChoirEvent) => (event.event_type === "UserMsg" ? event.payload.inbox_id : undefined)

export const signalIdOf = (event: ChoirEvent) => {
  switch (event.event_type) {
    case "InjectedInstruction":
    case "Cancelled":
    case "CompactionCommitted":
      return event.payload.signal_id
    default:
      return undefined
  }
}
