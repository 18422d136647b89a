/**
 * A session's events as chunks of words, one event after the other. A chunk is what one lane said and did in a row: turns of a talk, a sequence
 * of tool calls, a phase of a skill. Its words are the events' own. The state between two events is small and can be stored, so that a
 * session that resumes after its end is continued where it was left. Pure.
 */
import { createHash } from "node:crypto"
import { Schema } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { jobOf, LaneId } from "#schema/Ids.ts"
import { type Source, Sources } from "#schema/Source.ts"
import { CHARS_A_TOKEN, estimateTokens } from "#src/shared/model/usage.ts"
import { eventWords } from "./eventWords.ts"
import { withSources } from "#src/shared/session/sources.ts"
import { isTainted, noTaint, sourcesOf, Taint, taintAfter, taintAfterUnknown, toolOf } from "./laneTaint.ts"
import { splitText, tailOf } from "./textParts.ts"

/** Estimated tokens of a chunk with its header: from the first number on it ends where something new begins, and it never has more than the second. */
export const CHUNK_TOKENS_MIN = 250
export const CHUNK_TOKENS_MAX = 400
/** Tokens of a header. */
const HEADER_TOKENS_MAX = 40
/** Tokens of the event before, which a chunk begins with; of a longer one there is the end. */
const OVERLAP_TOKENS_MAX = 80
/** Silence after which a new chunk begins: what follows is seldom about the same. */
const SILENCE_MS = 1_800_000
/** Characters of the words of one event in a chunk of its own. */
const PART_CHARS = (CHUNK_TOKENS_MAX - HEADER_TOKENS_MAX) * CHARS_A_TOKEN
/** Characters of a name in a header or before its words. */
const NAME_CHARS_MAX = 60

/** The words of one event, or a part of them. */
const Piece = Schema.Struct({
  rev: Schema.Int,
  hash: Schema.String,
  at: Schema.String,
  part: Schema.Int,
  /** Empty where an event before has said the same. */
  line: Schema.String,
  untrusted: Schema.Boolean,
  /** Whether a person wrote it, to be trusted whatever the lane has read. */
  own: Schema.optionalKey(Schema.Literal(true)),
  /** Where the text came from that led to it. */
  sources: Schema.optionalKey(Sources)
})
type Piece = typeof Piece.Type

const Lane = Schema.Struct({
  open: Schema.Array(Piece),
  /** The end of the chunk before. */
  before: Schema.optionalKey(Piece),
  /** The digest of what its model said last, since the reply to the user says it again. */
  said: Schema.optionalKey(Schema.String),
  skill: Schema.optionalKey(Schema.String)
})
type Lane = typeof Lane.Type

/** Where the chunks of a session are. */
export const ChunkState = Schema.Struct({
  /** The events up to here are in chunks or in `lanes`. */
  rev: Schema.Int,
  /** Chunks so far. */
  count: Schema.Int,
  /** Whether any of its words came from outside. */
  untrusted: Schema.Boolean,
  /** Where the words came from. */
  sources: Schema.optionalKey(Sources),
  taint: Taint,
  lanes: Schema.Record(Schema.String, Lane)
})
export type ChunkState = typeof ChunkState.Type

export const noChunks: ChunkState = { rev: 0, count: 0, untrusted: false, taint: noTaint, lanes: {} }

export interface Chunk {
  readonly lane: LaneId
  /** The events whose words are new in it; the one that it overlaps with is cited and not counted. */
  readonly first_rev: number
  readonly last_rev: number
  /** Of the words of one event that take several chunks. */
  readonly part: number
  readonly source_events: ReadonlyArray<string>
  readonly index: number
  readonly text: string
  /** In hex. Equal for equal new words in the same lane's name, whatever their case, blanks and time. */
  readonly text_hash: string
  readonly untrusted: boolean
  readonly said_at: string
  readonly metadata: { readonly job?: string; readonly skill?: string; readonly sources?: ReadonlyArray<Source> }
}

