/**
 * A lane's conversation as its events tell it: append-only. A message is rendered once and keeps its bytes and its place in every later prompt
 * until a compaction, so that providers find each prompt in their caches. What no event says stands in notes, and the output of the call that
 * showed a note holds it.
 */
import type { ChoirEvent, Prompted } from "#schema/Event.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { note } from "#src/agent/model/choirNote.ts"
import { weakMemoize } from "#src/shared/weakMemoize.ts"
import { isEnvironment } from "./Environment.ts"
import { type CallNames, isSameReading, type Reading, rendering, withNames } from "./promptMessages.ts"
import { NOTHING_ORDERED, orderedAfter, type Ordering } from "./promptWindow.ts"

/** Something that a lane learns beside its events, under what it is about. */
export type Note = NonNullable<Prompted["notes"]>[number]

export interface Transcript {
  readonly messages: ReadonlyArray<Message>
  /** The newest note of each kind. */
  readonly told: ReadonlyMap<string, string>
  /** The newest message of a person that is shown; 0 when there is none. */
  readonly asked_rev: number
  /** Whether the last message is that one. */
  readonly endsAsked: boolean
}

/** The matter of notes on a changed environment. */
export const ENVIRONMENT = "environment"

/** A stored note may hold an environment of an earlier form, with any name of a branch in it. */
const isShown = ({ about, text }: Note): boolean => about !== ENVIRONMENT || isEnvironment(text)

/** The matter of a report and a correction of the answer before stand at the very end, each for itself. */
const standsLast = ({ about }: Note): boolean => /^(?:report|correction)\b/u.test(about)
/** The message of a turn that no other message shows is before the calls that were made for it. */
const isOfTurn = ({ about }: Note): boolean => about.startsWith("turn ")

const noted = (notes: ReadonlyArray<Note>): ReadonlyArray<Message> =>
  notes.length === 0 ? [] : [note(notes.map(({ text }) => text).join("\n"))]

/** A call's notes by their places. Every later prompt shows the notes of an output, so that they are rendered once. */
const placed = weakMemoize((notes: ReadonlyArray<Note>) => ({
  shared: noted(notes.filter((each) => !standsLast(each) && !isOfTurn(each))),
  turn: noted(notes.filter(isOfTurn)),
  last: notes.filter(standsLast).flatMap((each) => noted([each]))
}))

/** Where the calls begin that the last messages are the results of. */
const lastCalls = (messages: ReadonlyArray<Message>): number => {
  const at = messages.findLastIndex(({ role }) => role !== "tool")
  return at < messages.length - 1 ? at : messages.length
}

/** With notes: before a person's message that is last, which a model answers best when nothing follows it, or else at the end. */
export const withNotes = (
  messages: ReadonlyArray<Message>,
  endsAsked: boolean,
  notes: ReadonlyArray<Note>
): ReadonlyArray<Message> => {
  if (notes.length === 0) return messages
  const { last, shared, turn } = placed(notes)
  const at = turn.length === 0 ? messages.length : lastCalls(messages)
  const end = endsAsked ? messages.length - 1 : messages.length
  return turn.length === 0
    ? [...messages.slice(0, end), ...shared, ...messages.slice(end), ...last]
    : [...messages.slice(0, at), ...turn, ...messages.slice(at), ...shared, ...last]
}

/** Whether the model's own words, which are in the prompt, are what the user got. */
const repeats = (words: ReadonlyArray<string>, text: string): boolean =>
  words.some((_, index) => {
    const said = words.slice(index).join("")
    return said !== "" && text.startsWith(said)
  })

/** The circumstances under which events read as they do. */
interface Rendering {
  readonly lane: "edge" | "core"
  readonly reading: Reading
}

const isSameRendering = (a: Rendering, b: Rendering): boolean =>
  a.lane === b.lane && isSameReading(a.reading, b.reading)

