/**
 * The committed events: one tagged union, the only thing that changes a session. The hash chain over them is in
 * `src/shared/events/hashChain.ts` (D5); the fold that turns them into states is in `src/shared/session` (D2).
 */
import { Schema } from "effect"
import { ConfirmReason } from "./Approval.ts"
import { Continuation } from "./Continuation.ts"
import { CoreBudgets, CoreJobStart, JobTree } from "./Core.ts"
import {
  ApprovalId,
  CallId,
  GrantId,
  InboxId,
  IsoInstant,
  JobName,
  LaneId,
  ResourceName,
  Rev,
  Sha256,
  SignalId
} from "./Ids.ts"
import { Picture } from "./Picture.ts"
import { DocumentId } from "./Memory.ts"
import { Capabilities } from "./Capability.ts"
import { ExecutionClass } from "./SkillContract.ts"
import { SENT_FILES_MAX, SentFile } from "./SentFile.ts"
import { SkillTier } from "./SkillRegistryEntry.ts"
import { Acted, Sources } from "./Source.ts"
import { SUMMARY_LIMITS } from "./Summary.ts"
import { LockRequest, ToolEffect } from "./Tool.ts"
import { Writeback } from "./Writeback.ts"

/** The version of the events that an agent commits. The log may begin with older ones. */
export const EVENT_VERSION = 2

/** The random bytes of an event, in lowercase hex; without them nobody can guess a payload from its digest (D52). */
export const Salt = Schema.String.check(Schema.isPattern(/^[0-9a-f]{32}$/u))

/** The chain covers a payload of version 1 itself, and of version 2 its salted digest. */
const ofItsVersion = Schema.makeFilter(
  (event: object) =>
    "v" in event && event.v === 1 ? !("salt" in event || "payload_digest" in event) : "salt" in event,
  { message: "an event of version 2 has a salt, and one of version 1 has none" }
)

const event = <const T extends string, P extends Schema.Top>(event_type: T, payload: P) =>
  Schema.Struct({
    v: Schema.Literals([1, EVENT_VERSION]),
    rev: Rev,
    event_type: Schema.Literal(event_type),
    lane: LaneId,
    payload,
    created_at: IsoInstant,
    salt: Schema.optionalKey(Salt),
    /** Of a reduced payload: the digest that the chain has, of the payload as it was committed. Agents never send it. */
    payload_digest: Schema.optionalKey(Sha256)
  }).check(ofItsVersion)

export const Attachment = Schema.Struct({
  path: Schema.String,
  name: Schema.String,
  mime: Schema.String,
  bytes: Schema.Natural,
  /** Of one that prompts show: the agent fills it in. */
  picture: Schema.optionalKey(Picture),
  /** Of a voice message whose words are in the message's text: the model that heard them, and the length of the recording. */
  transcribed: Schema.optionalKey(
    Schema.Struct({
      model: Schema.String,
      seconds: Schema.optionalKey(Schema.Natural),
      cost_usd: Schema.optionalKey(Schema.Finite)
    })
  )
})

/** A message of the user, committed when edge is idle; the inbox row is its identity. */
export const UserMsg = Schema.Struct({
  inbox_id: InboxId,
  dm: ResourceName,
  text: Schema.String,
  attachments: Schema.Array(Attachment),
  /** Somebody else wrote it, so that it taints edge (D31). */
  forwarded: Schema.optionalKey(Schema.Boolean),
  /** The writers of words in it that are not the person's own, as far as they are known. */
  writers: Schema.optionalKey(Sources),
  /** It came with files that somebody else may have made: what reads them is labelled `file`, as edge is where a prompt shows one. */
  received: Schema.optionalKey(Schema.Boolean),
  /** The cost of its transcriptions. */
  cost_usd: Schema.optionalKey(Schema.Finite),
  /** Its sender wants to hear the answer. */
  speak: Schema.optionalKey(Schema.Boolean),
  /** The name of its writer, where several people talk to the agent: prompts and memory show it before the text. */
  writer: Schema.optionalKey(ResourceName),
  /** The session before took it and reached a limit before its answer, so that this one answers it. */
  carried: Schema.optionalKey(Schema.Boolean)
})

