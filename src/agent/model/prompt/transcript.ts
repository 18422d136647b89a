/**
 * A lane's conversation as its events tell it: append-only. A message is rendered once and keeps its bytes and its place in every later prompt
 * until a compaction, so that providers find each prompt in their caches. What no event says stands in notes, and the output of the call that
 * showed a note holds it.
 */
import type { ChoirEvent, Prompted } from "#schema/Event.ts"
import type { Find } from "#src/agent/arbiter/Command.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { note } from "#src/agent/model/choirNote.ts"
import { isSameOffer, type Offered } from "#src/agent/model/offered.ts"
import { type IsMasked, rendering } from "./promptMessages.ts"
import { eventsOf, settled } from "./promptWindow.ts"

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

/** The matter of a report and a correction of the answer before stand at the very end, each for itself. */
const standsLast = ({ about }: Note): boolean => /^(?:report|correction)\b/u.test(about)
/** The message of a turn that no other message shows stands before the calls that were made for it. */
const isOfTurn = ({ about }: Note): boolean => about.startsWith("turn ")

const noted = (notes: ReadonlyArray<Note>): ReadonlyArray<Message> =>
  notes.length === 0 ? [] : [note(notes.map(({ text }) => text).join("\n"))]

const places = new WeakMap<ReadonlyArray<Note>, ReturnType<typeof place>>()

const place = (notes: ReadonlyArray<Note>) => ({
  shared: noted(notes.filter((each) => !standsLast(each) && !isOfTurn(each))),
  turn: noted(notes.filter(isOfTurn)),
  last: notes.filter(standsLast).flatMap((each) => noted([each]))
})

/** A call's notes by their places. Every later prompt shows the notes of an output, so that they are rendered once. */
const placed = (notes: ReadonlyArray<Note>) => {
  const before = places.get(notes)
  if (before !== undefined) return before
  const rendered = place(notes)
  places.set(notes, rendered)
  return rendered
}

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
  const { last, shared, turn } = placed(notes)
  const at = turn.length === 0 ? messages.length : lastCalls(messages)
  const end = endsAsked ? messages.length - 1 : messages.length
  return turn.length === 0
    ? [...messages.slice(0, end), ...shared, ...messages.slice(end), ...last]
    : [...messages.slice(0, at), ...turn, ...messages.slice(at), ...shared, ...last]
}

/** Whether the model's own words, which stand in the prompt, are what the user got. */
const repeats = (words: ReadonlyArray<string>, text: string): boolean =>
  words.some((_, index) => {
    const said = words.slice(index).join("")
    return said !== "" && text.startsWith(said)
  })

const tell = (
  lane: "edge" | "core",
  window: ReadonlyArray<number>,
  find: Find,
  isMasked: IsMasked,
  offered: Offered
): Transcript => {
  const events: ReadonlyArray<ChoirEvent> = settled(eventsOf(window, find))
  const render = rendering(lane, events, isMasked, offered)
  const told = new Map<string, string>()
  const words: Array<string> = []
  let messages: Array<Message> = []
  let asked_rev = 0
  let endsAsked = false
  for (const event of events) {
    if (event.event_type === "ModelOutput") {
      const notes = event.payload.prompt?.notes ?? []
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
  return { messages, told, asked_rev, endsAsked }
}

const transcripts = new WeakMap<
  ReadonlyArray<number>,
  Transcript & { readonly find: Find; readonly isMasked: IsMasked; readonly offered: Offered }
>()

/** A lane's transcript, which is the same as long as its window is. */
export const transcriptOf = (
  lane: "edge" | "core",
  window: ReadonlyArray<number>,
  find: Find,
  isMasked: IsMasked,
  offered: Offered
): Transcript => {
  const before = transcripts.get(window)
  const isSame = before?.find === find && before.isMasked === isMasked && isSameOffer(before.offered, offered)
  if (isSame) return before
  const transcript = { ...tell(lane, window, find, isMasked, offered), find, isMasked, offered }
  transcripts.set(window, transcript)
  return transcript
}
