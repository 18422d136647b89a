/** The inputs of the host tools of long-term memory, as an agent sends them and choird decodes them. */
import { Schema } from "effect"
import { Sources } from "#schema/Source.ts"
import { AgentId, CallId, LaneId, NamedRev, Rev, SessionId } from "#schema/Ids.ts"
import { DocumentId, FactKey, FactText, MEMORY_HITS_MAX, MEMORY_QUERY_CHARS_MAX, MemoryHit } from "#schema/Memory.ts"

const Limit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: MEMORY_HITS_MAX }))
const Query = Schema.String.check(Schema.isNonEmpty(), Schema.isMaxLength(MEMORY_QUERY_CHARS_MAX))

/** choir.memory.search: stores `session` and `knowledge`. */
export const SearchInput = Schema.Struct({
  store: Schema.Literals(["session", "knowledge"]),
  /** `semantic` by vectors, `text` by words, `hybrid` by both. `session_detail` searches one session's chunks of any tier by words. */
  mode: Schema.Literals(["hybrid", "semantic", "text", "session_detail"]),
  query: Query,
  limit: Limit,
  session_id: Schema.optionalKey(SessionId),
  /** The agent whose memory is searched; absent: the caller. */
  agent: Schema.optionalKey(AgentId)
})
export type SearchInput = typeof SearchInput.Type

/** choir.memory.recall: what may matter to a message of the user, within a number of tokens; nothing where nothing fits well enough. */
export const RecallInput = Schema.Struct({
  text: Schema.String.check(Schema.isMaxLength(4000)),
  tokens_max: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4000 })),
  /** Chunks of the caller's session that reach this revision are left out: its prompt shows those events already. */
  shown_from: Rev
})
export type RecallInput = typeof RecallInput.Type

/** The best first; `cost_usd` of embedding the message. */
export const RecallAnswer = Schema.Struct({
  hits: Schema.Array(MemoryHit),
  ranked_by: Schema.Literals(["hybrid", "words"]),
  cost_usd: Schema.Finite
})
export type RecallAnswer = typeof RecallAnswer.Type

/** choir.memory.upsert: a fact; with a key the value that replaces the present one of this key. */
export const UpsertInput = Schema.Struct({
  key: Schema.optionalKey(FactKey),
  text: FactText,
  /** Whether the lane that writes was tainted. */
  untrusted: Schema.Boolean,
  /** Where the text came from that tainted it. */
  sources: Schema.optionalKey(Sources),
  /** The output that proposed the call. */
  rev: NamedRev,
  lane: LaneId,
  call_id: CallId
})
export type UpsertInput = typeof UpsertInput.Type

/** choir.memory.delete: ends the fact of a key, or of an id. */
export const DeleteInput = Schema.Union([Schema.Struct({ key: FactKey }), Schema.Struct({ id: DocumentId })])
export type DeleteInput = typeof DeleteInput.Type
