/**
 * A session's state as JSON, so that a recovery folds only what came after it (docs/protocol.md, Snapshots). choird writes
 * it and agents take it over; a reader that cannot read one folds the whole log instead.
 */
import { Result, Schema } from "effect"
import { ConfirmReason } from "#schema/Approval.ts"
import { CoreBudgets } from "#schema/Core.ts"
import { MemoryFact } from "#schema/Event.ts"
import { CallId, InboxId, IsoInstant, JobName, LaneId, ResourceName, Rev } from "#schema/Ids.ts"
import { CoreState, EdgeState } from "#schema/Lane.ts"
import { STATE_FIELDS_MAX } from "#schema/SkillContract.ts"
import { Sources } from "#schema/Source.ts"
import { ToolEffect } from "#schema/Tool.ts"
import { CHANGED_FILES_MAX } from "./jobWork.ts"
import type { SessionState } from "./State.ts"
import { SUMMARY_FACTS_MAX, SUMMARY_REFERENCES_MAX, SUMMARY_WORDS_MAX, WRITTEN_FILES_MAX } from "./memory.ts"
import { REPORTS_OWED_MAX } from "./State.ts"
import { WINDOW_REVS_MAX } from "./lanes.ts"

/** Signals that the fold remembers to drop what comes twice; choird sends far fewer before they are acknowledged. */
export const SIGNALS_REMEMBERED_MAX = 1000
/** Different calls of a lane whose repetitions are counted. */
export const REPETITIONS_REMEMBERED_MAX = 16

/**
 * The version of the fold that made a state. It grows with every change of what the fold makes of the same events, or of how a state is written, so that
 * no state of another fold is ever continued. The golden histories of the tests turn red when it should have grown.
 */
export const FOLD_VERSION = 17

const Call = Schema.Struct({
  call_id: CallId,
  name: Schema.String,
  digest: Schema.String,
  stage: Schema.Literals(["proposed", "requested", "committed"]),
  effect: Schema.UndefinedOr(ToolEffect),
  confirm: Schema.optionalKey(ConfirmReason),
  sources: Schema.optionalKey(Sources),
  output_rev: Rev,
  committed_rev: Rev,
  report: Schema.UndefinedOr(
    Schema.Struct({ rev: Rev, isQuestion: Schema.Boolean, isPlan: Schema.optionalKey(Schema.Boolean) })
  ),
  writeback_rev: Schema.optionalKey(Rev),
  commits: Schema.optionalKey(Schema.Boolean),
  staged: Schema.optionalKey(Schema.Boolean),
  writes: Schema.optionalKey(Schema.Array(Schema.String)),
  compares: Schema.optionalKey(Schema.Boolean)
})

const references = Schema.Array(Schema.String).check(Schema.isMaxLength(SUMMARY_REFERENCES_MAX))

const Skill = Schema.Struct({
  name: Schema.String,
  state: Schema.String,
  step: Schema.Natural,
  violations: Schema.Natural,
  violation_rev: Rev,
  started_rev: Rev,
  entered_rev: Rev,
  fields: Schema.Array(Schema.Struct({ name: Schema.String, rev: Rev })).check(Schema.isMaxLength(STATE_FIELDS_MAX)),
  attempt: Schema.Natural,
  judged_rev: Rev
})

const memory = {
  calls: Schema.Array(Call),
  step: Schema.Natural,
  window: Schema.Array(Rev).check(Schema.isMaxLength(WINDOW_REVS_MAX)),
  boundary: Rev,
  summary: Schema.Struct({
    summary: Schema.String,
    facts: Schema.Array(MemoryFact).check(Schema.isMaxLength(SUMMARY_FACTS_MAX)),
    referenced_sessions: references,
    referenced_events: references,
    files: Schema.Array(Schema.String).check(Schema.isMaxLength(WRITTEN_FILES_MAX)),
    words: Schema.Array(Schema.String).check(Schema.isMaxLength(SUMMARY_WORDS_MAX)),
    rest: Schema.optionalKey(Schema.Struct({ text: Schema.String, sources: Sources }))
  }),
  seen: Schema.ReadonlyMap(Schema.String, Schema.String),
  written: Schema.Array(Schema.String).check(Schema.isMaxLength(WRITTEN_FILES_MAX)),
  environment: Schema.String,
  tainted: Schema.Boolean,
  sources: Sources,
  label: Schema.optional(Schema.Struct({ from_rev: Rev, rev: Rev, at: IsoInstant, mixed: Schema.Boolean })),
  repetitions: Schema.Array(Schema.Struct({ call: Schema.String, result: Schema.String, times: Schema.Natural })).check(
    Schema.isMaxLength(REPETITIONS_REMEMBERED_MAX)
  ),
  skill: Schema.UndefinedOr(Skill)
}

