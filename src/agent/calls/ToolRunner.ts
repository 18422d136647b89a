/**
 * The way of a tool call: check, request, a person's approval where it needs one, locks, commit, intent barrier, run,
 * result, release. It runs in the fiber of its lane; every way out commits a result, and the locks are free only after that.
 */
import { Context, Effect, Layer } from "effect"
import type { ModelToolCall } from "#schema/Event.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { OpenCall } from "#src/shared/session/State.ts"
import { Arbiter, type Refused } from "#src/agent/arbiter/Arbiter.ts"
import { argumentsProblem, isConstrainable, ToolRegistry } from "./ToolRegistry.ts"
import { edgeWrites } from "#src/agent/arbiter/decideCores.ts"
import { isSkillTurn, SKILL_TRANSITION, skillRefusal, skillRules, toldRules } from "#src/agent/arbiter/decideSkills.ts"
import { type InSlot, makeCallDeadline, makeGranted, type ReadyCall } from "./grantedCall.ts"
import { makeCallEnds, openCalls } from "./callEnds.ts"
import { type Confirmation, Confirmations } from "./Confirmations.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { type Grant, LockManager } from "./LockManager.ts"
import type { Command } from "#src/agent/arbiter/Command.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { makeToolSlots } from "./ToolSlots.ts"
import { rejected } from "#src/agent/tools/toolResult.ts"
import { type ControlTool, isControl, type PreparedCall, type Tool } from "#src/agent/tools/Tool.ts"
import type { Exhausted } from "#src/agent/model/Budget.ts"
import { TOOLS_IN_FLIGHT_MAX } from "#src/agent/control/choirdConnections.ts"

/** How long an edge tool waits for its locks, so that a chat never hangs behind a core job (R19). */
export const EDGE_LOCK_WAIT_MS = 2000
/** Of these, the ones that jobs leave to edge, so that it talks while they work. */
export const TOOLS_RESERVED_FOR_EDGE = 2
/** Tools of edge, and tools of jobs, that wait behind those; the next one is refused. */
export const TOOLS_QUEUED_MAX = 64

/** Runs the open calls of lanes. */
export class ToolRunner extends Context.Service<
  ToolRunner,
  {
    /**
     * Brings each open call of a lane's newest model output to a result. Fails with the session's limit, when one is reached,
     * before anything more starts.
     */
    runOpen(lane: LaneId): Effect.Effect<void, Exhausted>
    /** Closes what is open as cancelled, for a lane that does not go on. */
    closeOpen(lane: LaneId, why: string): Effect.Effect<void>
    /** Closes as cancelled what has not begun, before the rest is interrupted. */
    closeWaiting(lane: LaneId, why: string): Effect.Effect<void>
    /** Closes the calls of an earlier epoch whose end is unknown; those without effect stay open and run again (D3, R6). */
    readonly closeInDoubt: Effect.Effect<void>
  }
>()("choir/agent/calls/ToolRunner") {
  static readonly layer = Layer.effect(
    ToolRunner,
    Effect.suspend(() => make())
  )
}

const STOPPED = "the agent was stopped while the call waited for a person's approval; it did not run"