/**
 * Tokens and money of one model call: the greater of what was reported and what was estimated. `cache_read` and `cache_write` are the tokens
 * of `input_tokens` that came out of the provider's cache and went into it; `reasoning` those of `output_tokens` that nobody reads.
 */
export const Usage = Schema.Struct({
  input_tokens: Schema.Natural,
  output_tokens: Schema.Natural,
  cache_read: Schema.optionalKey(Schema.Natural),
  cache_write: Schema.optionalKey(Schema.Natural),
  reasoning: Schema.optionalKey(Schema.Natural),
  cost_usd: Schema.optionalKey(Schema.Finite)
})
export type Usage = typeof Usage.Type

/** Why a model call failed. `message` is written for the user. */
export const ModelError = Schema.Struct({
  kind: Schema.Literals(["rate_limited", "http", "timeout", "unreachable", "malformed", "too_large", "content_filter"]),
  message: Schema.String,
  status: Schema.optionalKey(Schema.Natural),
  retry_after_ms: Schema.optionalKey(Schema.Natural)
})
export type ModelError = typeof ModelError.Type

/**
 * A structured tool call. `input` is the parsed object, or the raw text when it does not parse. `refused` says why it is one too many, or too
 * large, to run: its result is `rejected` with these words.
 */
export const ModelToolCall = Schema.Struct({
  call_id: CallId,
  name: Schema.String,
  input: Schema.Json,
  refused: Schema.optionalKey(Schema.String)
})
export type ModelToolCall = typeof ModelToolCall.Type

/** The long-term memory that stood unasked in a prompt; `tokens` are those of its note. */
const Recalled = Schema.Struct({
  rows: Schema.Array(DocumentId),
  tokens: Schema.Natural,
  ranked_by: Schema.Literals(["hybrid", "words"]),
  latency_ms: Schema.Natural,
  cost_usd: Schema.optionalKey(Schema.Finite)
})
export type Recalled = typeof Recalled.Type

/**
 * The parts of a prompt beside the lane's events: the newest revision that the prompt shows, its new notes, each under what it is about,
 * and, with the lane's first call, the environment that its system text ends with. Later prompts repeat all of it in its place.
 */
const Prompted = Schema.Struct({
  rev: Rev,
  notes: Schema.optionalKey(Schema.Array(Schema.Struct({ about: Schema.String, text: Schema.String }))),
  environment: Schema.optionalKey(Schema.String),
  /** The rows of long-term memory that a note of this call shows, and what finding them cost. */
  recalled: Schema.optionalKey(Recalled),
  /** Milliseconds before the first call of a job in an epoch in which no agent ran: they do not count in the job's time. */
  off_ms: Schema.optionalKey(Schema.Natural)
})
export type Prompted = typeof Prompted.Type

/**
 * `judge` judges the result of a skill. `interrupted` is what a call may have cost whose answer nobody waited for, whatever it was for. Both
 * move no lane.
 */
export const ModelOutput = Schema.Struct({
  call_id: CallId,
  purpose: Schema.Literals(["turn", "report", "compaction", "summary", "interrupted", "judge"]),
  model: Schema.String,
  text: Schema.optionalKey(Schema.String),
  tool_calls: Schema.Array(ModelToolCall),
  finish_reason: Schema.String,
  continuation: Schema.optionalKey(Continuation),
  usage: Usage,
  latency_ms: Schema.Natural,
  error: Schema.optionalKey(ModelError),
  prompt: Schema.optionalKey(Prompted),
  /** Of a judge: the call whose result it judges. */
  judges: Schema.optionalKey(CallId)
})

/** Characters of a name in an event that a state keeps: of a tool, a model, a skill, its state or a field of it. None that may be given is as long. */
export const NAME_CHARS_MAX = 128
const Name = Schema.String.check(Schema.isMaxLength(NAME_CHARS_MAX))

/** A valid call that waits for its locks. */
export const ToolCallRequested = Schema.Struct({
  call_id: CallId,
  tool: Name,
  input: Schema.Json,
  effect: ToolEffect,
  locks: Schema.Array(LockRequest),
  skill: Schema.optionalKey(Schema.String),
  /** The reason why it runs only after a person approved it (D31). */
  confirm: Schema.optionalKey(ConfirmReason)
})

