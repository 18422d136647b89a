/** The tools of core jobs: edge starts, instructs, cancels and lists them; a job reports. */
import { Clock, Effect, Result, Schema } from "effect"
import { BUNDLE_TEXTS, CoreReport, CoreSkill, JobBranch, ToolConstraints } from "#schema/Core.ts"
import { JobName } from "#schema/Ids.ts"
import { AgentType, JobPool } from "#schema/JobProfile.ts"
import { SkillName } from "#schema/Skill.ts"
import { ProposalKind } from "#schema/ProposedChange.ts"
import { PROPOSE, shownName, ToolName } from "#schema/Tool.ts"
import { Writeback } from "#schema/Writeback.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { Worktrees } from "#src/agent/git/Worktrees.ts"
import { worktreeOf } from "#src/agent/git/worktreeGit.ts"
import { type ProfileBook, ProfileRegistry } from "#src/agent/image/ProfileRegistry.ts"
import { CORE_WRITEBACK } from "#src/shared/session/writtenBack.ts"
import type { CoreLane } from "#src/shared/session/State.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import type { JobTool } from "#src/agent/arbiter/Command.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { EXCERPTS_FROM_MAX, type FindExcerpts } from "./excerpts.ts"
import { type ControlTool, decodeInput, invalidInput, type Tool } from "./Tool.ts"

/** Characters of a core job's task or of an instruction to it. */
const CORE_TASK_CHARS_MAX = 100_000

/** A tool by the name that models see, or by the canonical one. */
const OfferedName = Schema.String.check(
  Schema.makeFilter((name) => toolsNamed(name).length > 0 || "it is not the name of a tool, such as choir-fs-read")
)

/** The tools that a name means: one, or all that models call by it. */
const toolsNamed = (name: string): ReadonlyArray<ToolName> => {
  const canonical = name.replaceAll("-", ".")
  if (canonical === PROPOSE) return ProposalKind.literals.map((kind) => ToolName.make(`${PROPOSE}.${kind}`))
  return Schema.is(ToolName)(canonical) ? [canonical] : []
}

const Constraints = Schema.Struct({
  allowed_tools: Schema.optionalKey(Schema.Array(OfferedName).annotate({ description: "Default: all" })),
  time_budget_ms: ToolConstraints.fields.time_budget_ms
})

const Bundle = Schema.Struct({
  ...BUNDLE_TEXTS,
  excerpts_from: Schema.optionalKey(
    Schema.Array(Schema.NonEmptyString)
      .check(Schema.isMaxLength(EXCERPTS_FROM_MAX))
      .annotate({ description: "Paths or hashes you read: it sees the results" })
  )
})

/** Only where the image has profiles. */
const KINDS = {
  agent_type: Schema.optionalKey(AgentType.annotate({ description: "Its type: limits its tools, time and number" })),
  pool: Schema.optionalKey(JobPool.annotate({ description: "Without agent_type the best type of the pool is taken" })),
  skill_refs: Schema.optionalKey(
    Schema.Array(SkillName).check(Schema.isMaxLength(64)).annotate({ description: "The only skills that it may begin" })
  )
}

const SpawnInput = Schema.Struct({
  job_name: JobName.annotate({ description: "Such as refactor-auth" }),
  task_spec: Schema.NonEmptyString.check(Schema.isMaxLength(CORE_TASK_CHARS_MAX)).annotate({
    description: "Goal, paths, constraints, how to verify, form and language of the result"
  }),
  context_bundle: Schema.optionalKey(Bundle.annotate({ description: "What it needs to know" })),
  tool_constraints: Schema.optionalKey(Constraints.annotate({ description: "Its limits" })),
  output_schema: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Json).annotate({ description: "JSON Schema of its result" })
  ),
  skill: Schema.optionalKey(CoreSkill.annotate({ description: "A skill to run" })),
  ...KINDS,
  branch: Schema.optionalKey(JobBranch.annotate({ description: "Its git branch, new or not, in its own worktree" })),
  verbosity: Schema.optionalKey(
    Schema.Literals(["quiet", "normal", "detailed"]).annotate({ description: "Default normal" })
  ),
  resume: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "Continue the job of this name after a model's error" })
  )
})

