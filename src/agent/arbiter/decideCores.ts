/** The decisions that start, instruct, cancel and end core jobs. Each has its effect and its result in one batch. */
import { Result } from "effect"
import type { Budgets } from "#schema/Config.ts"
import type { CoreJobStart, JobTree } from "#schema/Core.ts"
import type { JobProfile } from "#schema/JobProfile.ts"
import type { EventDraft, PayloadOf } from "#schema/Event.ts"
import { CallId, coreLane, EDGE, type JobName } from "#schema/Ids.ts"
import { shownName, type ToolName } from "#schema/Tool.ts"
import { askFacts, endFacts, planLine, progressLine, waitLine } from "#src/shared/session/jobText.ts"
import { workDone } from "#src/shared/session/jobWork.ts"
import { messageOf, stepsFor } from "#src/shared/session/messageSteps.ts"
import { reportOf } from "#src/shared/session/jobReport.ts"
import { waitOfJob } from "#src/shared/session/providerWait.ts"
import type { CoreLane, OpenCall, PendingReport, SessionState } from "#src/shared/session/State.ts"
import { owesWriteback, writtenBack } from "#src/shared/session/writtenBack.ts"
import { withSources } from "#src/shared/session/sources.ts"
import { reportsFull, workspaceSources } from "./decideCalls.ts"
import { jobTriggers } from "./skillTriggers.ts"
import { triggered } from "./decideTriggers.ts"
import { profiled } from "./decideProfiles.ts"
import { endedWithLane, skillRules } from "./decideSkills.ts"
import { beginning } from "./startSkill.ts"
import {
  accept,
  controlBatch,
  type Decision,
  type Command,
  type Find,
  reject,
  type Rejected,
  type Situation
} from "./Command.ts"
import type { SkillBook } from "#src/agent/image/SkillRegistry.ts"

/** Edge's calls that run and change something. A spawn waits for them (D30). */
export const edgeWrites = (state: SessionState): ReadonlyArray<OpenCall> =>
  state.edge.calls.filter((call) => call.stage === "committed" && call.effect !== "none")

/** The tools of a job: those that it is to have, and where a skill starts it no others than the skill's step allows. Empty allows all. */
const allowedWithin = (
  { edge }: SessionState,
  wanted: ReadonlyArray<ToolName>,
  skills: SkillBook
): ReadonlyArray<ToolName> | string => {
  const rules = skillRules(edge, skills)
  if (rules === undefined) return wanted
  const allowed = wanted.length === 0 ? rules.tools : wanted.filter((tool) => rules.tools.includes(tool))
  return allowed.length > 0
    ? allowed
    : `the step of the skill ${edge.skill?.name} allows none of these tools; it allows ${rules.tools.map(shownName).join(", ")}`
}

/** Why no job may begin under a name just now. */
const noStart = (state: SessionState, job_name: JobName, budgets: Budgets): string | undefined => {
  const [write] = edgeWrites(state)
  if (write !== undefined) return `${shownName(write.name)} still runs; start the job when it has ended`
  if (state.cores.has(job_name)) return `a job named ${job_name} already runs; choose another name`
  if (state.cores.size >= budgets.max_core_jobs)
    return `${budgets.max_core_jobs} jobs run already (budgets.max_core_jobs); wait for one to end`
  const full = reportsFull(state)
  if (full !== undefined) return full
  return stepsFor(state, messageOf(state.edge.turn)) >= budgets.message_max_steps
    ? `the limit of ${budgets.message_max_steps} steps for one message (budgets.message_max_steps) is reached`
    : undefined
}

/** The batch that begins a job's lane, with its skill if it has one, and ends the call that asked for it. */
const began = (
  call_id: CallId,
  status: "started" | "resumed",
  skill: EventDraft | undefined,
  payload: PayloadOf<"CoreStarted">
): Decision => {
  const { job_name } = payload
  const [committed, result] = controlBatch(EDGE, call_id, `job ${job_name} was ${status}`, { job_name, status })
  return accept(
    committed,
    { event_type: "CoreStarted", lane: coreLane(job_name), payload },
    ...(skill === undefined ? [] : [skill]),
    result
  )
}