/** The locks are granted; the tool runs after this. For an external tool this is the intent that choird must have (D3). */
/** Paths of the workspace in one event by which files are labelled. */
export const WRITTEN_PATHS_MAX = 128
const WrittenPaths = Schema.Array(Schema.String).check(Schema.isMaxLength(WRITTEN_PATHS_MAX))

export const ToolCallCommitted = Schema.Struct({
  call_id: CallId,
  locks: Schema.Array(LockRequest),
  dirty: Schema.optionalKey(Schema.Boolean),
  /** Of a call that needed a person's approval: which one it got. */
  approval_id: Schema.optionalKey(ApprovalId),
  /** The standing grant that the approval came from. */
  grant_id: Schema.optionalKey(GrantId),
  /** The only paths of the workspace that the call may change, each with all below it; absent where it may change any. */
  writes: Schema.optionalKey(WrittenPaths),
  /** The result says in `changed` what the call changed, of whatever there is; while it runs, it may be writing anything. */
  compares: Schema.optionalKey(Schema.Boolean)
})

export const ToolStatus = Schema.Literals([
  "success",
  "error",
  "timeout",
  "rejected",
  "cancelled",
  "unknown_after_crash"
])
export type ToolStatus = typeof ToolStatus.Type

/** Capabilities that a skill needs and its contract or its agent's grants lack; the call, or the beginning of the skill, was refused for them. */
const DeniedSkill = Schema.Struct({ skill: Schema.String, capabilities: Capabilities })

export const ToolResultCommitted = Schema.Struct({
  call_id: CallId,
  status: ToolStatus,
  summary: Schema.String,
  output: Schema.optionalKey(Schema.Json),
  pictures: Schema.optionalKey(Schema.Array(Picture)),
  artifact_ref: Schema.optionalKey(Schema.String),
  /** The runtime's own words for the model, such as which files go to the user. */
  notes: Schema.optionalKey(Schema.Array(Schema.String)),
  allowed: Schema.optionalKey(
    Schema.Struct({ tools: Schema.Array(Schema.String), transitions: Schema.Array(Schema.String) })
  ),
  denied: Schema.optionalKey(DeniedSkill),
  untrusted: Schema.optionalKey(Schema.Boolean),
  /** Where its text came from; of a read of the workspace, where what may be in there came from. */
  sources: Schema.optionalKey(Sources),
  /** Of a call that acted outside, or may have. */
  acted: Schema.optionalKey(Acted),
  dirty: Schema.optionalKey(Schema.Boolean),
  /** Of a lane that had read text from outside: the paths that it made or changed, where the call's `writes`, a comparison or a kept result tells them. */
  changed: Schema.optionalKey(WrittenPaths),
  duration_ms: Schema.Natural,
  /** The cost of the call itself, where its price is known. */
  cost_usd: Schema.optionalKey(Schema.Finite),
  reads: Schema.optionalKey(Schema.Array(Schema.Struct({ path: Schema.String, sha256: Sha256 }))),
  writes: Schema.optionalKey(
    Schema.Array(Schema.Struct({ path: Schema.String, before: Schema.optionalKey(Sha256), after: Sha256 }))
  )
})

/** A payload that is reduced: the event's revision, and the salted digest of what is left of the payload. */
export const Forgotten = Schema.Struct({ rev: Rev, new_digest: Sha256 })
export type Forgotten = typeof Forgotten.Type

/** `forget` lists earlier events of this session whose payloads are reduced (D52). */
export const MemoryWriteCommitted = Schema.Struct({
  call_id: CallId,
  store: Schema.String,
  action: Schema.Literals(["insert", "update", "delete", "forget"]),
  key: Schema.optionalKey(Schema.String),
  document_id: Schema.optionalKey(Schema.String),
  forgotten: Schema.optionalKey(Schema.Array(Forgotten))
})