/** The input as models see it: hardly a job needs another verbosity, and quotations are facts or results that are handed over. Both are accepted all the same. */
const { excerpts: _excerpts, ...BUNDLE } = Bundle.fields
const { agent_type, branch, pool, skill_refs, verbosity: _verbosity, ...SPAWN_FIELDS } = SpawnInput.fields
const OFFERED = {
  ...SPAWN_FIELDS,
  context_bundle: Schema.optionalKey(Schema.Struct(BUNDLE).annotate({ description: "What it needs to know" }))
}
const offered = (hasProfiles: boolean, hasBranches: boolean) =>
  Schema.Struct({
    ...OFFERED,
    ...(hasProfiles ? { agent_type, pool, skill_refs } : {}),
    ...(hasBranches ? { branch } : {})
  })

/** The types as a model reads them. */
const typesText = (profiles: ProfileBook): string =>
  [...profiles.values()]
    .slice(0, TYPES_TOLD_MAX)
    .map(
      ({ agent_type, description, pool }) =>
        ` ${agent_type} (${pool})${description === undefined ? "" : `: ${description}`};`
    )
    .join("")
/** Types that the description of the tool names. */
const TYPES_TOLD_MAX = 16

/** The parts of its start that a resumed job keeps. */
const KEPT = [
  "context_bundle",
  "tool_constraints",
  "output_schema",
  "skill",
  "verbosity",
  "agent_type",
  "pool",
  "skill_refs",
  "branch"
] as const

/** choir.core.spawn: starts a core job with the task that edge curated. `tools` are those that jobs have; models read of branches in a repository alone. */
export const coreSpawn = Effect.fnUntraced(function* (tools: () => ReadonlyArray<JobTool>, findExcerpts: FindExcerpts) {
  const profiles = yield* ProfileRegistry
  const settings = yield* AgentSettings
  const worktrees = yield* Worktrees
  const decode = decodeInput(SpawnInput)
  const spawn: ControlTool = {
    llm: llmView(
      "choir.core.spawn",
      `Start a core job; its end is reported later.${profiles.size === 0 ? "" : ` Types:${typesText(profiles)}`}`,
      offered(profiles.size > 0, worktrees.offered)
    ),
    lanes: "edge",
    command: Effect.fn("coreSpawn.command")(function* (raw, call_id) {
      const { resume = false, ...input } = yield* decode(raw)
      const model = settings.current().config.core_llm
      if (resume) {
        const given = KEPT.filter((key) => input[key] !== undefined)
        if (given.length > 0)
          return yield* Effect.fail(
            invalidInput(`a resumed job keeps what it was started with: leave out ${given.join(", ")}`)
          )
        return { type: "ResumeCore", call_id, job_name: input.job_name, instruction: input.task_spec, model }
      }
      const { context_bundle, output_schema, skill, tool_constraints, verbosity, ...task } = input
      const { excerpts_from = [], ...bundle } = context_bundle ?? { facts: [], excerpts: [], constraints: [] }
      const allowed_tools = (tool_constraints?.allowed_tools ?? []).flatMap(toolsNamed)
      const handed = findExcerpts(excerpts_from, task.job_name, allowed_tools)
      if (Result.isFailure(handed)) return yield* Effect.fail(invalidInput(handed.failure))
      return {
        type: "Spawn",
        call_id,
        model,
        tools: tools(),
        start: {
          ...task,
          context_bundle: { ...bundle, ...(handed.success.length === 0 ? {} : { handed: handed.success }) },
          tool_constraints: {
            allowed_tools,
            time_budget_ms: tool_constraints?.time_budget_ms ?? 0
          },
          verbosity: verbosity ?? "normal",
          ...(task.branch === undefined ? {} : { worktree: worktreeOf(input.job_name) }),
          ...(output_schema === undefined ? {} : { output_schema }),
          ...(skill === undefined ? {} : { skill })
        }
      }
    })
  }
  return spawn
})

const InjectInput = Schema.Struct({
  job_name: JobName.annotate({ description: "Its name" }),
  content: Schema.NonEmptyString.check(Schema.isMaxLength(CORE_TASK_CHARS_MAX)).annotate({
    description: "Clear by itself"
  })
})
const decodeInject = decodeInput(InjectInput)

