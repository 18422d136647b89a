/** The events of a lane that give way to its summary, what the model is asked, and what of its answer counts. */
import { writtenBy } from "#src/shared/text/writtenBy.ts"
import { Schema } from "effect"
import { type ChoirEvent, type EventOf, type MemoryDelta, REST_CHARS_MAX } from "#schema/Event.ts"
import { EDGE, SessionId } from "#schema/Ids.ts"
import type { CoreLane, EdgeLane, ReferenceSummary } from "#src/shared/session/State.ts"
import { answerTool } from "#src/agent/model/llmView.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import type { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { heldRevs } from "#src/agent/arbiter/keptRevs.ts"
import { jsonBytes } from "#src/agent/model/prompt/inlineResult.ts"
import { note, withoutNotes } from "#src/agent/model/choirNote.ts"
import { COMPACTION_INSTRUCTIONS, REST_INSTRUCTIONS } from "#src/agent/model/prompt/instructions.ts"
import { SHOWN_HASH_CHARS } from "#src/agent/model/prompt/Prompt.ts"
import { type Reading, rendering, withCalls, withNames } from "#src/agent/model/prompt/promptMessages.ts"
import { SUMMARY_CHARS_MAX, SUMMARY_FACTS_MAX, SUMMARY_REFERENCES_MAX } from "#src/shared/session/memory.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"
import { stubsOf } from "./stubs.ts"
import type { Folding } from "./Folding.ts"

/** Of one event, what the model of a compaction is shown. */
const COMPACTION_EVENT_CHARS_MAX = 8000

/** The positions after which a window may be cut: no call stands on one side and its result on the other. */
const cuts = (events: ReadonlyArray<ChoirEvent>): ReadonlyArray<number> => {
  const open = new Set<string>()
  return events.flatMap((event, index) => {
    if (event.event_type === "ModelOutput") for (const { call_id } of event.payload.tool_calls) open.add(call_id)
    if (event.event_type === "ToolResultCommitted") open.delete(event.payload.call_id)
    return open.size === 0 ? [index + 1] : []
  })
}

/** The events of a lane's window that may leave, as a model sees them; calls that wait for a person stay before their turn continues. */
export const foldingOf = (
  log: EventLog["Service"],
  memory: EdgeLane | CoreLane,
  shown: Omit<Reading, "find">
): ReadonlyArray<Folding> => {
  const held = new Set(heldRevs(memory, log.find))
  const events = memory.window.flatMap((rev) => (held.has(rev) ? [] : (log.find(rev) ?? [])))
  const names = withNames(new Map(), events)
  const render = rendering("job_id" in memory ? "core" : "edge", names, shown)
  return events.map((event) => ({
    event,
    hash: event.rev < log.oldest() ? "" : log.hashAt(event.rev),
    messages: render(event)
  }))
}

/** Messages as text; the reasoning in them is for its own model alone, and for no summary (invariant 6). */
const told = (messages: ReadonlyArray<Message>): string =>
  JSON.stringify(messages, (key, value: unknown) => (key === "continuation" ? undefined : value))

/** One line of an event: its hash, its type and its messages, cut. */
export const foldingLine = ({ event, hash, messages }: Folding): string => {
  const text = messages.length === 0 ? "" : told(messages)
  const cut = text.length <= COMPACTION_EVENT_CHARS_MAX ? text : `${text.slice(0, COMPACTION_EVENT_CHARS_MAX)}…`
  return `${hash.slice(0, SHOWN_HASH_CHARS)} ${event.event_type} ${cut}`.toWellFormed()
}

/** How much of a window stays at most. */
export interface Stay {
  readonly events: number
  readonly tokens: number
}

/** Whether a turn of edge begins with an event, so that a cut before it parts no turn. */
const beginsTurn = ({ event }: Folding): boolean =>
  event.event_type === "UserMsg" || (event.event_type === "ModelOutput" && event.payload.purpose === "report")

/**
 * How many of the oldest events leave a window, so that what stays fits: none after `limit_rev`, no call without its result, and no part of
 * a turn unless the open one alone is too much. 0 when nothing can. `tokens` are those of each event.
 */