export const CoreStarted = Schema.Struct({
  job_id: CallId,
  job_name: JobName,
  start: CoreJobStart,
  model: Name,
  budgets: CoreBudgets,
  /** The skill of edge within whose step it was started. */
  in_skill: Schema.optionalKey(Name),
  /** The job of the same name that a model's error ended: this one continues with its conversation and its counters, as edge tells it. */
  resumes: Schema.optionalKey(Schema.Struct({ job_id: CallId, instruction: Schema.String }))
})

export const CoreOutcome = Schema.Literals(["completed", "error", "cancelled", "budget", "stuck"])
export type CoreOutcome = typeof CoreOutcome.Type

/** The work of a job that ended. `files` are the first that it changed, of `files_changed`; `started_at` and `earlier_ms` give its time. */
export const WorkDone = Schema.Struct({
  steps: Schema.Natural,
  tool_calls: Schema.Natural,
  files_read: Schema.Natural,
  files_changed: Schema.Natural,
  files: Schema.optionalKey(Schema.Array(Schema.String)),
  commands: Schema.Natural,
  tokens: Schema.Natural,
  cost_usd: Schema.optionalKey(Schema.Finite),
  started_at: IsoInstant,
  earlier_ms: Schema.optionalKey(Schema.Natural)
})
export type WorkDone = typeof WorkDone.Type

export const CoreStopped = Schema.Struct({
  job_id: CallId,
  job_name: JobName,
  outcome: CoreOutcome,
  summary: Schema.String,
  result: Schema.optionalKey(Schema.Json),
  usage: Usage,
  /** A model's error ended it, so that it can be resumed with what is left of its wall time. */
  resumable: Schema.optionalKey(Schema.Struct({ left_ms: Schema.Natural })),
  /** Its work over all its lives, as the fold counted it. */
  work: Schema.optionalKey(WorkDone),
  /** Where the text from outside came from that it had read. */
  sources: Schema.optionalKey(Sources),
  /** Its own account of its work; `orphan` where its profile wanted one and it gave none. */
  writeback: Schema.optionalKey(Writeback),
  orphan: Schema.optionalKey(Schema.Boolean),
  /** Of a job with a branch: what it leaves there. */
  tree: Schema.optionalKey(JobTree)
})

/** Text put into a lane's context; `control_plane` is choird's own words. `refused` says why it was not, and the lane never sees it. */
export const InjectedInstruction = Schema.Struct({
  signal_id: Schema.optionalKey(SignalId),
  target: LaneId,
  source: Schema.Literals(["user", "edge", "control_plane"]),
  content: Schema.String,
  refused: Schema.optionalKey(Schema.String),
  /** Of a skill that a person or its time ordered. */
  denied: Schema.optionalKey(DeniedSkill)
})

/**
 * Marks a job as cancelled, or ends edge and with it the session. With `turn` it ends one turn of edge instead. For `no_such_job` and
 * `no_such_turn` nothing was there to end; for `jobs_run` no new conversation began.
 */
export const Cancelled = Schema.Struct({
  signal_id: Schema.optionalKey(SignalId),
  target: LaneId,
  by: Schema.Literals(["user", "edge", "operator", "budget", "stop"]),
  reason: Schema.String,
  /** The revision of the turn's message, or of what its report tells of; 0 when that turn had ended before. */
  turn: Schema.optionalKey(Rev),
  /** At the end of a session by a limit: the message of the open turn, which the next session answers. */
  carried: Schema.optionalKey(InboxId),
  /** The open points that the session leaves: calls that already ran for that message, and jobs that ended with it. */
  open: Schema.optionalKey(
    Schema.Array(Schema.String.check(Schema.isMaxLength(SUMMARY_LIMITS.entry_chars))).check(
      Schema.isMaxLength(SUMMARY_LIMITS.entries)
    )
  )
})

/** The outcome of one assertion of a skill; `detail` says what was found. */
export const Asserted = Schema.Struct({ statement: Schema.String, ok: Schema.Boolean, detail: Schema.String })
export type Asserted = typeof Asserted.Type

/**
 * A lane's skill begins (`from` is empty), moves to another state, or ends (`ended`; `to` is empty where it ends in no state of its
 * own). It holds everything that follows from it, so that the fold needs no skill text. `step` counts its model calls.
 */