export interface Chunked {
  readonly state: ChunkState
  readonly chunks: ReadonlyArray<Chunk>
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

/** The digest of words, whatever their case and blanks. */
export const wordsHash = (text: string): string =>
  sha256(text.normalize("NFKC").toLowerCase().replaceAll(/\s+/gu, " ").trim())

const laneOf = ({ lanes }: ChunkState, lane: string): Lane =>
  (Object.hasOwn(lanes, lane) ? lanes[lane] : undefined) ?? { open: [] }

const withLane = (state: ChunkState, name: string, lane: Lane): ChunkState => ({
  ...state,
  lanes: { ...state.lanes, [name]: lane }
})

const charsOf = (pieces: ReadonlyArray<Piece>): number => pieces.reduce((sum, { line }) => sum + line.length + 1, 0)

/** The tokens that a lane's open chunk has, with its header and overlap. */
const tokensOf = ({ before, open }: Lane): number =>
  HEADER_TOKENS_MAX + estimateTokens(charsOf(open) + (before === undefined ? 0 : before.line.length + 1))

/** With the names of day and month, by which people ask. */
const DAY = new Intl.DateTimeFormat("en-GB", {
  weekday: "long",
  day: "numeric",
  month: "long",
  year: "numeric",
  timeZone: "UTC"
})

/** When, and on which job and skill. */
export const headerOf = (at: string, { job, skill }: Chunk["metadata"]): string => {
  const place = [
    `${DAY.format(new Date(at)).replace(",", "")}, ${at.slice(11, 16)} UTC`,
    job === undefined ? "talk with the user" : `job ${job}`,
    ...(skill === undefined ? [] : [`skill ${skill}`])
  ]
  return `[${place.join(", ")}]`
}

/** The things that a chunk is made of beside its pieces. */
interface Place {
  readonly lane: LaneId
  readonly index: number
  readonly metadata: Chunk["metadata"]
}

/** The chunk of some pieces; none of those that only say something again. */
const chunkOf = (
  { index, lane, metadata }: Place,
  before: Piece | undefined,
  pieces: ReadonlyArray<Piece>
): Chunk | undefined => {
  const [first] = pieces
  const words = pieces.filter(({ line }) => line !== "")
  if (first === undefined || words.length === 0) return undefined
  const overlap = before === undefined ? [] : [before]
  const cited = [...overlap, ...pieces]
  const sources = cited.reduce<ReadonlyArray<Source>>((all, piece) => withSources(all, piece.sources ?? []), [])
  return {
    lane,
    first_rev: first.rev,
    last_rev: pieces.at(-1)?.rev ?? first.rev,
    part: first.part,
    source_events: [...new Set(cited.map(({ hash }) => hash))],
    index,
    text: [headerOf(first.at, metadata), ...[...overlap, ...words].map(({ line }) => line)].join("\n"),
    text_hash: wordsHash(words.map(({ line }) => line).join("\n")),
    untrusted: cited.some((piece) => piece.untrusted),
    said_at: first.at,
    metadata: sources.length === 0 ? metadata : { ...metadata, sources }
  }
}

/** The parts of an open chunk that are chunks, each with the end of the one before if it begins with that. */
const partsOf = (open: ReadonlyArray<Piece>, before: Piece | undefined) => {
  const isForeign = open.some(({ untrusted }) => untrusted)
  if (!isForeign) return [{ pieces: open, before: before?.untrusted === true ? undefined : before }]
  const [own, others] = [open.filter((piece) => piece.own === true), open.filter((piece) => piece.own !== true)]
  return [
    { pieces: own, before: undefined },
    { pieces: others, before }
  ]
}

/**
 * Ends a lane's open chunk. Of one with words from outside, what a person wrote is a chunk of its own, so that it keeps its trust.
 */
const closed = (state: ChunkState, name: LaneId): Chunked => {
  const lane = laneOf(state, name)
  if (lane.open.length === 0) return { state, chunks: [] }
  const { before, open, ...kept } = lane
  const job = jobOf(name)
  const metadata = { ...(job === undefined ? {} : { job }), ...(lane.skill === undefined ? {} : { skill: lane.skill }) }
  const said = open.findLast(({ line }) => line !== "")
  const end = said === undefined ? before : { ...said, line: tailOf(said.line, OVERLAP_TOKENS_MAX * CHARS_A_TOKEN) }
  const next = withLane(state, name, { ...kept, open: [], ...(end === undefined ? {} : { before: end }) })
  const chunks: Array<Chunk> = []
  for (const part of partsOf(open, before)) {
    const chunk = chunkOf({ lane: name, index: state.count + chunks.length, metadata }, part.before, part.pieces)
    if (chunk !== undefined) chunks.push(chunk)
  }
  const sources = chunks.reduce((all, chunk) => withSources(all, chunk.metadata.sources ?? []), state.sources ?? [])
  const untrusted = state.untrusted || chunks.some((chunk) => chunk.untrusted)
  const labels = { untrusted, ...(sources.length === 0 ? {} : { sources }) }
  return { state: { ...next, ...labels, count: state.count + chunks.length }, chunks }
}

/** Forgets the end of the chunk before: what follows is about something else. */
const apart = (state: ChunkState, name: LaneId): ChunkState => {
  const { before: _, ...lane } = laneOf(state, name)
  return withLane(state, name, lane)
}

/** How an event stands to the open chunk of its lane: it continues it, may begin another one, or has nothing to do with it. */
const breakBefore = (lane: Lane, event: ChoirEvent): "none" | "soft" | "hard" => {
  const last = lane.open.at(-1) ?? lane.before
  if (last !== undefined && Date.parse(event.created_at) - Date.parse(last.at) > SILENCE_MS) return "hard"
  switch (event.event_type) {
    case "CoreStarted":
      return "hard"
    case "SkillTransitionCommitted":
      return event.payload.from === "" ? "hard" : "soft"
    case "UserMsg":
    case "InjectedInstruction":
    case "ToolCallRequested":
      return "soft"
    default:
      return "none"
  }
}

/** Adds words to a lane's open chunk, or ends that one and begins the next. */
const added = ({ chunks, state }: Chunked, name: LaneId, piece: Piece): Chunked => {
  const lane = laneOf(state, name)
  const fits = tokensOf({ ...lane, open: [...lane.open, piece] }) <= CHUNK_TOKENS_MAX
  if (lane.open.length > 0 && (!fits || piece.part > 0)) {
    const ended = closed(state, name)
    return added({ state: ended.state, chunks: [...chunks, ...ended.chunks] }, name, piece)
  }
  // Alone with what came before it may be too much, or it continues its own first part.
  const ready = fits && piece.part === 0 ? state : apart(state, name)
  const now = laneOf(ready, name)
  return { state: withLane(ready, name, { ...now, open: [...now.open, piece] }), chunks }
}

const isFromUser = (event: ChoirEvent): boolean =>
  event.event_type === "UserMsg" || (event.event_type === "InjectedInstruction" && event.payload.source === "user")

/** The pieces of an event's words: several where they are too many for one chunk. */
const piecesOf = (before: ChunkState, after: Taint, event: ChoirEvent, hash: string): ReadonlyArray<Piece> => {
  const { created_at, event_type, lane, rev } = event
  const tool = event_type === "ToolResultCommitted" ? toolOf(before.taint, lane, event.payload.call_id) : ""
  const words = eventWords(event, tool)
  if (words === undefined) return []
  const tainted = isTainted(before.taint, lane) || isTainted(after, lane)
  const untrusted = isFromUser(event) ? event_type === "UserMsg" && event.payload.forwarded === true : tainted
  const labels = untrusted ? sourcesOf(after, lane) : []
  const own = isFromUser(event) && !untrusted ? ({ own: true } as const) : {}
  const piece = { rev, hash, at: created_at, untrusted, ...own, ...(labels.length === 0 ? {} : { sources: labels }) }
  const isRepeated = event_type !== "ModelOutput" && laneOf(before, lane).said === wordsHash(words.text)
  if (isRepeated) return [{ ...piece, part: 0, line: "" }]
  const speaker = words.speaker.slice(0, NAME_CHARS_MAX)
  return splitText(`${speaker}: ${words.text}`, PART_CHARS).map((line, part) => ({ ...piece, part, line }))
}

/** The state that a lane keeps of an event beside its words. */
const remembered = (state: ChunkState, event: ChoirEvent): ChunkState => {
  const lane = laneOf(state, event.lane)
  if (event.event_type === "ModelOutput" && event.payload.text !== undefined)
    return withLane(state, event.lane, { ...lane, said: wordsHash(event.payload.text) })
  if (event.event_type === "CoreStopped") {
    const { [event.lane]: _, ...lanes } = state.lanes
    return { ...state, lanes }
  }
  if (event.event_type !== "SkillTransitionCommitted") return state
  const { skill: _, ...kept } = lane
  const { ended, skill, to } = event.payload
  return withLane(
    state,
    event.lane,
    ended === undefined ? { ...kept, skill: `${skill} ${to}`.slice(0, NAME_CHARS_MAX) } : kept
  )
}

/** One more event, with its hash. */
export const chunkEvent = (before: ChunkState, event: ChoirEvent, hash: string): Chunked => {
  const { lane } = event
  const taint = taintAfter(before.taint, event)
  const pieces = piecesOf(before, taint, event, hash)
  const now = laneOf(before, lane)
  const kind = pieces.length === 0 ? "none" : breakBefore(now, event)
  const isFull = charsOf(now.open) >= CHUNK_TOKENS_MIN * CHARS_A_TOKEN
  let done: Chunked =
    kind === "hard" || (kind === "soft" && isFull) ? closed(before, lane) : { state: before, chunks: [] }
  if (kind === "hard") done = { ...done, state: apart(done.state, lane) }
  for (const piece of pieces) done = added(done, lane, piece)
  const ends =
    event.event_type === "CoreStopped" ||
    (event.event_type === "SkillTransitionCommitted" && event.payload.ended !== undefined)
  if (ends) {
    const last = closed(done.state, lane)
    done = { state: apart(last.state, lane), chunks: [...done.chunks, ...last.chunks] }
  }
  return { chunks: done.chunks, state: remembered({ ...done.state, rev: event.rev, taint }, event) }
}

/** One more event that only a later Choir knows. */
export const skipUnknown = (state: ChunkState, rev: number): ChunkState => ({
  ...state,
  rev,
  untrusted: true,
  taint: taintAfterUnknown(state.taint)
})

/** Ends all open chunks, since the session has ended. */
export const closeChunks = (state: ChunkState): Chunked => {
  let done: Chunked = { state, chunks: [] }
  for (const lane of Object.keys(state.lanes)) {
    const { chunks, state } = closed(done.state, LaneId.make(lane))
    done = { state, chunks: [...done.chunks, ...chunks] }
  }
  return done
}