const Report = Schema.Struct({
  kind: Schema.Literals(["stopped", "question"]),
  job_id: CallId,
  job_name: JobName,
  rev: Rev,
  inbox_id: Schema.UndefinedOr(InboxId)
})

const Turn = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("turn"), inbox_id: InboxId, dm: ResourceName, rev: Rev }),
  Schema.Struct({ kind: Schema.Literal("report"), report: Report, rev: Rev })
])

const Edge = Schema.Struct({
  ...memory,
  state: EdgeState,
  turn: Schema.UndefinedOr(Turn),
  parked: Schema.UndefinedOr(
    Schema.Struct({ turn: Turn, calls: Schema.Array(Call), step: Schema.Natural, output_rev: Rev })
  ),
  output_rev: Rev
})

const Moment = Schema.Struct({ rev: Rev, at: IsoInstant })

const Work = Schema.Struct({
  files_read: Schema.Natural,
  changed: Schema.Array(Schema.String).check(Schema.isMaxLength(CHANGED_FILES_MAX)),
  commands: Schema.Natural,
  last_tool: Schema.String,
  earlier: Schema.Struct({ tokens: Schema.Natural, cost_usd: Schema.Finite, ms: Schema.Natural })
})

const Core = Schema.Struct({
  ...memory,
  state: CoreState,
  job_id: CallId,
  job_name: JobName,
  lane: LaneId,
  started_rev: Rev,
  began_rev: Rev,
  started_at: IsoInstant,
  model: Schema.String,
  budgets: CoreBudgets,
  tool_calls: Schema.Natural,
  injections: Schema.Natural,
  settled_rev: Rev,
  injection_rev: Rev,
  output: Schema.Struct({
    rev: Rev,
    isFinal: Schema.Boolean,
    isSuperseded: Schema.Boolean,
    isCorrection: Schema.Boolean
  }),
  report_rev: Rev,
  plan: Schema.UndefinedOr(Moment),
  writeback_rev: Rev,
  told: Schema.UndefinedOr(Moment),
  work: Work,
  question: Schema.UndefinedOr(Schema.Struct({ rev: Rev, asked_at: IsoInstant })),
  spent: Schema.Struct({ input_tokens: Schema.Natural, output_tokens: Schema.Natural, cost_usd: Schema.Finite }),
  cancelled: Schema.UndefinedOr(Schema.String),
  skill_end_rev: Rev,
  inbox_id: Schema.UndefinedOr(InboxId),
  in_skill: Schema.UndefinedOr(Schema.String)
})

/** The written form of a state: undefined is null, a bigint its digits, a map its entries. */
const State: Schema.Codec<SessionState, unknown> = Schema.toCodecJson(
  Schema.Struct({
    rev: Rev,
    edge: Edge,
    cores: Schema.ReadonlyMap(JobName, Core),
    resumable: Schema.ReadonlyMap(JobName, Schema.Struct({ core: Core, stopped_rev: Rev })),
    spent: Schema.Struct({ tokens: Schema.Natural, cost_usd: Schema.Finite, tool_calls: Schema.Natural }),
    last_inbox_id: Schema.BigInt,
    queued_inbox_id: Schema.BigInt,
    signals: Schema.Array(Schema.String).check(Schema.isMaxLength(SIGNALS_REMEMBERED_MAX)),
    reports: Schema.Array(Report).check(Schema.isMaxLength(REPORTS_OWED_MAX)),
    message_steps: Schema.ReadonlyMap(InboxId, Schema.Natural),
    workspace_tainted: Schema.Boolean,
    workspace_sources: Sources,
    workspace_received: Schema.Boolean,
    workspace_files: Schema.ReadonlyMap(Schema.String, Sources),
    past_sources: Sources,
    ended: Schema.UndefinedOr(Schema.String),
    carried: Schema.optionalKey(InboxId)
  })
)

const encode = Schema.encodeUnknownResult(State)
const decode = Schema.decodeUnknownResult(State, { onExcessProperty: "error" })

/** The text of a state, or why it has none. */
export const encodeState = (state: SessionState): Result.Result<string, string> =>
  Result.mapBoth(encode(state), { onSuccess: (value) => JSON.stringify(value), onFailure: ({ message }) => message })

/** The state that a parsed text of this fold holds at a revision, or why it holds none. */
export const decodeState = (rev: number, fold_version: number, value: unknown): Result.Result<SessionState, string> => {
  if (fold_version !== FOLD_VERSION)
    return Result.fail(`it was made by fold ${fold_version}, and this is fold ${FOLD_VERSION}`)
  return Result.flatMap(
    Result.mapError(decode(value), ({ message }) => message),
    (state) => (state.rev === rev ? Result.succeed(state) : Result.fail(`it is at revision ${state.rev}`))
  )
}