export const leavingCount = (
  window: ReadonlyArray<Folding>,
  tokens: ReadonlyArray<number>,
  stay: Stay,
  limit_rev: number
): number => {
  const allowed = cuts(window.map(({ event }) => event)).filter((count) => {
    const last = window[count - 1]
    return last !== undefined && last.event.rev <= limit_rev
  })
  const isTurn = (count: number) => {
    const next = window[count]
    return next === undefined || next.event.lane !== EDGE || beginsTurn(next)
  }
  const fits = (count: number) =>
    window.length - count <= stay.events && tokens.slice(count).reduce((sum, each) => sum + each, 0) <= stay.tokens
  return allowed.find((count) => isTurn(count) && fits(count)) ?? allowed.find(fits) ?? allowed.at(-1) ?? 0
}

/** The limit of all deltas of one answer together, far below that of a commit (COMMIT_BYTES_MAX). */
const COMPACTION_BYTES_MAX = 256 * 1024

const Reference = Schema.String.check(Schema.isMaxLength(64))
const FactInput = Schema.Struct({
  key: Schema.NonEmptyString.annotate({ description: "A short key" }),
  value: Schema.String.annotate({ description: "The fact" }),
  pinned: Schema.optionalKey(Schema.Boolean.annotate({ description: "Never lose it" })),
  source_event: Schema.optionalKey(Reference)
})
/** Changes of the reference summary as a model writes them: hashes may be the short ones that it was shown. */
const DeltaInput = Schema.Struct({
  mode: Schema.optionalKey(Schema.Literals(["append", "overwrite"])),
  summary_update: Schema.optionalKey(Schema.String.annotate({ description: "All of its text" })),
  add_facts: Schema.optionalKey(Schema.Array(FactInput).annotate({ description: "A known key is replaced" })),
  remove_facts: Schema.optionalKey(
    Schema.Array(Schema.NonEmptyString).annotate({ description: "Keys that no longer hold" })
  ),
  add_references: Schema.optionalKey(Schema.Array(Reference).annotate({ description: "Hashes, session ids" })),
  remove_references: Schema.optionalKey(Schema.Array(Reference))
})
/**
 * The input as models see it: they write the whole text, a summary drops its oldest references by itself, and a fact hardly needs its event. The
 * other keys are accepted all the same.
 */
const { source_event: _source, ...FACT } = FactInput.fields
const { mode: _mode, remove_references: _references, ...DELTA_FIELDS } = DeltaInput.fields
const OFFERED = {
  ...DELTA_FIELDS,
  add_facts: Schema.optionalKey(Schema.Array(Schema.Struct(FACT)).annotate({ description: "A known key is replaced" }))
}
const DELTA = answerTool(
  "choir.memory.delta",
  "Change your reference summary; only in a compaction.",
  DeltaInput,
  Schema.Struct(OFFERED)
)

/** The tool that answers a compaction. Every call of a lane offers it, so that all of them begin alike. */
export const deltaTool = DELTA.tool
export const deltaView = DELTA.view

/** Events that leave and are listed by hash; of more the newest. */
const LISTED_EVENTS_MAX = 60

/** The question that a compaction adds to the lane's own prompt: which part of it leaves, and how to answer. */
export const compactionNote = (
  { facts, summary }: ReferenceSummary,
  leaving: ReadonlyArray<Folding>,
  staying: ReadonlyArray<Folding>
): Message => {
  const stubs = stubsOf(leaving)
  const [next] = stubsOf(staying)
  return note(
    [
      COMPACTION_INSTRUCTIONS,
      `Your summary has ${summary.length} of ${SUMMARY_CHARS_MAX} characters and ${facts.length} of ${SUMMARY_FACTS_MAX} facts.`,
      next === undefined
        ? "All messages above leave."
        : `The messages above leave up to this one, which stays with all that follow it: ${next}`,
      `What leaves:\n${stubs.slice(-LISTED_EVENTS_MAX).join("\n")}`
    ].join("\n\n")
  )
}

/** The end of a window that leaves in two parts: what was said before any text from outside was in sight, and the rest. */
export interface Parts {
  readonly trusted: ReadonlyArray<Folding>
  readonly others: ReadonlyArray<Folding>
}

/** The events that leave, in two parts; no call is parted from its result. */
export const partsOf = (leaving: ReadonlyArray<Folding>, from_rev: number): Parts => {
  const events = leaving.map(({ event }) => event)
  const count = cuts(events).findLast((at) => (events[at - 1]?.rev ?? 0) < from_rev) ?? 0
  return { trusted: leaving.slice(0, count), others: leaving.slice(count) }
}