export const SkillTransitionCommitted = Schema.Struct({
  skill: Name,
  from: Name,
  to: Name,
  on: Schema.String,
  step: Schema.Natural,
  /** Why the control plane moved it, where no model asked for it. */
  reason: Schema.optionalKey(Schema.String),
  ended: Schema.optionalKey(Schema.Literals(["completed", "failed", "cancelled"])),
  /** The input at its start. */
  input: Schema.optionalKey(Schema.Json),
  /** The result of the state that is left; at the end, of the skill. */
  output: Schema.optionalKey(Schema.Json),
  /** New values of STATE fields; at the beginning, those of the input. */
  writes: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json).check(Schema.isPropertyNames(Name))),
  /** Results of the skill that were not taken before this one. */
  attempt: Schema.optionalKey(Schema.Natural),
  /** The worker's own confidence in its result. */
  confidence: Schema.optionalKey(Schema.Finite),
  asserted: Schema.optionalKey(Schema.Array(Asserted)),
  /** The verdict of a judge, and the ModelOutput that holds it. */
  judged: Schema.optionalKey(Schema.Struct({ score: Schema.Finite, model: Schema.String, call_id: CallId })),
  /** Of the beginning of a job's skill by a person's order. */
  signal_id: Schema.optionalKey(SignalId),
  /** At the beginning: the trigger that began it, and what the skill was. */
  trigger: Schema.optionalKey(Schema.String),
  version: Schema.optionalKey(Schema.String),
  execution_class: Schema.optionalKey(ExecutionClass),
  tier: Schema.optionalKey(SkillTier)
})

/** A message to the user. Exactly one `reply` belongs to each UserMsg. */
export const AgentMessage = Schema.Struct({
  kind: Schema.Literals(["reply", "notice", "report"]),
  text: Schema.optionalKey(Schema.String),
  file: Schema.optionalKey(Schema.Struct({ path: Schema.String, as: Schema.String })),
  /** Files that a call left for the user, with the text as their caption. */
  files: Schema.optionalKey(Schema.Array(SentFile).check(Schema.isMaxLength(SENT_FILES_MAX))),
  /** The cost of its sound. */
  cost_usd: Schema.optionalKey(Schema.Finite),
  in_reply_to: Schema.optionalKey(InboxId),
  /**
   * The runtime's own words instead of an answer: `again` may work later, `final` needs somebody to change something, and `stopped`
   * is a turn that the user ended.
   */
  failed: Schema.optionalKey(Schema.Literals(["again", "final", "stopped"])),
  /** The job that it is about. A notice with it is a line on the job's work so far, which gives way to the next one. */
  job: Schema.optionalKey(JobName),
  /** The log's own words on that job: people read them below the text, and models never do. */
  facts: Schema.optionalKey(Schema.String)
})

/** Something that a lane keeps knowing; `source_event` is the hash of the event that says so. A pinned one gives way to no other. */
export const MemoryFact = Schema.Struct({
  key: Schema.String,
  value: Schema.String,
  source_event: Schema.optionalKey(Sha256),
  pinned: Schema.optionalKey(Schema.Boolean)
})
export type MemoryFact = typeof MemoryFact.Type

/** A structured change of a lane's reference summary. Every part may be absent. */
export const MemoryDelta = Schema.Struct({
  mode: Schema.Literals(["append", "overwrite"]),
  summary_update: Schema.optionalKey(Schema.String),
  add_references: Schema.optionalKey(Schema.Array(Schema.String)),
  remove_references: Schema.optionalKey(Schema.Array(Schema.String)),
  add_fact: Schema.optionalKey(MemoryFact),
  remove_fact: Schema.optionalKey(MemoryFact)
})
export type MemoryDelta = typeof MemoryDelta.Type

/** Revisions that stay in a window although a compaction passes them: an output whose calls wait for a person, and its results so far. */
export const KEPT_REVS_MAX = 129

/** Characters of what a summary quotes of text from outside: some 300 tokens. */
export const REST_CHARS_MAX = 1200