/** A transcript with what is needed to continue it. */
interface Told extends Transcript, Rendering {
  readonly window: ReadonlyArray<number>
  readonly ordering: Ordering
  /** Texts of the model since the last message to the user. */
  readonly words: ReadonlyArray<string>
  readonly names: CallNames
}

const nothingTold = (rendering: Rendering): Told => ({
  ...rendering,
  window: [],
  ordering: NOTHING_ORDERED,
  words: [],
  names: new Map(),
  messages: [],
  told: new Map(),
  asked_rev: 0,
  endsAsked: false
})

/** Whether one list begins with another. */
const beginsWith = <A>(list: ReadonlyArray<A>, beginning: ReadonlyArray<A>): boolean =>
  beginning.every((item, index) => item === list[index])

/** The events of a window in their order, which follow those of a shorter one where each of its calls has its result. */
const order = ({ ordering, reading: { find }, window: shorter }: Told, window: ReadonlyArray<number>): Ordering => {
  const goesOn = !ordering.isOpen && beginsWith(window, shorter)
  const fresh = goesOn ? window.slice(shorter.length) : window
  return orderedAfter(
    goesOn ? ordering : NOTHING_ORDERED,
    fresh.flatMap((rev) => find(rev) ?? [])
  )
}

/** Shows the events behind those that were shown before. */
const continued = (before: Told, window: ReadonlyArray<number>, ordering: Ordering): Told => {
  const { lane, reading } = before
  const fresh = ordering.events.slice(before.ordering.events.length)
  const names = withNames(before.names, fresh)
  const render = rendering(lane, names, reading)
  const told = new Map(before.told)
  const words = [...before.words]
  let messages: Array<Message> = [...before.messages]
  let { asked_rev, endsAsked } = before
  for (const event of fresh) {
    if (event.event_type === "ModelOutput") {
      const notes = (event.payload.prompt?.notes ?? []).filter(isShown)
      if (notes.length > 0) {
        messages = [...withNotes(messages, endsAsked, notes)]
        for (const { about, text } of notes) told.set(about, text)
      }
      if (event.payload.tool_calls.length === 0) words.push(event.payload.text ?? "")
    }
    const isRepeated = event.event_type === "AgentMessage" && repeats(words, event.payload.text ?? "")
    if (event.event_type === "AgentMessage") words.length = 0
    const added = isRepeated ? [] : render(event)
    messages.push(...added)
    if (event.event_type === "UserMsg") asked_rev = event.rev
    if (added.length > 0 || event.event_type === "ModelOutput") endsAsked = event.event_type === "UserMsg"
  }
  return { ...before, window, ordering, words, names, messages, told, asked_rev, endsAsked }
}

/** The newest transcripts by their first event, which the windows of a lane have in common between two compactions. */
const newest = { edge: new WeakMap<ChoirEvent, Told>(), core: new WeakMap<ChoirEvent, Told>() }

const tell = (window: ReadonlyArray<number>, rendering: Rendering): Told => {
  const [rev] = window
  const first = rev === undefined ? undefined : rendering.reading.find(rev)
  const known = first === undefined ? undefined : newest[rendering.lane].get(first)
  const nothing = nothingTold(rendering)
  const before = known !== undefined && isSameRendering(known, rendering) ? known : nothing
  const ordering = order(before, window)
  // What came while a model was asked is behind its answer, so that the end of an order may change.
  const told = continued(beginsWith(ordering.events, before.ordering.events) ? before : nothing, window, ordering)
  if (first !== undefined) newest[rendering.lane].set(first, told)
  return told
}

const transcripts = weakMemoize(tell, ([a], [b]) => isSameRendering(a, b))

/** A lane's transcript, which is the same as long as its window is. */
export const transcriptOf = (
  lane: "edge" | "core",
  window: ReadonlyArray<number>,
  { find, isMasked, offered }: Reading
): Transcript => transcripts(window, { lane, reading: { find, isMasked, offered } })