/** The smallest of the limits for each job, of its constraints and of its profile. */
const jobBudgets = (
  budgets: Budgets,
  { time_budget_ms }: CoreJobStart["tool_constraints"],
  profile: JobProfile | undefined
): PayloadOf<"CoreStarted">["budgets"] => {
  const { timeout_ms, token_budget } = profile?.limits ?? {}
  return {
    max_steps: budgets.per_job_max_steps,
    max_tool_calls: budgets.per_job_max_tool_calls,
    wall_time_ms: Math.min(
      budgets.per_job_wall_time_ms,
      time_budget_ms > 0 ? time_budget_ms : Infinity,
      timeout_ms ?? Infinity
    ),
    max_injections: budgets.max_injections_per_job,
    ...(token_budget === undefined ? {} : { max_tokens: token_budget })
  }
}

/** The skill that a job's task begins. What edge wrote after it read text from outside begins none, nor does a skill. */
const byTask = ({ edge }: SessionState, start: Omit<CoreJobStart, "job_id">, situation: Situation) => {
  if (edge.skill !== undefined || start.output_schema !== undefined) return undefined
  const { skill_refs, task_spec } = start
  const found = jobTriggers(situation.skills, start).filter(
    ({ skill }) => skill_refs === undefined || skill_refs.includes(skill)
  )
  const begun = triggered(coreLane(start.job_name), found, task_spec, !edge.tainted, situation)
  return begun === undefined ? undefined : Result.succeed(begun)
}

/** The running job that works on a branch. */
const jobOnBranch = ({ cores }: SessionState, branch: string | undefined, find: Find): JobName | undefined => {
  if (branch === undefined) return undefined
  return [...cores.values()].find(({ started_rev }) => {
    const started = find(started_rev)
    return started?.event_type === "CoreStarted" && started.payload.start.branch === branch
  })?.job_name
}

export const spawn = (
  state: SessionState,
  { call_id, model, start, tools }: Extract<Command, { type: "Spawn" }>,
  situation: Situation
): Decision => {
  const { budgets, skills } = situation
  const { job_name, skill, tool_constraints } = start
  const barred = noStart(state, job_name, budgets)
  if (barred !== undefined) return reject(barred)
  const holder = jobOnBranch(state, start.branch, situation.find)
  if (holder !== undefined)
    return reject(`the job ${holder} works on the branch ${start.branch}: choose another, or wait for it to end`)
  const begun =
    skill === undefined
      ? byTask(state, start, situation)
      : beginning(coreLane(job_name), skill.name, skill.input, situation)
  if (skill !== undefined && state.edge.skill !== undefined)
    return reject(
      `the skill ${state.edge.skill.name} is running, and a skill cannot start another skill; start the job without`
    )
  if (begun !== undefined && Result.isFailure(begun)) return Result.fail(begun.failure)
  if (skill !== undefined && start.output_schema !== undefined)
    return reject("a job with a skill ends with the skill's output: leave output_schema out")
  const kind = profiled(state, start, tools, situation)
  if (Result.isFailure(kind)) return reject(kind.failure)
  const allowed_tools = allowedWithin(state, kind.success.allowed_tools, skills)
  if (typeof allowed_tools === "string") return reject(allowed_tools)
  return began(call_id, "started", begun?.success, {
    job_id: call_id,
    job_name,
    start: {
      ...start,
      ...kind.success.start,
      job_id: call_id,
      tool_constraints: { ...tool_constraints, allowed_tools }
    },
    model,
    budgets: jobBudgets(budgets, tool_constraints, kind.success.profile),
    ...(state.edge.skill === undefined ? {} : { in_skill: state.edge.skill.name })
  })
}