/** The question for what a summary quotes of text from outside. */
export const restNote = (staying: ReadonlyArray<Folding>): Message => {
  const [next] = stubsOf(staying)
  const until = next === undefined ? "All messages above leave." : `What leaves ends before this message: ${next}`
  return note(`${REST_INSTRUCTIONS}\n\n${until}`)
}

/** The text of an answer to {@link restNote}. */
export const restOf = ({ payload }: EventOf<"ModelOutput">): string | undefined => {
  const text = DELTA.answers(payload.tool_calls)
    .map(({ summary_update = "" }) => summary_update)
    .join("\n")
    .trim()
  return text === "" ? undefined : firstPart(text, REST_CHARS_MAX)
}

/** The newest lines on events that no model has put into words. */
export const restStubs = (others: ReadonlyArray<Folding>): string => {
  let left = REST_CHARS_MAX
  const stubs = stubsOf(others)
  const from = stubs.findLastIndex(({ length }) => {
    left -= length + 1
    return left < 0
  })
  return stubs.slice(from + 1).join("\n")
}

const isSession = Schema.is(SessionId)

/** The earlier sessions that results named, such as those that a search of the memory found. */
const sessionsIn = (folding: ReadonlyArray<Folding>): ReadonlyArray<string> =>
  folding.flatMap(({ event }) => {
    if (event.event_type !== "ToolResultCommitted") return []
    const found = JSON.stringify(event.payload.output ?? null).matchAll(/"session_id":"(\w{1,64})"/gu)
    return Array.from(found, ([, id]) => id ?? "").filter((id) => isSession(id))
  })

/** The full hash or session behind what a model wrote, if it was shown such an event or the summary holds it already. */
const resolver = (summary: ReferenceSummary, folding: ReadonlyArray<Folding>) => {
  const held = [...summary.referenced_events, ...summary.referenced_sessions]
  const known = [...folding.map(({ hash }) => hash), ...sessionsIn(folding), ...held]
  return (text: string): ReadonlyArray<string> => {
    const found = text.length < SHOWN_HASH_CHARS ? undefined : known.find((hash) => hash.startsWith(text))
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
  const deltas = DELTA.answers(payload.tool_calls).flatMap((input, index): ReadonlyArray<MemoryDelta> => {
    const { add_facts = [], add_references, remove_facts = [], remove_references, summary_update } = input
    const { mode = summary_update === undefined || index > 0 ? "append" : "overwrite" } = input
    const facts = add_facts.map(({ key, pinned, source_event, value }): MemoryDelta => {
      const [source] = source_event === undefined ? [] : resolve(source_event)
      const more = { ...(source === undefined ? {} : { source_event: source }), ...(pinned === true ? { pinned } : {}) }
      return { mode: "append", add_fact: { key, value, ...more } }
    })
    const removed = remove_facts.map((key): MemoryDelta => ({ mode: "append", remove_fact: { key, value: "" } }))
    return [
      {
        mode,
        ...(summary_update === undefined ? {} : { summary_update }),
        ...(add_references === undefined ? {} : { add_references: resolved(add_references, resolve) }),
        ...(remove_references === undefined ? {} : { remove_references: resolved(remove_references, resolve) })
      },
      ...removed,
      ...facts
    ]
  })
  return affordable(deltas)
}

/** The messages of people that left the window or leave it, as they were written, oldest first. */
export const wordsOf = ({ words }: ReferenceSummary, leaving: ReadonlyArray<Folding>): ReadonlyArray<string> => [
  ...words,
  ...leaving.flatMap(({ event }) => {
    // Words that a person forwarded are somebody else's.
    if (event.event_type === "UserMsg")
      return event.payload.text.trim() === "" || event.payload.forwarded === true
        ? []
        : [withoutNotes(writtenBy(event.payload))]
    return event.event_type === "InjectedInstruction" && event.payload.source !== "control_plane"
      ? [withoutNotes(event.payload.content)]
      : []
  })
]

/** The second question of a compaction: the answer to the first, and why it does not do. */
export const askedAgain = (output: EventOf<"ModelOutput">, problem: string): ReadonlyArray<Message> => {
  const said = withCalls(output)
  const { tool_calls } = output.payload
  if (tool_calls.length === 0) {
    const words = said.content === null ? [] : [said]
    return [...words, note(`${problem}. Answer by calling choir-memory-delta.`)]
  }
  return [
    said,
    ...tool_calls.map(({ call_id }): Message => ({ role: "tool", call_id, content: `refused: ${problem}` }))
  ]
}
