/** Drafts of events as prompts need them, with the parts that do not matter filled in. */
import type { EventDraft } from "#schema/Event.ts"

export const draft = (event_type: string, lane: string, payload: object) =>
  ({ event_type, lane, payload }) as EventDraft
/** A message of a person. */
export const userMsg = (inbox_id: string, text: string) =>
  draft("UserMsg", "edge", { inbox_id, dm: "me", text, attachments: [] })
/** What a model answered. */
export const output = (lane: string, more: object) =>
  draft("ModelOutput", lane, {
    call_id: "o",
    purpose: "turn",
    model: "m",
    tool_calls: [],
    finish_reason: "stop",
    usage: { input_tokens: 1, output_tokens: 1 },
    latency_ms: 0,
    ...more
  })
