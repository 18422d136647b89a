/**
 * The way of a tool call: check, request, a person's approval where it needs one, locks, commit, intent barrier, run,
 * result, release. It runs in the fiber of its lane; every way out commits a result, and the locks are released only after that.
 */
import { Context, Effect, Layer } from "effect"
import type { ModelToolCall, PayloadOf } from "#schema/Event.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { shownName } from "#schema/Tool.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import { meantCall } from "#src/shared/session/meantCall.ts"
import type { OpenCall } from "#src/shared/session/State.ts"
import { Arbiter, type Refused } from "#src/agent/arbiter/Arbiter.ts"
import type { Command } from "#src/agent/arbiter/Command.ts"
import { edgeWrites } from "#src/agent/arbiter/decideCores.ts"
import { toldRules, isSkillTurn, SKILL_TRANSITION, skillRefusal, skillRules } from "#src/agent/arbiter/decideSkills.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { SCRIPT_MODEL } from "#src/agent/arbiter/skillScript.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { withServices } from "#src/shared/withServices.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import type { Exhausted } from "#src/agent/model/Budget.ts"
import { SkillJudge } from "#src/agent/calls/SkillJudge.ts"
import { capabilitiesOfTool, type ControlTool, isControl, type PreparedCall, type Tool } from "#src/agent/tools/Tool.ts"
import { closeOpen, closeWaiting, finishCall, openCalls, rejected } from "./callOutcomes.ts"
import { closeInDoubt, settleInDoubt } from "./inDoubt.ts"
import { type Confirmation, Confirmations } from "./Confirmations.ts"
import { runGranted } from "./grantedCall.ts"
import { LockManager } from "./LockManager.ts"
import { type TreeJob, Worktrees } from "#src/agent/git/Worktrees.ts"
import { locksOfTree } from "#src/agent/git/worktreeGit.ts"
import { argumentsProblem, isConstrainable, ToolRegistry } from "./ToolRegistry.ts"
import { ToolSlots } from "./ToolSlots.ts"

/** How long an edge tool waits for its locks, so that a chat never hangs behind a core job (R19). */
export const EDGE_LOCK_WAIT_MS = 2000

/** Runs the open calls of lanes. */
export class ToolRunner extends Context.Service<
  ToolRunner,
  {
    /**
     * Brings each open call of a lane's newest model output to a result. Fails with the session's limit, when one is reached,
     * before anything more starts.
     */
    runOpen(lane: LaneId): Effect.Effect<void, Exhausted>
    /** Closes the open calls of a lane that does not continue, as cancelled. */
    closeOpen(lane: LaneId, why: string): Effect.Effect<void>
    /** Closes the calls that have not begun as cancelled, before the others are interrupted. */
    closeWaiting(lane: LaneId, why: string): Effect.Effect<void>
    /** Closes the calls of an earlier epoch whose outcome is unknown; those without an effect stay open and run again (D3, R6). */
    readonly closeInDoubt: Effect.Effect<void>
    /** Finds out the outcome of those whose tool can tell, which {@link closeInDoubt} leaves open. */
    readonly settleInDoubt: Effect.Effect<void>
  }
>()("choir/agent/ToolRunner") {
  static readonly layer = Layer.effect(
    ToolRunner,
    Effect.gen(function* () {
      // Only these: a caller's loggers and spans stay as they are.
      const context = Context.pick(
        AgentSettings,
        Arbiter,
        Confirmations,
        EventLog,
        LockManager,
        Replication,
        SecretStore,
        SkillJudge,
        SkillRegistry,
        ToolRegistry,
        ToolSlots
      )(yield* Effect.context<Effect.Services<ReturnType<typeof runCall>>>())
      const provide = withServices(context)
      const arbiter = Context.get(context, Arbiter)
      return ToolRunner.of({
        runOpen: (lane) =>
          Effect.suspend(() =>
            Effect.forEach(openCalls(arbiter.state(), lane), (call) => runCall(lane, call), {
              concurrency: "unbounded",
              discard: true
            })
          ).pipe(provide),
        closeOpen: (lane, why) => provide(closeOpen(lane, why)),
        closeWaiting: (lane, why) => provide(closeWaiting(lane, why)),
        closeInDoubt: provide(closeInDoubt),
        settleInDoubt: provide(settleInDoubt)
      })
    })
  ).pipe(Layer.provide(ToolSlots.layer))
}

const STOPPED = "the agent was stopped while the call waited for a person's approval; it did not run"

type Input = ModelToolCall["input"]

/** The end of a call that was refused. */
const refuse = (
  lane: LaneId,
  call: OpenCall,
  {
    allowed,
    denied,
    ends_job,
    exhausted,
    reason
  }: Pick<Refused, "reason" | "ends_job" | "exhausted" | "allowed" | "denied">
): Effect.Effect<void, Exhausted, Arbiter> => {
  if (exhausted !== undefined) return Effect.fail({ _tag: "Exhausted", limit: exhausted } as const)
  // The call stays open, and the job ends over it.
  if (ends_job === true) return Effect.void
  const more = { ...(allowed === undefined ? {} : { allowed }), ...(denied === undefined ? {} : { denied }) }
  return finishCall(lane, call, rejected(reason, more))
}