/** The same job again: what it was started with comes from the log, what it has used up from the state (D49). */
export const resumeCore = (
  state: SessionState,
  { call_id, instruction, job_name, model }: Extract<Command, { type: "ResumeCore" }>,
  situation: Situation
): Decision => {
  const { budgets, find, skills } = situation
  const barred = noStart(state, job_name, budgets)
  if (barred !== undefined) return reject(barred)
  const core = state.resumable.get(job_name)?.core
  const started = core === undefined ? undefined : find(core.started_rev)
  if (core === undefined || started?.event_type !== "CoreStarted")
    return reject(
      `no job named ${job_name} can be resumed; resumable: ${[...state.resumable.keys()].join(", ") || "none"}`
    )
  const { max_steps } = core.budgets
  if (core.step >= max_steps)
    return reject(`the job ${job_name} cannot be resumed: its limit of ${max_steps} steps is reached; start a new one`)
  const { start } = started.payload
  const allowed_tools = allowedWithin(state, start.tool_constraints.allowed_tools, skills)
  if (typeof allowed_tools === "string") return reject(allowed_tools)
  if (start.skill !== undefined && state.edge.skill !== undefined)
    return reject(`the skill ${state.edge.skill.name} is running, and a skill cannot start another skill`)
  // The skill ended with the job, so that it begins again; the conversation shows how far it came.
  const begun =
    start.skill === undefined
      ? undefined
      : beginning(coreLane(job_name), start.skill.name, start.skill.input, situation)
  if (begun !== undefined && Result.isFailure(begun)) return Result.fail(begun.failure)
  const in_skill = state.edge.skill?.name ?? core.in_skill
  return began(call_id, "resumed", begun?.success, {
    job_id: call_id,
    job_name,
    start: { ...start, job_id: call_id, tool_constraints: { ...start.tool_constraints, allowed_tools } },
    model,
    budgets: core.budgets,
    resumes: { job_id: core.job_id, instruction },
    ...(in_skill === undefined ? {} : { in_skill })
  })
}

const noJob = (state: SessionState, job: string): string =>
  `no job named ${job} runs; running: ${[...state.cores.keys()].join(", ") || "none"}`

export const injectCore = (state: SessionState, command: Extract<Command, { type: "InjectCore" }>): Decision => {
  const { call_id, content, job_name } = command
  const core = state.cores.get(job_name)
  if (core === undefined) return reject(noJob(state, job_name))
  if (core.injections >= core.budgets.max_injections)
    return reject(`the job ${job_name} has reached its limit of ${core.budgets.max_injections} injections`)
  const [committed, result] = controlBatch(EDGE, call_id, `the instruction was passed to ${job_name}`, { job_name })
  const target = coreLane(job_name)
  return accept(
    committed,
    { event_type: "InjectedInstruction", lane: target, payload: { target, source: "edge", content } },
    result
  )
}

/** A skill that is not to be interrupted holds against models alone: a person's cancel is a signal. */
export const cancelCore = (
  state: SessionState,
  command: Extract<Command, { type: "CancelCore" }>,
  { skills }: Situation
): Decision => {
  const { call_id, job_name, reason } = command
  const core = state.cores.get(job_name)
  if (core === undefined) return reject(noJob(state, job_name))
  if (core.skill !== undefined && skills.get(core.skill.name)?.interruptible === false)
    return reject(`the job runs the skill ${core.skill.name}, which may not be interrupted; the user can cancel it`)
  const [committed, result] = controlBatch(EDGE, call_id, `the job ${job_name} is being cancelled`, { job_name })
  const target = coreLane(job_name)
  return accept(committed, { event_type: "Cancelled", lane: target, payload: { target, by: "edge", reason } }, result)
}

/** A job that runs a skill for a person or at its time: its task is the skill's. Refused, the order ends in an event that says why. */
export const signalSkill = (
  state: SessionState,
  { input, job_name, model, signal_id, skill, trigger }: Extract<Command, { type: "SignalSkill" }>,
  situation: Situation
): Decision => {
  const { budgets, session_id } = situation
  const lane = coreLane(job_name)
  const barred = state.ended === undefined ? noStart(state, job_name, budgets) : "the session has ended"
  const begun =
    barred === undefined
      ? beginning(lane, skill, input, situation, trigger ?? "person")
      : Result.fail<Rejected>({ reason: barred })
  if (Result.isFailure(begun)) {
    const { denied, reason } = begun.failure
    const more = denied === undefined ? {} : { denied }
    return accept({
      event_type: "InjectedInstruction",
      lane: EDGE,
      payload: { signal_id, target: EDGE, source: "user", content: "", refused: reason, ...more }
    })
  }
  const job_id = CallId.make(`${session_id}-signal-${signal_id}`)
  const constraints = { allowed_tools: [], time_budget_ms: 0 }
  return accept(
    {
      event_type: "CoreStarted",
      lane,
      payload: {
        job_id,
        job_name,
        start: {
          job_id,
          job_name,
          task_spec: `Run the skill ${skill}, which ${trigger === undefined ? "a person ordered" : `is due (${trigger})`}.`,
          context_bundle: { facts: [], excerpts: [], constraints: [] },
          tool_constraints: constraints,
          skill: { name: skill, ...(input === undefined ? {} : { input }) },
          verbosity: "normal"
        },
        model,
        budgets: jobBudgets(budgets, constraints, undefined)
      }
    },
    { ...begun.success, payload: { ...begun.success.payload, signal_id } }
  )
}

