/** Which events of a lane give way to its summary, what the model is asked, and what of its answer counts. */
import { Schema } from "effect"
import type { ChoirEvent, EventOf, MemoryDelta } from "#schema/Event.ts"
import type { CoreLane, EdgeLane, ReferenceSummary } from "#src/shared/session/State.ts"
import { answerTool } from "#src/agent/model/llmView.ts"
import type { Message } from "#src/agent/model/Conversation.ts"
import type { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { jsonBytes } from "#src/agent/model/prompt/inlineResult.ts"
import { COMPACTION_INSTRUCTIONS } from "#src/agent/model/prompt/instructions.ts"
import { type IsMasked, messagesByEvent } from "#src/agent/model/prompt/promptMessages.ts"
import { SUMMARY_CHARS_MAX, SUMMARY_FACT_CHARS_MAX, SUMMARY_REFERENCES_MAX } from "#src/shared/session/memory.ts"

/** Of one event, what the model of a compaction is shown. */
const COMPACTION_EVENT_CHARS_MAX = 8000
/** Characters of an event's hash that models are shown and may refer to it by. */
const MEMORY_HASH_CHARS = 12

/** An event of a window as the compaction's model reads it. */
export interface Folding {
  readonly event: ChoirEvent
  readonly hash: string
  readonly messages: ReadonlyArray<Message>
}

/** The positions after which a window may be cut: no call stands on one side and its result on the other. */
const cuts = (events: ReadonlyArray<ChoirEvent>): ReadonlyArray<number> => {
  const open = new Set<string>()
  return events.flatMap((event, index) => {
    if (event.event_type === "ModelOutput") for (const { call_id } of event.payload.tool_calls) open.add(call_id)
    if (event.event_type === "ToolResultCommitted") open.delete(event.payload.call_id)
    return open.size === 0 ? [index + 1] : []
  })
}

/** How much of a window is to stay; `events` may be 0 for all that may go. */
export interface Stay {
  readonly events: number
  readonly chars: number
}

/** The content of a lane's window, as a model sees it. */
export const foldingOf = (
  log: EventLog["Service"],
  memory: EdgeLane | CoreLane,
  isMasked: IsMasked
): ReadonlyArray<Folding> => {
  const events = memory.window.flatMap((rev) => log.find(rev) ?? [])
  const messages = messagesByEvent("job_id" in memory ? "core" : "edge", events, isMasked)
  return events.map((event, index) => ({
    event,
    hash: event.rev < log.oldest() ? "" : log.hashAt(event.rev),
    messages: messages[index] ?? []
  }))
}

/** Messages as text; the reasoning in them is for its own model alone, and for no summary (invariant 6). */
const told = (messages: ReadonlyArray<Message>): string =>
  JSON.stringify(messages, (key, value: unknown) => (key === "continuation" ? undefined : value))

/** One line of an event: its hash, its type and its messages, cut. */
export const foldingLine = ({ event, hash, messages }: Folding): string => {
  const text = messages.length === 0 ? "" : told(messages)
  const cut = text.length <= COMPACTION_EVENT_CHARS_MAX ? text : `${text.slice(0, COMPACTION_EVENT_CHARS_MAX)}…`
  return `${hash.slice(0, MEMORY_HASH_CHARS)} ${event.event_type} ${cut}`.toWellFormed()
}

/**
 * How many of the oldest events are to be folded: enough that the rest fits `stay`, not more than fit `room_chars` of a prompt, none
 * after `limit_rev`. 0 when nothing can be.
 */
export const foldedCount = (
  window: ReadonlyArray<Folding>,
  stay: Stay,
  limit_rev: number,
  room_chars: number
): number => {
  const lengths = window.map((folding) => foldingLine(folding).length)
  const sizes = window.map(({ messages }) => JSON.stringify(messages).length)
  let staying = sizes.reduce((total, length) => total + length, 0)
  let asked = 0
  let count = 0
  const allowed = new Set(cuts(window.map(({ event }) => event)))
  for (const [index, { event }] of window.entries()) {
    if (event.rev > limit_rev) break
    asked += lengths[index] ?? 0
    if (asked > room_chars) break
    staying -= sizes[index] ?? 0
    if (allowed.has(index + 1)) count = index + 1
    const left = window.length - (index + 1)
    if (count === index + 1 && left <= stay.events && staying <= stay.chars) break
  }
  return count
}

/** The limit of all deltas of one answer together, far below that of a commit (COMMIT_BYTES_MAX). */
const COMPACTION_BYTES_MAX = 256 * 1024

const factText = (text: string): string => text.slice(0, SUMMARY_FACT_CHARS_MAX).toWellFormed()

const Reference = Schema.String.check(Schema.isMaxLength(64))
const FactInput = Schema.Struct({
  key: Schema.NonEmptyString.annotate({ description: "A short key" }),
  value: Schema.String.annotate({ description: "The fact" }),
  source_event: Schema.optionalKey(Reference.annotate({ description: "The hash of the event that says so" }))
})
/** A change of the reference summary as a model writes it: hashes may be the short ones that it was shown. */
const DeltaInput = Schema.Struct({
  mode: Schema.Literals(["append", "overwrite"]).annotate({
    description: "Whether summary_update is added or replaces the text"
  }),
  summary_update: Schema.optionalKey(
    Schema.String.check(Schema.isMaxLength(SUMMARY_CHARS_MAX)).annotate({ description: "Plain sentences" })
  ),
  add_references: Schema.optionalKey(
    Schema.Array(Reference).annotate({ description: "Hashes of events worth reading again" })
  ),
  remove_references: Schema.optionalKey(
    Schema.Array(Reference).annotate({ description: "Hashes that are not needed any more" })
  ),
  add_fact: Schema.optionalKey(FactInput.annotate({ description: "One fact" })),
  remove_fact: Schema.optionalKey(
    Schema.Struct({ key: Schema.NonEmptyString.annotate({ description: "The key of the fact" }) }).annotate({
      description: "A fact that does not hold any more"
    })
  )
})
const DELTA = answerTool("choir.memory.delta", "Change the lane's reference summary.", DeltaInput)

/** The one tool of a compaction. */
export const deltaTool = DELTA.tool

export const compactionPrompt = (
  summary: ReferenceSummary,
  folding: ReadonlyArray<Folding>
): ReadonlyArray<Message> => [
  { role: "system", content: COMPACTION_INSTRUCTIONS },
  {
    role: "user",
    content: `Reference summary (its text may have ${SUMMARY_CHARS_MAX} characters):\n${JSON.stringify(summary)}\n\nEvents, oldest first:\n${folding.map(foldingLine).join("\n")}`
  }
]

/** The full hash behind what a model wrote, if it was shown such an event or the summary holds it already. */
const resolver = (summary: ReferenceSummary, folding: ReadonlyArray<Folding>) => {
  const known = [...folding.map(({ hash }) => hash), ...summary.referenced_events, ...summary.referenced_sessions]
  return (text: string): ReadonlyArray<string> => {
    const found = text.length < MEMORY_HASH_CHARS ? undefined : known.find((hash) => hash.startsWith(text))
    return found === undefined ? [] : [found]
  }
}

/** References by their full hashes, each once, and not more than a summary holds. */
const resolved = (
  references: ReadonlyArray<string>,
  resolve: (text: string) => ReadonlyArray<string>
): ReadonlyArray<string> => [...new Set([...new Set(references)].flatMap(resolve))].slice(-SUMMARY_REFERENCES_MAX)

/** The first deltas, as many as one commit takes. */
const affordable = (deltas: ReadonlyArray<MemoryDelta>): ReadonlyArray<MemoryDelta> => {
  let bytes = 0
  return deltas.filter((delta) => {
    bytes += jsonBytes(delta)
    return bytes <= COMPACTION_BYTES_MAX
  })
}

/** The deltas of an answer that can be applied; nothing when the model called no delta that fits. */
export const deltasOf = (
  { payload }: EventOf<"ModelOutput">,
  summary: ReferenceSummary,
  folding: ReadonlyArray<Folding>
): ReadonlyArray<MemoryDelta> => {
  const resolve = resolver(summary, folding)
  const deltas = DELTA.answers(payload.tool_calls).map((delta): MemoryDelta => {
    const { add_fact, add_references, mode, remove_fact, remove_references, summary_update } = delta
    const source = add_fact?.source_event === undefined ? undefined : resolve(add_fact.source_event)[0]
    return {
      mode,
      ...(summary_update === undefined ? {} : { summary_update }),
      ...(add_references === undefined ? {} : { add_references: resolved(add_references, resolve) }),
      ...(remove_references === undefined ? {} : { remove_references: resolved(remove_references, resolve) }),
      ...(add_fact === undefined
        ? {}
        : {
            add_fact: {
              key: factText(add_fact.key),
              value: factText(add_fact.value),
              ...(source === undefined ? {} : { source_event: source })
            }
          }),
      ...(remove_fact === undefined ? {} : { remove_fact: { key: factText(remove_fact.key), value: "" } })
    }
  })
  return affordable(deltas)
}