/** The tools that a lane's job is limited to; undefined where it is not, or the tool is one that no job can be denied. */
const allowedTools = Effect.fnUntraced(function* (lane: LaneId, tool: string) {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const core = laneOf(arbiter.state(), lane)
  const started = core !== undefined && "started_rev" in core ? log.get(core.started_rev) : undefined
  const allowed = started?.event_type === "CoreStarted" ? started.payload.start.tool_constraints.allowed_tools : []
  return allowed.length === 0 || !isConstrainable(tool) ? undefined : allowed
})

const request = Effect.fnUntraced(function* (
  lane: LaneId,
  call: OpenCall,
  tool: Tool | ControlTool,
  input: Input,
  prepared?: PreparedCall
) {
  const arbiter = yield* Arbiter
  return yield* arbiter.commit({
    type: "Request",
    lane,
    call_id: call.call_id,
    tool: tool.llm.name,
    input,
    effect: isControl(tool) ? "workspace" : (prepared?.effect ?? tool.effect),
    locks: prepared?.locks ?? [],
    allowed_tools: yield* allowedTools(lane, tool.llm.name),
    within: (yield* Worktrees).of(lane),
    confirm: prepared?.confirm === undefined ? undefined : yield* prepared.confirm,
    capabilities: capabilitiesOfTool(tool),
    keepsOwn: !isControl(tool) && tool.keepsOwn === true,
    beside_jobs: isControl(tool) || prepared?.besideJobs === true
  })
})

/** Starts a job once nothing that edge writes runs (D30). Another write may begin between the look and the commit. */
const startJob = (command: Command): Effect.Effect<void, Refused, Arbiter> =>
  Effect.flatMap(Arbiter, (arbiter) =>
    arbiter
      .until((state) => edgeWrites(state).length === 0)
      .pipe(
        Effect.andThen(Effect.asVoid(arbiter.commit(command))),
        Effect.catchIf(
          () => edgeWrites(arbiter.state()).length > 0,
          () => startJob(command)
        )
      )
  )

/** Moves a skill, with the verdict of a judge where its contract wants one. One that an earlier epoch was given counts. */
const moveSkill = Effect.fnUntraced(function* (command: Extract<Command, { type: "MoveSkill" }>) {
  const arbiter = yield* Arbiter
  const judge = yield* SkillJudge
  yield* Effect.catchIf(
    arbiter.commit(command),
    ({ awaits_verdict }) => awaits_verdict === true,
    () => Effect.andThen(judge.ask(command), arbiter.commit(command))
  )
})

/** Whether a job can have its worktree. git looks at it while nobody writes there. */
const checkTree = Effect.fnUntraced(function* (lane: LaneId, job: TreeJob) {
  const locks = yield* LockManager
  const trees = yield* Worktrees
  yield* locks.withLocks(lane, locksOfTree(job.job_name), { wait_ms: EDGE_LOCK_WAIT_MS }, () => trees.check(job))
})

/** D30: what edge writes is committed before a job begins to read it. A skill moves once the calls beside it have ended. */
const runControl = Effect.fnUntraced(function* (lane: LaneId, call: OpenCall, tool: ControlTool, input: Input) {
  const arbiter = yield* Arbiter
  const command = yield* tool.command(input, call.call_id, lane)
  if (call.stage === "proposed") yield* request(lane, call, tool, input)
  if (command.type === "Spawn" && command.start.branch !== undefined)
    yield* checkTree(lane, { job_name: command.start.job_name, branch: command.start.branch })
  if (command.type === "Spawn" || command.type === "ResumeCore") return yield* startJob(command)
  if (command.type === "StartSkill" || command.type === "MoveSkill")
    yield* arbiter.until((state) => isSkillTurn(state, lane, call))
  if (command.type === "MoveSkill") return yield* moveSkill(command)
  yield* arbiter.commit(command)
})

/** A person's decision; undefined for a call that needs none, which was decided at its request, maybe in an earlier epoch. */
const confirmation = Effect.fnUntraced(function* (
  lane: LaneId,
  { call_id }: OpenCall,
  tool: Tool,
  input: Input,
  { files: attached }: PreparedCall
) {
  const arbiter = yield* Arbiter
  const confirmations = yield* Confirmations
  const asking = openCalls(arbiter.state(), lane).find((call) => call.call_id === call_id)
  const why = asking?.confirm
  if (why === undefined) return undefined
  const labels = asking?.sources === undefined || asking.sources.length === 0 ? {} : { sources: asking.sources }
  const files = attached === undefined ? {} : yield* attached
  return (yield* confirmations.ask(call_id, {
    tool: tool.llm.name,
    input,
    lane,
    why,
    ...labels,
    ...files
  })) satisfies Confirmation
})