/**
 * `words` are the newest messages of people among what left the lane's window, as they wrote them; absent where they stay as they were. `kept`
 * are revisions up to the boundary that stay in the window. `split`: the delta was written from trusted text alone, and replaces a summary that was
 * not. `rest` quotes what else left, until the next compaction; with `ended` nothing from outside is left in the window, and the label ends.
 * With `trusted` a person took all such text for trusted, and nothing leaves. `sources` are where text of the delta came from that an earlier session had read.
 */
export const CompactionCommitted = Schema.Struct({
  signal_id: Schema.optionalKey(SignalId),
  delta: MemoryDelta,
  boundary_rev: Rev,
  words: Schema.optionalKey(Schema.Array(Schema.String)),
  kept: Schema.optionalKey(Schema.Array(Rev).check(Schema.isMaxLength(KEPT_REVS_MAX))),
  split: Schema.optionalKey(
    Schema.Struct({
      rest: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(REST_CHARS_MAX))),
      ended: Schema.optionalKey(Schema.Boolean),
      trusted: Schema.optionalKey(Schema.Boolean)
    })
  ),
  sources: Schema.optionalKey(Sources)
})

/** A committed event as it is stored, sent, chained and printed. */
export const ChoirEvent = Schema.Union([
  event("UserMsg", UserMsg),
  event("ModelOutput", ModelOutput),
  event("ToolCallRequested", ToolCallRequested),
  event("ToolCallCommitted", ToolCallCommitted),
  event("ToolResultCommitted", ToolResultCommitted),
  event("MemoryWriteCommitted", MemoryWriteCommitted),
  event("CoreStarted", CoreStarted),
  event("CoreStopped", CoreStopped),
  event("InjectedInstruction", InjectedInstruction),
  event("Cancelled", Cancelled),
  event("SkillTransitionCommitted", SkillTransitionCommitted),
  event("AgentMessage", AgentMessage),
  event("CompactionCommitted", CompactionCommitted)
])
export type ChoirEvent = typeof ChoirEvent.Type

/** The types that this program knows. */
export const EVENT_TYPES: ReadonlySet<string> = new Set(
  ChoirEvent.members.map(({ fields }) => fields.event_type.literal)
)

/** Whether an event is one of those that this program knows, by its version and type. */
export const isKnownEvent = <E extends { readonly v: number; readonly event_type: string }>(
  event: E
): event is Extract<E, ChoirEvent> => event.v <= EVENT_VERSION && EVENT_TYPES.has(event.event_type)

/** An event that a later Choir wrote: its version, type or payload is not known here. It is kept, chained and printed as it is (D53). */
export const OpaqueEvent = Schema.Struct({
  v: Schema.Natural,
  rev: Rev,
  event_type: Schema.String,
  lane: Schema.String,
  payload: Schema.Json,
  created_at: Schema.String,
  salt: Schema.optionalKey(Salt),
  payload_digest: Schema.optionalKey(Sha256)
})
export type OpaqueEvent = typeof OpaqueEvent.Type

/** In a column of two bytes. */
const LATER_VERSION_MAX = 32_767

/**
 * An event that an agent of a later Choir sends: the envelope is the known one, and its version or type is not. Agents never send the
 * digest of another payload (D53).
 */
const LaterEvent = Schema.Struct({
  v: Schema.Int.check(Schema.isBetween({ minimum: 2, maximum: LATER_VERSION_MAX })),
  rev: Rev,
  event_type: Schema.String.check(Schema.isPattern(/^[A-Z][A-Za-z]{0,63}$/u)),
  lane: LaneId,
  payload: Schema.Json,
  created_at: IsoInstant,
  salt: Salt
}).check(
  Schema.makeFilter((event) => !isKnownEvent(event), {
    message: "an event of a known version and type is of its schema"
  })
)

/** An event as an agent sends it. */
export const SentEvent = Schema.Union([ChoirEvent, LaterEvent])
export type SentEvent = typeof SentEvent.Type
export type EventType = ChoirEvent["event_type"]

export type EventOf<T extends EventType> = Extract<ChoirEvent, { readonly event_type: T }>
export type PayloadOf<T extends EventType> = EventOf<T>["payload"]

/** An event before the arbiter gives it its place and its time. */
export type EventDraft = { [T in EventType]: Pick<EventOf<T>, "event_type" | "lane" | "payload"> }[EventType]