const make = Effect.fnUntraced(function* () {
  const arbiter = yield* Arbiter
  const confirmations = yield* Confirmations
  const locks = yield* LockManager
  const log = yield* EventLog
  const registry = yield* ToolRegistry
  const skills = yield* SkillRegistry
  const ends = makeCallEnds(arbiter)
  const { closeInDoubt, closeOpen, closeWaiting, finish } = ends
  const granted = yield* makeGranted(ends)
  const open = (lane: LaneId) => openCalls(arbiter.state(), lane)
  const slots = makeToolSlots({
    running_max: TOOLS_IN_FLIGHT_MAX,
    reserved: TOOLS_RESERVED_FOR_EDGE,
    queued_max: TOOLS_QUEUED_MAX
  })

  const refuse = (
    lane: LaneId,
    call: OpenCall,
    { allowed, ends_job, exhausted, reason }: Pick<Refused, "reason" | "ends_job" | "exhausted" | "allowed">
  ): Effect.Effect<void, Exhausted> => {
    if (exhausted !== undefined) return Effect.fail({ _tag: "Exhausted", limit: exhausted } as const)
    // The call stays open, and the job ends over it.
    if (ends_job === true) return Effect.void
    return finish(lane, call, rejected(reason, allowed === undefined ? {} : { allowed }))
  }

  const noJobRuns = arbiter.until(({ cores }) => cores.size === 0)

  const outputOf = (call: OpenCall) => {
    const output = log.get(call.output_rev)
    return output.event_type === "ModelOutput" ? output.payload : undefined
  }

  const proposedBy = (call: OpenCall): ModelToolCall | undefined =>
    outputOf(call)?.tool_calls.find(({ call_id }) => call_id === call.call_id)

  const request = (
    lane: LaneId,
    call: OpenCall,
    tool: Tool | ControlTool,
    input: ModelToolCall["input"],
    prepared?: PreparedCall
  ) => {
    const core = laneOf(arbiter.state(), lane)
    const started = core !== undefined && "started_rev" in core ? log.get(core.started_rev) : undefined
    const allowed = started?.event_type === "CoreStarted" ? started.payload.start.tool_constraints.allowed_tools : []
    const free = allowed.length === 0 || !isConstrainable(tool.llm.name)
    return arbiter.commit({
      type: "Request",
      lane,
      call_id: call.call_id,
      tool: tool.llm.name,
      input,
      effect: isControl(tool) ? "workspace" : (prepared?.effect ?? tool.effect),
      locks: prepared?.locks ?? [],
      allowed_tools: free ? undefined : allowed
    })
  }

  /** A job begins once nothing that edge writes runs (D30). Another write may begin between the look and the commit. */
  const spawned = (command: Command): Effect.Effect<void, Refused> =>
    arbiter
      .until((state) => edgeWrites(state).length === 0)
      .pipe(
        Effect.andThen(Effect.asVoid(arbiter.commit(command))),
        Effect.catchIf(
          () => edgeWrites(arbiter.state()).length > 0,
          () => spawned(command)
        )
      )

  /** D30: what edge writes is committed before a job begins to read it. A skill moves once the calls beside it have ended. */
  const control = Effect.fnUntraced(function* (
    lane: LaneId,
    call: OpenCall,
    tool: ControlTool,
    input: ModelToolCall["input"]
  ) {
    const command = yield* tool.command(input, call.call_id, lane)
    if (call.stage === "proposed") yield* request(lane, call, tool, input)
    if (command.type === "Spawn" || command.type === "ResumeCore") return yield* spawned(command)
    if (command.type === "StartSkill" || command.type === "MoveSkill")
      yield* arbiter.until((state) => isSkillTurn(state, lane, call))
    yield* arbiter.commit(command)
  })

  /** Undefined for a call that may go on by itself. Whether it may was settled at its request, which may be an earlier epoch's. */
  const confirmation = (lane: LaneId, { call_id }: OpenCall, tool: Tool, input: ModelToolCall["input"]) =>
    Effect.suspend((): Effect.Effect<Confirmation | undefined> => {
      const why = open(lane).find((call) => call.call_id === call_id)?.confirm
      return why === undefined
        ? Effect.undefined
        : confirmations.ask(call_id, { tool: tool.llm.name, input, lane, why })
    })

  const tool = Effect.fnUntraced(function* (lane: LaneId, call: OpenCall, found: Tool, input: ModelToolCall["input"]) {
    const prepared = yield* found.prepare(input)
    if (call.stage === "proposed") yield* request(lane, call, found, input, prepared)
    const confirmed = yield* confirmation(lane, call, found, input)
    if (confirmed?.type === "refused") return yield* finish(lane, call, rejected(confirmed.reason))
    if (confirmed?.type === "stopped")
      return yield* finish(lane, call, { status: "cancelled", summary: STOPPED, duration_ms: 0 })
    const wait_ms = lane === EDGE ? EDGE_LOCK_WAIT_MS : prepared.timeout_ms
    const ready: ReadyCall = { lane, call, tool: found, prepared, approval_id: confirmed?.approval_id }
    const withGrant = Effect.fnUntraced(function* (grant: Grant) {
      const deadline = yield* makeCallDeadline(found.llm.name, prepared.timeout_ms)
      const inSlot: InSlot = (use) => Effect.flatMap(deadline.left, (left) => slots.run(lane, left, use))
      yield* granted(ready, grant, deadline, inSlot).pipe(
        Effect.catchTag("SlotRefused", ({ message, reason }) =>
          reason === "full"
            ? finish(lane, call, rejected(message))
            : Effect.flatMap(deadline.passed("was not started: it got no turn"), (late) => finish(lane, call, late))
        )
      )
    })
    const locked = locks.withLocks(lane, prepared.locks, { wait_ms }, withGrant)
    // A job may have started while a person decided. What was approved is not to be asked for twice, so that it waits until none runs.
    const attempt: typeof locked = Effect.catchIf(
      locked,
      (error) => error._tag === "Refused" && error.awaits_jobs === true && confirmed !== undefined,
      () => Effect.andThen(noJobRuns, attempt)
    )
    yield* attempt
  })

  const rules = (lane: LaneId) => {
    const memory = laneOf(arbiter.state(), lane)
    const known = memory === undefined ? undefined : skillRules(memory, skills)
    return known === undefined ? undefined : toldRules(known)
  }

  const runCall = Effect.fn("ToolRunner.runCall")(function* (lane: LaneId, call: OpenCall) {
    const proposed = proposedBy(call)
    const found = registry.find(lane, call.name)
    if (proposed === undefined || found === undefined) {
      const summary = `there is no tool ${call.name.slice(0, 64)} for this lane`
      const allowed = rules(lane) ?? { tools: registry.names(lane), transitions: [] }
      return yield* finish(lane, call, rejected(summary, { allowed }))
    }
    // Before its input is looked at, so that the refusal of a forbidden tool counts as what it is. The arbiter has the last word.
    const memory = laneOf(arbiter.state(), lane)
    const forbidden = memory === undefined ? undefined : skillRefusal(memory, skills, found.llm.name)
    if (call.stage === "proposed" && forbidden !== undefined) return yield* refuse(lane, call, forbidden)
    const { input } = proposed
    const unfit = (summary: string) => {
      const allowed = found.llm.name === SKILL_TRANSITION ? rules(lane) : undefined
      return refuse(lane, call, { reason: summary, ...(allowed === undefined ? {} : { allowed }) })
    }
    const problem = argumentsProblem(call.name, input, outputOf(call))
    if (problem !== undefined) return yield* unfit(problem)
    yield* (isControl(found) ? control(lane, call, found, input) : tool(lane, call, found, input)).pipe(
      Effect.catchTags({
        InvalidInput: ({ problem }) => unfit(`the input does not fit ${call.name}: ${problem}`),
        InvalidLock: ({ message }) => finish(lane, call, rejected(message)),
        LockBusy: ({ message }) => finish(lane, call, rejected(message)),
        Refused: (refused) => refuse(lane, call, refused)
      })
    )
  })

  return ToolRunner.of({
    runOpen: Effect.fn("ToolRunner.runOpen")(function* (lane) {
      yield* Effect.forEach(open(lane), (call) => runCall(lane, call), { concurrency: "unbounded", discard: true })
    }),
    closeOpen,
    closeWaiting,
    closeInDoubt
  })
})