const runTool = Effect.fnUntraced(function* (lane: LaneId, call: OpenCall, tool: Tool, input: Input) {
  const arbiter = yield* Arbiter
  const locks = yield* LockManager
  const prepared = yield* tool.prepare(input, lane)
  if (call.stage === "proposed") yield* request(lane, call, tool, input, prepared)
  const confirmed = yield* confirmation(lane, call, tool, input, prepared)
  if (confirmed?.type === "refused") return yield* finishCall(lane, call, rejected(confirmed.reason))
  if (confirmed?.type === "stopped")
    return yield* finishCall(lane, call, { status: "cancelled", summary: STOPPED, duration_ms: 0 })
  const wait_ms = lane === EDGE ? EDGE_LOCK_WAIT_MS : prepared.timeout_ms
  const ready = { lane, call, tool, prepared, approval_id: confirmed?.approval_id, grant_id: confirmed?.grant_id }
  const locked = locks.withLocks(lane, prepared.locks, { wait_ms }, (grant) => runGranted(ready, grant))
  const noJobRuns = arbiter.until(({ cores }) => cores.size === 0)
  // A job may have started while a person decided. An approved call is not asked about twice, so it waits until no job runs.
  const attempt: typeof locked = Effect.catchIf(
    locked,
    (error) => error._tag === "Refused" && error.awaits_jobs === true && confirmed !== undefined,
    () => Effect.andThen(noJobRuns, attempt)
  )
  yield* attempt
})

/** The tools and transitions that the lane's skill allows in its present state, for the answer to a refused call. */
const skillAllows = (lane: LaneId) =>
  Effect.gen(function* () {
    const arbiter = yield* Arbiter
    const skills = yield* SkillRegistry
    const memory = laneOf(arbiter.state(), lane)
    const rules = memory === undefined ? undefined : skillRules(memory, skills)
    return rules === undefined ? undefined : toldRules(rules)
  })

/** Whether the runtime said it instead of a model. No model of a configuration has a colon in its name. */
const isOfScript = (said: PayloadOf<"ModelOutput"> | undefined): boolean =>
  said?.model.startsWith(SCRIPT_MODEL) === true

const runCall = Effect.fnUntraced(function* (lane: LaneId, call: OpenCall) {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const registry = yield* ToolRegistry
  const output = log.get(call.output_rev)
  const said = output.event_type === "ModelOutput" ? output.payload : undefined
  const proposed = said?.tool_calls.find(({ call_id }) => call_id === call.call_id)
  const { input, name } = meantCall(proposed ?? { name: call.name, input: null })
  if (proposed?.refused !== undefined)
    return yield* finishCall(lane, call, rejected(`${shownName(call.name.slice(0, 64))}: ${proposed.refused}`))
  const tool = registry.find(lane, name)
  const isHidden = tool !== undefined && !isControl(tool) && tool.ofScripts === true && !isOfScript(said)
  if (proposed === undefined || tool === undefined || isHidden) {
    const summary = `there is no tool ${shownName(call.name.slice(0, 64))} for this lane`
    const allowed = (yield* skillAllows(lane)) ?? { tools: registry.names(lane), transitions: [] }
    return yield* finishCall(lane, call, rejected(summary, { allowed }))
  }
  // Before its input is looked at, so that the refusal of a forbidden tool counts as what it is. The arbiter has the last word.
  const memory = laneOf(arbiter.state(), lane)
  const forbidden = memory === undefined ? undefined : skillRefusal(memory, yield* SkillRegistry, tool.llm.name)
  if (call.stage === "proposed" && forbidden !== undefined) return yield* refuse(lane, call, forbidden)
  const unfit = Effect.fnUntraced(function* (reason: string) {
    const allowed = tool.llm.name === SKILL_TRANSITION ? yield* skillAllows(lane) : undefined
    return yield* refuse(lane, call, { reason, ...(allowed === undefined ? {} : { allowed }) })
  })
  const problem = argumentsProblem(call.name, input, said)
  if (problem !== undefined) return yield* unfit(problem)
  const run = Effect.gen(function* () {
    if (isControl(tool)) yield* runControl(lane, call, tool, input)
    else yield* runTool(lane, call, tool, input)
  })
  yield* run.pipe(
    Effect.catchTags({
      InvalidInput: ({ problem }) => unfit(`the input does not fit ${shownName(call.name)}: ${problem}`),
      InvalidLock: ({ message }) => finishCall(lane, call, rejected(message)),
      WorktreeRefused: ({ reason }) => finishCall(lane, call, rejected(reason)),
      LockBusy: ({ message }) => finishCall(lane, call, rejected(message)),
      Refused: (refused) => refuse(lane, call, refused)
    })
  )
})