export const signalCancel = (state: SessionState, signal_id: string, job_name: JobName): Decision => {
  const target = coreLane(job_name)
  const reason = state.cores.has(job_name) ? "cancelled by the user" : "no_such_job"
  const payload = { signal_id, target, by: "user", reason } as PayloadOf<"Cancelled">
  return accept({ event_type: "Cancelled", lane: target, payload })
}

/** A job's account of its work, or that its profile wanted one and there is none. */
const accountOf = (core: CoreLane, find: Find): Pick<PayloadOf<"CoreStopped">, "orphan" | "writeback"> => {
  const account = writtenBack(find(core.writeback_rev))
  if (account !== undefined) return { writeback: account }
  return owesWriteback(find(core.started_rev)) ? { orphan: true } : {}
}

/** Where the names of files come from that a job's end tells: the workspace, whatever the job itself has read. */
const treeSources = (state: SessionState, label: Situation["workspace_label"], tree: JobTree | undefined) =>
  tree === undefined || tree.conflicts.length === 0 ? [] : workspaceSources(state, label)

export const stopCore = (
  state: SessionState,
  command: Extract<Command, { type: "StopCore" }>,
  { find, workspace_label }: Pick<Situation, "find" | "workspace_label">
): Decision => {
  const { job_name, outcome, result, resumable, summary, tree } = command
  const core = state.cores.get(job_name)
  if (core === undefined) return reject(noJob(state, job_name))
  const sources = withSources(core.sources, treeSources(state, workspace_label, tree))
  const { cost_usd, input_tokens, output_tokens } = core.spent
  return accept(...endedWithLane(core.lane, core, summary), {
    event_type: "CoreStopped",
    lane: core.lane,
    payload: {
      job_id: core.job_id,
      job_name,
      outcome,
      summary,
      usage: { input_tokens, output_tokens, ...(cost_usd > 0 ? { cost_usd } : {}) },
      ...(result === undefined ? {} : { result }),
      ...(resumable === undefined ? {} : { resumable }),
      ...(sources.length === 0 ? {} : { sources }),
      work: workDone(core),
      ...accountOf(core, find),
      ...(tree === undefined ? {} : { tree })
    }
  })
}

/** The words of the log below those on a job: how it ended, or that it asks. */
export const factsOf = (
  report: PendingReport | undefined,
  find: Find
): Pick<PayloadOf<"AgentMessage">, "facts" | "job"> => {
  if (report === undefined) return {}
  const { job_name: job, kind, rev } = report
  const event = find(rev)
  const facts = kind === "question" ? askFacts(job) : event?.event_type === "CoreStopped" ? endFacts(event) : undefined
  return { job, ...(facts === undefined ? {} : { facts }) }
}

/** The line on a job that runs: its plan where the user has not heard of it, or else what it did so far. */
export const tellJob = (
  { cores, ended }: SessionState,
  { job_id, job_name }: Extract<Command, { type: "TellJob" }>,
  { find }: Situation
): Decision => {
  const core = cores.get(job_name)
  if (core?.job_id !== job_id || ended !== undefined) return reject(`the job ${job_name} is no longer running`)
  const plan = core.plan === undefined ? undefined : reportOf(find(core.plan.rev))
  const isNew = (core.plan?.rev ?? 0) > (core.told?.rev ?? 0)
  const wait = waitOfJob(core, find)
  const text =
    wait !== undefined
      ? waitLine(core, wait)
      : plan !== undefined && isNew
        ? planLine(core, plan)
        : progressLine(core, reportOf(find(core.report_rev)), plan)
  const in_reply_to = core.inbox_id === undefined ? {} : { in_reply_to: core.inbox_id }
  return accept({
    event_type: "AgentMessage",
    lane: EDGE,
    payload: { kind: "notice", text, job: job_name, ...in_reply_to }
  })
}
