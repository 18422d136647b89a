/** An agent's long-term memory: chunks of its sessions, summaries of old ones, and facts (docs/memory.md). */
import { Schema } from "effect"
import { Sources } from "./Source.ts"
import { AgentId, CallId, IsoInstant, LaneId, NamedRev, Rev, SessionId } from "./Ids.ts"

/** Characters of a fact's key, and of its text. */
export const FACT_KEY_CHARS_MAX = 120
export const FACT_TEXT_CHARS_MAX = 4000
/** Characters of a query, and hits of one answer. */
export const MEMORY_QUERY_CHARS_MAX = 500
export const MEMORY_HITS_MAX = 50
export const MEMORY_HITS = 8

/** The row of a chunk, a summary or a fact. */
export const DocumentId = Schema.String.check(Schema.isUUID()).pipe(Schema.brand("DocumentId"))
export type DocumentId = typeof DocumentId.Type

/** `mid_term` are chunks of the newest sessions; of older ones there are summaries, and detail that is found only by their session. */
export const MemoryTier = Schema.Literals(["mid_term", "long_term_summary", "long_term_detail"])
export type MemoryTier = typeof MemoryTier.Type

/** `user.preference.theme`: words in lowercase, joined by dots. */
export const FactKey = Schema.String.check(
  Schema.isMaxLength(FACT_KEY_CHARS_MAX),
  Schema.isPattern(/^[a-z0-9][a-z0-9_-]*(?:\.[a-z0-9][a-z0-9_-]*)*$/u, {
    message: "a key is lowercase words joined by dots, such as user.preference.theme"
  })
).pipe(Schema.brand("FactKey"))
export type FactKey = typeof FactKey.Type

export const FactText = Schema.String.check(
  Schema.isTrimmed({ message: "no spaces at the ends" }),
  Schema.isNonEmpty(),
  Schema.isMaxLength(FACT_TEXT_CHARS_MAX)
)

/** The origin of a fact. `rev` is of the event whose call wrote it; an operator or a person at a chat has neither. */
export const FactSource = Schema.Struct({
  kind: Schema.Literals(["agent", "operator", "person"]),
  session_id: Schema.optionalKey(SessionId),
  rev: Schema.optionalKey(Rev),
  call_id: Schema.optionalKey(CallId),
  lane: Schema.optionalKey(LaneId),
  /** As in the audit log, such as `operator` or `gateway:phone`. */
  who: Schema.optionalKey(Schema.String),
  /** Of an untrusted one: where the text came from that its writer had read. */
  sources: Schema.optionalKey(Sources)
})
export type FactSource = typeof FactSource.Type

/** A fact, also one that is over: `valid_to` is when another value of its key replaced it, or when it was deleted. */
export const Fact = Schema.Struct({
  id: DocumentId,
  key: Schema.NullOr(FactKey),
  text: Schema.String,
  /** Something from outside led to it: it is data and never an instruction (D31). */
  untrusted: Schema.Boolean,
  source: FactSource,
  created_at: IsoInstant,
  valid_to: Schema.NullOr(IsoInstant),
  superseded_by: Schema.NullOr(DocumentId)
})
export type Fact = typeof Fact.Type

/** A chunk of a session, a summary or a fact that answers a query, with its place: for chunks and summaries the session and revisions. */
export const MemoryHit = Schema.Struct({
  id: DocumentId,
  store: Schema.Literals(["session", "knowledge"]),
  tier: Schema.optionalKey(MemoryTier),
  key: Schema.optionalKey(FactKey),
  session_id: Schema.optionalKey(SessionId),
  lane: Schema.optionalKey(LaneId),
  first_rev: Schema.optionalKey(Rev),
  last_rev: Schema.optionalKey(Rev),
  /** When it was said, or when the fact was written. */
  said_at: IsoInstant,
  text: Schema.String,
  untrusted: Schema.optionalKey(Schema.Boolean),
  /** Of an untrusted one: where its text came from. */
  sources: Schema.optionalKey(Sources),
  /** Of another agent's memory: whose it is. Always `untrusted` (D40). */
  agent: Schema.optionalKey(AgentId),
  /** The origin of a fact. */
  source: Schema.optionalKey(FactSource)
})
export type MemoryHit = typeof MemoryHit.Type

/** `hybrid` compares words and vectors, `words` words alone: none are configured, or their model does not answer. */
export const MemoryAnswer = Schema.Struct({
  hits: Schema.Array(MemoryHit),
  ranked_by: Schema.Literals(["hybrid", "words"])
})
export type MemoryAnswer = typeof MemoryAnswer.Type

/** The words of an order to forget; shorter ones are in too much. */
const FORGOTTEN_WORDS_CHARS_MIN = 3
const FORGOTTEN_WORDS_CHARS_MAX = 500

/**
 * An order to forget: a fact with all its values and the turns that they come from; words, wherever they stand; or a part of a session. All that
 * derives from it goes too.
 */
export const Forget = Schema.Union([
  Schema.Struct({ type: Schema.Literal("fact"), key: FactKey }),
  Schema.Struct({ type: Schema.Literal("document"), id: DocumentId }),
  Schema.Struct({
    type: Schema.Literal("words"),
    words: Schema.String.check(
      Schema.isTrimmed({ message: "no spaces at the ends" }),
      Schema.isMinLength(FORGOTTEN_WORDS_CHARS_MIN, {
        message: `give at least ${FORGOTTEN_WORDS_CHARS_MIN} characters`
      }),
      Schema.isMaxLength(FORGOTTEN_WORDS_CHARS_MAX),
      // The database holds no such character, nor looks for one.
      Schema.isPattern(/^[^\0]*$/u, { message: "no NUL characters" })
    )
  }),
  Schema.Struct({ type: Schema.Literal("span"), session_id: SessionId, first_rev: NamedRev, last_rev: NamedRev })
])
export type Forget = typeof Forget.Type

/** A session that an order to forget reaches. */
export const ForgetReach = Schema.Struct({
  session_id: SessionId,
  events: Schema.Natural,
  /** Its file is not changed; `choirctl session delete` removes it. */
  archived: Schema.Boolean,
  /** Its agent is stopped for a moment. */
  running: Schema.Boolean
})
export type ForgetReach = typeof ForgetReach.Type

/** The reach of an order to forget, before it is given. */
export const ForgetPlan = Schema.Struct({
  facts: Schema.Array(Schema.Struct({ id: DocumentId, key: Schema.NullOr(FactKey), text: Schema.String })),
  sessions: Schema.Array(ForgetReach)
})
export type ForgetPlan = typeof ForgetPlan.Type

/** The receipt of an order that was carried out. It names no word of what went. */
export const ForgetReceipt = Schema.Struct({
  agent_id: AgentId,
  forgotten_at: IsoInstant,
  facts: Schema.Natural,
  events: Schema.Natural,
  /** Chunks and summaries of sessions; those of events that stay are made again. */
  chunks: Schema.Natural,
  /** Vectors of facts, chunks and summaries. */
  vectors: Schema.Natural,
  /** Texts of messages and results that queues still held. */
  texts: Schema.Natural,
  sessions: Schema.Array(SessionId),
  /** Whether the agent was stopped for a moment. */
  restarted: Schema.Boolean,
  /** Copies that stay, in words, with what removes them. */
  left: Schema.Array(Schema.String)
})
export type ForgetReceipt = typeof ForgetReceipt.Type
