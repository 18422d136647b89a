/** The task that edge hands to a core job, and the reports of a core job. */
import { Effect, Schema } from "effect"
import { CallId, JobName, Sha256 } from "./Ids.ts"
import { AgentType, JobPool } from "./JobProfile.ts"
import { SkillName } from "./Skill.ts"
import { ToolName } from "./Tool.ts"

/** Jobs of a session that run at once, whatever its configuration says. */
export const CORE_JOBS_MAX = 64

const none = <A>(): Effect.Effect<ReadonlyArray<A>> => Effect.succeed([])

/** A result of one of edge's own calls, as its prompt showed it, and the versions of files that it read. */
export const Excerpt = Schema.Struct({
  call_id: CallId,
  tool: Schema.String,
  text: Schema.String,
  reads: Schema.optionalKey(Schema.Array(Schema.Struct({ path: Schema.String, sha256: Sha256 })))
})
export type Excerpt = typeof Excerpt.Type

/** The parts of a job's context that edge writes down itself. */
export const BUNDLE_TEXTS = {
  facts: Schema.Array(Schema.String)
    .annotate({ description: "Facts" })
    .pipe(Schema.withDecodingDefaultKey(none<string>())),
  excerpts: Schema.Array(Schema.String)
    .annotate({ description: "Quotations" })
    .pipe(Schema.withDecodingDefaultKey(none<string>())),
  constraints: Schema.Array(Schema.String)
    .annotate({ description: "Rules to keep" })
    .pipe(Schema.withDecodingDefaultKey(none<string>()))
}

/** The facts that edge found relevant; a core job never sees the user's messages. */
export const ContextBundle = Schema.Struct({
  ...BUNDLE_TEXTS,
  /** Results that edge handed over, so that the job need not ask for them again. */
  handed: Schema.optionalKey(Schema.Array(Excerpt))
})
export type ContextBundle = typeof ContextBundle.Type

export const ToolConstraints = Schema.Struct({
  /** Empty allows every tool of a core lane. */
  allowed_tools: Schema.Array(ToolName).pipe(Schema.withDecodingDefaultKey(none<ToolName>())),
  /** Shortens the job's wall time; 0 leaves the budget as it is. */
  time_budget_ms: Schema.Natural.annotate({
    description: "Milliseconds until it is stopped"
  }).pipe(Schema.withDecodingDefaultKey(Effect.succeed(0)))
})

/** The skill that a job runs from its first step to its end, and what it begins with. */
export const CoreSkill = Schema.Struct({
  name: SkillName.annotate({ description: "Its name" }),
  input: Schema.optionalKey(Schema.Json.annotate({ description: "By its schema" }))
})

/** A branch of the workspace's repository on which a job works. */
export const JobBranch = Schema.String.check(
  Schema.isPattern(/^(?!.*(?:\.\.|\/\/|\.lock(?:\/|$)|\/\.|\.$|\/$))[A-Za-z0-9][A-Za-z0-9._/-]{0,99}$/u, {
    message: "a branch is 1 to 100 characters: letters, digits, '.', '_', '-' and '/'"
  })
)

/** The work that a job leaves on its branch: its newest commit, the commits that the workspace lacks, and where its lines and those of others do not fit together. */
export const JobTree = Schema.Struct({
  branch: JobBranch,
  commit: Schema.String,
  commits: Schema.Natural,
  /** Files that are not committed; their worktree is kept. */
  uncommitted: Schema.Natural,
  conflicts: Schema.Array(Schema.Struct({ with: Schema.String, paths: Schema.Array(Schema.String) }))
})
export type JobTree = typeof JobTree.Type

/** The curated task of a core job. */
export const CoreJobStart = Schema.Struct({
  /** The call id of the spawn that started it. */
  job_id: CallId,
  job_name: JobName,
  task_spec: Schema.NonEmptyString,
  context_bundle: ContextBundle,
  tool_constraints: ToolConstraints,
  output_schema: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
  skill: Schema.optionalKey(CoreSkill),
  verbosity: Schema.Literals(["quiet", "normal", "detailed"]),
  /** The profile that it was started by, and its pool. */
  agent_type: Schema.optionalKey(AgentType),
  pool: Schema.optionalKey(JobPool),
  /** The only skills that it may begin; absent are all. */
  skill_refs: Schema.optionalKey(Schema.Array(SkillName).check(Schema.isMaxLength(64))),
  /** Its git branch, and the folder of the workspace in which that is checked out. */
  branch: Schema.optionalKey(JobBranch),
  worktree: Schema.optionalKey(Schema.String)
})
export type CoreJobStart = typeof CoreJobStart.Type

/** One step of a job's plan and how far it is. */
export const PlanStep = Schema.Struct({
  step: Schema.NonEmptyString.check(Schema.isMaxLength(200)).annotate({ description: "What to do" }),
  state: Schema.Literals(["open", "doing", "done", "dropped"]).annotate({ description: "How far it is" })
})
export type PlanStep = typeof PlanStep.Type

/** How a job goes, beside its words. */
const progress = {
  percent: Schema.optionalKey(
    Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 100 })).annotate({
      description: "Part of the task that is done"
    })
  ),
  phase: Schema.optionalKey(
    Schema.NonEmptyString.check(Schema.isMaxLength(100)).annotate({ description: "What is under way" })
  ),
  focus: Schema.optionalKey(
    Schema.NonEmptyString.check(Schema.isMaxLength(200)).annotate({ description: "What you look at" })
  ),
  plan: Schema.optionalKey(
    Schema.Array(PlanStep).check(Schema.isMaxLength(32)).annotate({ description: "The whole plan" })
  )
}

/** A job's report by `choir.core.report`. */
export const CoreReport = Schema.Struct({
  kind: Schema.Literals(["progress", "plan", "thought_summary", "tool_proposal", "need_info", "partial_result"]),
  text: Schema.NonEmptyString.check(Schema.isMaxLength(8192)),
  ...progress
})
export type CoreReport = typeof CoreReport.Type

/** The limits a job was started with, so that a replay needs no config (R23). */
export const CoreBudgets = Schema.Struct({
  max_steps: Schema.Natural,
  max_tool_calls: Schema.Natural,
  wall_time_ms: Schema.Natural,
  max_injections: Schema.Natural,
  /** Of its profile: tokens over all its lives. */
  max_tokens: Schema.optionalKey(Schema.Natural)
})
export type CoreBudgets = typeof CoreBudgets.Type
