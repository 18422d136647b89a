/**
 * A recorded history of version 1 that continues with version 2 and has a forgotten payload, as `choirctl session events --json` prints it:
 * `node test/support/mixedHistory.ts > test/shared/session/recorded/mixed.jsonl`. It is recorded once; a test proves that it still verifies.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { ChoirEvent, EventDraft } from "#schema/Event.ts"
import type { PrintedEvent } from "#schema/SessionsApi.ts"
import { CallId, EDGE, InboxId, ResourceName, SessionId } from "#schema/Ids.ts"
import { reductionOf } from "#src/choird/sessions/forgetPayloads.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { chainEvent, chainedText, genesis, hex } from "#src/shared/events/hashChain.ts"

const GOLDEN = join(import.meta.dirname, "../shared/session/golden")

/** The session of the golden histories. */
export const RECORDED_SESSION = SessionId.make("0123456789abcdef")

/** The lines of a golden history, which an agent of version 1 wrote. */
export const goldenLines = (name: string): ReadonlyArray<string> =>
  readFileSync(join(GOLDEN, `${name}.jsonl`), "utf8")
    .trimEnd()
    .split("\n")

/** The same, as events with their digests. */
export const goldenEvents = (name: string): ReadonlyArray<PrintedEvent> =>
  goldenLines(name).map((line) => {
    const { hash, ...event } = JSON.parse(line) as ChoirEvent & { readonly hash: string }
    return { event, hash }
  })

const usage = { input_tokens: 10, output_tokens: 2 }

/** A turn that is legal where edge is idle, and an event that lists its message as forgotten. */
const turn = (inbox: string): ReadonlyArray<EventDraft> => {
  const inbox_id = InboxId.make(inbox)
  const said = { purpose: "turn" as const, model: "small", tool_calls: [], finish_reason: "stop", usage, latency_ms: 1 }
  return [
    {
      event_type: "UserMsg",
      lane: EDGE,
      payload: { inbox_id, dm: ResourceName.make("me"), text: "My pin is 4711. 🫖", attachments: [] }
    },
    {
      event_type: "ModelOutput",
      lane: EDGE,
      payload: { ...said, call_id: CallId.make("later-1"), text: "Noted: 4711." }
    },
    { event_type: "AgentMessage", lane: EDGE, payload: { kind: "reply", text: "Noted: 4711.", in_reply_to: inbox_id } }
  ]
}

/** Events of version 2 after others, and one that lists the first of them; the last line but that one stays whole. */
const continued = (before: ReadonlyArray<ChoirEvent>): ReadonlyArray<ChoirEvent> => {
  const salt = (rev: number) => rev.toString(16).padStart(2, "0").repeat(16)
  const events = turn("900").map((draft, index) => {
    const rev = before.length + 1 + index
    return { v: 2 as const, rev, ...draft, created_at: "2026-02-01T00:00:00.000Z", salt: salt(rev) }
  })
  const forgotten = events.flatMap((event) => {
    const { new_digest, rev } = reductionOf(event, "ab".repeat(16))!
    return [{ rev, new_digest }]
  })
  const rev = before.length + events.length + 1
  const listing = { call_id: CallId.make("later-2"), store: "session", action: "forget" as const, forgotten }
  return [
    ...events,
    {
      v: 2,
      rev,
      event_type: "MemoryWriteCommitted",
      lane: EDGE,
      payload: listing,
      created_at: "2026-02-01T00:00:01.000Z",
      salt: salt(rev)
    }
  ]
}

const parsed = (lines: ReadonlyArray<string>) =>
  lines.map((line) => {
    const { hash: _, ...event } = JSON.parse(line) as ChoirEvent & { readonly hash: string }
    return event
  })

/** Lines with their digests, from the events as they were committed. */
const printed = (events: ReadonlyArray<ChoirEvent>, session_id: SessionId): ReadonlyArray<string> => {
  let hash = genesis(session_id)
  return events.map((event) => {
    hash = chainEvent(hash, event).hash
    return JSON.stringify({ ...event, hash: hex(hash) })
  })
}

/** The same line with a reduced payload. */
export const reducedLine = (line: string): string => {
  const { hash, ...event } = JSON.parse(line) as ChoirEvent & { readonly hash: string }
  const reduction = reductionOf(event, "ab".repeat(16))
  const { payload_digest } = JSON.parse(chainedTextOf(event)) as { readonly payload_digest: string }
  if (reduction === undefined) throw new Error(`nothing of event ${event.rev} is free text`)
  return JSON.stringify({
    ...event,
    payload: JSON.parse(reduction.payload),
    salt: reduction.salt,
    payload_digest,
    hash
  })
}

const chainedTextOf = (event: ChoirEvent): string => chainedText(event, canonicalJson(event.payload))

/** Version 1 alone, version 2 alone, and both; the last two end with an event that lists their three last payloads. */
export const histories = () => {
  const old = goldenLines("files")
  const both = printed([...parsed(old), ...continued(parsed(old))], RECORDED_SESSION)
  const young = printed(continued([]), RECORDED_SESSION)
  return { old, young, both }
}