/** choir.core.inject: appends an instruction to a running job; nothing is rewritten and no budget is reset. */
export const coreInject: ControlTool = {
  llm: llmView("choir.core.inject", "Give a running job a further instruction.", InjectInput),
  lanes: "edge",
  command: (raw, call_id) => Effect.map(decodeInject(raw), (input) => ({ type: "InjectCore", call_id, ...input }))
}

const CancelInput = Schema.Struct({
  job_name: JobName.annotate({ description: "Its name" }),
  reason: Schema.optionalKey(Schema.String.annotate({ description: "Why" }))
})
const decodeCancel = decodeInput(CancelInput)

/** choir.core.cancel: ends a running job. */
export const coreCancel: ControlTool = {
  llm: llmView("choir.core.cancel", "Cancel a job; its work so far stays.", CancelInput),
  lanes: "edge",
  command: (raw, call_id) =>
    Effect.map(decodeCancel(raw), ({ job_name, reason }) => ({
      type: "CancelCore",
      call_id,
      job_name,
      reason: reason ?? "cancelled by edge"
    }))
}

/** A running job as edge's model reads it. */
const listed = ({ job_name, question, spent, started_at, state, step, work }: CoreLane, now_ms: number) => ({
  job_name,
  state,
  step,
  started_at,
  last_tool: shownName(work.last_tool),
  tokens: work.earlier.tokens + spent.input_tokens + spent.output_tokens,
  minutes: Math.round((work.earlier.ms + Math.max(0, now_ms - Date.parse(started_at))) / 60_000),
  ...(question === undefined ? {} : { waits_for_answer: true })
})

/** choir.core.list: the running jobs, as the fold knows them. */
export const coreList = Effect.map(Arbiter, ({ state }): Tool => ({
  llm: llmView("choir.core.list", "List the running jobs.", Schema.Struct({})),
  effect: "none",
  lanes: "edge",
  prepare: () =>
    Effect.succeed({
      locks: [],
      timeout_ms: CONTROL_TIMEOUT_MS,
      run: () =>
        Effect.map(Clock.currentTimeMillis, (now_ms) => {
          const jobs = [...state().cores.values()].map((core) => listed(core, now_ms))
          return { status: "success", summary: `${jobs.length} running`, output: { jobs } }
        })
    })
}))

/** A tool that only asks the control plane or the fold. */
export const CONTROL_TIMEOUT_MS = 20_000

const ReportInput = Schema.Struct({
  ...CoreReport.fields,
  kind: CoreReport.fields.kind.annotate({ description: "need_info asks the user" }),
  text: CoreReport.fields.text.annotate({ description: "What to tell or to ask, short" })
})
const decodeReport = decodeInput(ReportInput)

/**
 * choir.core.report: a job reports progress or asks the user something. The call itself is the record: edge sees the newest report
 * in its prompts, people see it in the list of jobs, and a question opens a report turn.
 */
export const coreReport: Tool = {
  llm: llmView(
    "choir.core.report",
    "Tell how the task goes, or ask the user; the answer comes as a further instruction.",
    ReportInput
  ),
  effect: "none",
  lanes: "core",
  prepare: (raw) =>
    Effect.map(decodeReport(raw), ({ kind }) => ({
      locks: [],
      timeout_ms: CONTROL_TIMEOUT_MS,
      run: () =>
        Effect.succeed({
          status: "success",
          summary: kind === "need_info" ? "the user is being asked" : `${kind} reported`
        })
    }))
}

const decodeWriteback = decodeInput(Writeback)

/** choir.core.writeback: a job's account of its work before it ends. The call itself is the record; a later one replaces it. */
export const coreWriteback: Tool = {
  llm: llmView(CORE_WRITEBACK, "Give an account of your work before you end. A job with a type must.", Writeback),
  effect: "none",
  lanes: "core",
  prepare: (raw) =>
    Effect.map(decodeWriteback(raw), ({ progress, status }) => ({
      locks: [],
      timeout_ms: CONTROL_TIMEOUT_MS,
      run: () => Effect.succeed({ status: "success", summary: `written back: ${status}, ${progress} %` })
    }))
}
