/**
 * A trial in a container of an agent, beside it: one call of one tool, one skill from its start to its end, or the program of one tool on recorded
 * inputs, in a workspace of its own and outside of every session. choird sends the task over the container's socket and runs host tools for it; the agent's program sends the
 * outcome. Each message is one line of JSON.
 */
import { Schema } from "effect"
import { AgentConfig } from "./AgentConfig.ts"
import { CoreOutcome, ToolStatus } from "./Event.ts"
import { AgentId, CallId, SecretName, SessionId } from "./Ids.ts"
import { SkillName, SkillSpec } from "./Skill.ts"
import { SkillFile } from "./SkillOffer.ts"
import { Acted, Sources } from "./Source.ts"
import { ToolEffect, ToolManifest, ToolName } from "./Tool.ts"

/** The flag that makes the agent's program run a trial instead of an agent. */
export const TRIAL_FLAG = "--trial"
/** Bytes of a message: a task, with the skill and the input, or an outcome. */
export const TRIAL_MESSAGE_BYTES_MAX = 8 * 1024 * 1024
/** Characters of a text in a report, and of an output as JSON; longer ones are cut or left out. */
export const REPORT_TEXT_CHARS_MAX = 4000
export const REPORT_OUTPUT_CHARS_MAX = 512 * 1024
/** Lines of a skill's report. */
export const REPORT_LINES_MAX = 500
/** Recorded inputs on which a program is run. */
export const PROGRAM_CALLS_MAX = 8
/** The longest run of a program on one of them. */
export const PROGRAM_MS_MAX = 30_000
/** Characters of an output of a program, as JSON; longer ones are left out. */
export const TRIAL_OUTPUT_CHARS_MAX = 64 * 1024
/** Files that a report names. */
export const REPORT_FILES_MAX = 200

const task = {
  agent_id: AgentId,
  /** Of nothing but this trial: its id is in names and in the call ids. */
  session_id: SessionId,
  config: AgentConfig,
  secrets: Schema.Record(SecretName, Schema.RedactedFromValue(Schema.String)),
  input: Schema.optionalKey(Schema.Json)
} as const

const ToolTask = Schema.Struct({
  type: Schema.Literal("tool"),
  ...task,
  tool: ToolName,
  /** A person agreed that it acts outside. */
  confirmed: Schema.Boolean
})
export type ToolTask = typeof ToolTask.Type

const SkillTask = Schema.Struct({
  type: Schema.Literal("skill"),
  ...task,
  skills: Schema.Array(SkillSpec),
  skill: SkillName,
  /** The other files of the skill's folder, where it is not the image's. */
  references: Schema.optionalKey(Schema.Array(SkillFile))
})
export type SkillTask = typeof SkillTask.Type

/** A program that is in no image. */
const WrittenProgram = Schema.Struct({
  manifest: ToolManifest,
  /** The path of one of the files. */
  executable: Schema.String,
  files: Schema.Array(SkillFile)
})

/** The program of a tool, run on inputs one after the other; it is the image's where none is written here. It gets no secret and no network. */
const ProgramTask = Schema.Struct({
  type: Schema.Literal("program"),
  ...task,
  tool: ToolName,
  program: Schema.optionalKey(WrittenProgram),
  inputs: Schema.Array(Schema.Json).check(Schema.isMaxLength(PROGRAM_CALLS_MAX))
})
export type ProgramTask = typeof ProgramTask.Type

export const ContainedTask = Schema.Union([ToolTask, SkillTask, ProgramTask])
export type ContainedTask = typeof ContainedTask.Type

const Text = Schema.String.check(Schema.isMaxLength(REPORT_TEXT_CHARS_MAX))

/** The outcome of one call. `asks` was not run: it acts outside, and a person has to agree first. */
export const TriedTool = Schema.Union([
  Schema.Struct({ type: Schema.Literal("asks"), why: Text }),
  Schema.Struct({
    type: Schema.Literal("ran"),
    effect: ToolEffect,
    status: ToolStatus,
    summary: Text,
    output: Schema.optionalKey(Schema.Json),
    /** Where its text came from, if that is outside. */
    sources: Schema.optionalKey(Sources),
    /** Of a call that acted outside, or may have; absent, it is sure that it did not. */
    acted: Schema.optionalKey(Acted),
    duration_ms: Schema.Natural
  })
])
export type TriedTool = typeof TriedTool.Type

/** One line of what a skill did, in order. */
export const ReportLine = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("phase"),
    /** Empty where the skill ended in no state of its own. */
    state: Schema.String,
    on: Schema.String,
    ended: Schema.optionalKey(Schema.Literals(["completed", "failed", "cancelled"])),
    reason: Schema.optionalKey(Text),
    /** The worker's own confidence in the result. */
    confidence: Schema.optionalKey(Schema.Finite),
    checks: Schema.optionalKey(Schema.Array(Schema.Struct({ statement: Text, ok: Schema.Boolean, detail: Text }))),
    verdict: Schema.optionalKey(Schema.Struct({ score: Schema.Finite, model: Schema.String }))
  }),
  Schema.Struct({
    type: Schema.Literal("call"),
    tool: Schema.String,
    input: Text,
    status: ToolStatus,
    summary: Text,
    /** It would have acted outside, and was not run. */
    held_back: Schema.Boolean,
    sources: Schema.optionalKey(Sources)
  })
])
export type ReportLine = typeof ReportLine.Type

/** A skill that was tried. Money is in USD, time in milliseconds. */
export const TriedSkill = Schema.Struct({
  skill: SkillName,
  outcome: CoreOutcome,
  summary: Text,
  output: Schema.optionalKey(Schema.Json),
  lines: Schema.Array(ReportLine),
  /** Lines beyond those. */
  left_out: Schema.Natural,
  /** Requests to a model, those of the judge among them. */
  model_calls: Schema.Natural,
  judge_calls: Schema.Natural,
  tokens: Schema.Natural,
  cost_usd: Schema.optionalKey(Schema.Finite),
  /** Paths of the trial's own workspace that it wrote. */
  changed: Schema.Array(Schema.String),
  duration_ms: Schema.Natural
})
export type TriedSkill = typeof TriedSkill.Type

/** From choird. */
export const ToTrial = Schema.Union([
  Schema.Struct({ type: Schema.Literal("task"), task: ContainedTask }),
  Schema.Struct({
    type: Schema.Literal("host_reply"),
    call_id: CallId,
    reply: Schema.Union([
      Schema.Struct({ status: ToolStatus, output: Schema.Json }),
      Schema.Struct({ refused: Schema.String, reason: Schema.String })
    ])
  })
])
export type ToTrial = typeof ToTrial.Type

/** From the agent's program in the container; choird checks all of it. */
export const FromTrial = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("host_call"),
    tool_name: ToolName,
    call_id: CallId,
    input: Schema.Json
  }),
  Schema.Struct({ type: Schema.Literal("tried_tool"), tried: TriedTool }),
  Schema.Struct({ type: Schema.Literal("tried_skill"), tried: TriedSkill }),
  /** An outcome for each input, in their order. */
  Schema.Struct({
    type: Schema.Literal("tried_program"),
    tried: Schema.Array(TriedTool).check(Schema.isMaxLength(PROGRAM_CALLS_MAX))
  }),
  /** Why there is no outcome. */
  Schema.Struct({ type: Schema.Literal("failed"), reason: Text })
])
export type FromTrial = typeof FromTrial.Type
