/**
 * A trial: one skill run to its end in a process of its own, apart from every agent, whose tools are answered from a record and act nowhere.
 * choird writes a task to the process's standard input and reads the outcome from its standard output.
 */
import { Schema } from "effect"
import { AgentConfig } from "./AgentConfig.ts"
import { CoreOutcome, ToolStatus } from "./Event.ts"
import { SecretName, SessionId } from "./Ids.ts"
import { SkillName, SkillSpec } from "./Skill.ts"
import { ToolManifest, ToolName } from "./Tool.ts"

/** The first argument that makes the agent's program run a trial; the second is an empty folder in place of the workspace. */
export const TRIAL_COMMAND = "trial"

/** Bytes of a task as JSON, the record included. */
export const TRIAL_TASK_BYTES_MAX = 16 * 1024 * 1024
/** Characters of what a trial says at its end, and of its result as JSON. */
export const TRIAL_TEXT_CHARS_MAX = 16_384
/** Effects of a trial that are named; more are counted. */
export const TRIAL_EFFECTS_MAX = 32

/** A call that an agent made, with its result. */
export const RecordedCall = Schema.Struct({
  tool: ToolName,
  input: Schema.Json,
  status: ToolStatus,
  summary: Schema.String,
  output: Schema.optionalKey(Schema.Json),
  untrusted: Schema.optionalKey(Schema.Boolean)
})
export type RecordedCall = typeof RecordedCall.Type

/** All that a trial knows. `manifests` are those of the agent's image. */
export const TrialTask = Schema.Struct({
  config: AgentConfig,
  secrets: Schema.Record(SecretName, Schema.RedactedFromValue(Schema.String)),
  skills: Schema.Array(SkillSpec),
  manifests: Schema.Array(ToolManifest),
  skill: SkillName,
  input: Schema.optionalKey(Schema.Json),
  record: Schema.Array(RecordedCall)
})
export type TrialTask = typeof TrialTask.Type

/** The end of a trial. Money is in USD, time in milliseconds. */
export const TrialOutcome = Schema.Struct({
  outcome: CoreOutcome,
  /** The job's last words, or why it ended. */
  summary: Schema.String.check(Schema.isMaxLength(TRIAL_TEXT_CHARS_MAX)),
  /** The skill's output; absent where there is none, or it is too long to compare. */
  output: Schema.optionalKey(Schema.Json),
  /** The states that the skill went through, in order. */
  path: Schema.Array(Schema.String),
  steps: Schema.Natural,
  tool_calls: Schema.Natural,
  /** Calls and transitions that the skill's present state refused. */
  refusals: Schema.Natural,
  /** Calls that the record has no answer to. */
  unanswered: Schema.Natural,
  /** The calls that would have acted outside the workspace, by tool, with how often. */
  external: Schema.Record(ToolName, Schema.Natural),
  tokens: Schema.Natural,
  cost_usd: Schema.optionalKey(Schema.Finite),
  duration_ms: Schema.Natural
})
export type TrialOutcome = typeof TrialOutcome.Type

/** The verdict of a rehearsal on one recorded run: the proposed skill beside today's skill on the same run, or a tool's on the calls of one session. */
export const RehearsedRun = Schema.Struct({
  session_id: SessionId,
  /** `not_rehearsed` where today's skill or program does not do on the record what it did then. */
  verdict: Schema.Literals(["better", "same", "worse", "not_rehearsed"]),
  /** Ends of sentences about the proposed skill, or the sentence why the run was not rehearsed; none for `same`. */
  reasons: Schema.Array(Schema.String)
})
export type RehearsedRun = typeof RehearsedRun.Type

/** A rehearsal. `problem` says why runs are missing from it, all of them where there is none. */
export const Rehearsal = Schema.Struct({
  /** Absent for a skill by an earlier Choir. */
  kind: Schema.optionalKey(Schema.Literals(["skill", "tool"])),
  runs: Schema.Array(RehearsedRun),
  /** Of a tool: the recorded calls on which its program and today's were run, or why they were not. */
  program: Schema.optionalKey(Schema.Struct({ calls: Schema.Natural, problem: Schema.optionalKey(Schema.String) })),
  cost_usd: Schema.Finite,
  problem: Schema.optionalKey(Schema.String)
})
export type Rehearsal = typeof Rehearsal.Type
