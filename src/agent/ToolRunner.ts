/**
 * The way of a tool call (spec 8.9): check, request, a person's approval where it needs one, locks, commit, intent barrier, run,
 * result, release. It runs in the fiber of its lane; every way out commits a result, and the locks are free only after that.
 */
import { Clock, Context, Effect, HashMap, Layer, Option } from "effect"
import type { ModelToolCall } from "#schema/Event.ts"
import { type ApprovalId, EDGE, type LaneId } from "#schema/Ids.ts"
import { EDGE_LOCK_WAIT_MS, TOOLS_IN_FLIGHT_MAX, TOOLS_QUEUED_MAX } from "#src/shared/limits.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { OpenCall } from "#src/shared/session/State.ts"
import { Arbiter, type Refused } from "./Arbiter.ts"
import { edgeWrites } from "./decideCores.ts"
import { isSkillTurn, SKILL_TRANSITION, skillRefusal, skillRules, toldRules } from "./decideSkills.ts"
import { type CallDeadline, makeCallDeadline } from "./callDeadline.ts"
import { type Confirmation, Confirmations } from "./Confirmations.ts"
import { EventLog } from "./EventLog.ts"
import { type Grant, LockManager } from "./LockManager.ts"
import { isConstrainable } from "./offeredTools.ts"
import { Replication } from "./Replication.ts"
import { SecretStore } from "./SecretStore.ts"
import { SkillRegistry } from "./SkillRegistry.ts"
import { ToolRegistry } from "./ToolRegistry.ts"
import { makeToolSlots } from "./ToolSlots.ts"
import { rejected, resultOf, type ToolResult, withoutSecrets } from "./toolResult.ts"
import { type ControlTool, isControl } from "./tools/ControlTool.ts"
import type { PreparedCall, Tool } from "./tools/Tool.ts"

/** Runs the open calls of lanes. */
export class ToolRunner extends Context.Service<
  ToolRunner,
  {
    /**
     * Brings each open call of a lane's newest model output to a result. Fails with the session's limit, when one is reached,
     * before anything more starts.
     */
    runOpen(lane: LaneId): Effect.Effect<void, Exhausted>
    /** Closes what is open with a status, for a lane that does not go on or was interrupted. */
    closeOpen(lane: LaneId, status: "cancelled", why: string): Effect.Effect<void>
    /** Closes the calls of an earlier epoch whose end is unknown; those without effect stay open and run again (D3, R6). */
    readonly closeInDoubt: Effect.Effect<void>
  }
>()("choir/agent/ToolRunner") {
  static readonly layer = Layer.effect(
    ToolRunner,
    Effect.suspend(() => make())
  )
}

/** A limit of the session is reached; `limit` is a sentence for the user. */
export interface Exhausted {
  readonly _tag: "Exhausted"
  readonly limit: string
}

const STOPPED = "the agent was stopped while the call waited for a person's approval; it did not run"

const make = Effect.fnUntraced(function* () {
  const arbiter = yield* Arbiter
  const confirmations = yield* Confirmations
  const locks = yield* LockManager
  const log = yield* EventLog
  const registry = yield* ToolRegistry
  const replication = yield* Replication
  const secrets = yield* SecretStore
  const skills = yield* SkillRegistry
  const open = (lane: LaneId): ReadonlyArray<OpenCall> => laneOf(arbiter.state(), lane)?.calls ?? []
  const slots = makeToolSlots(TOOLS_IN_FLIGHT_MAX, TOOLS_QUEUED_MAX)

  /**
   * A result of a call that was closed meanwhile, as by a cancel, is dropped: the first one stands. One that no event can hold is
   * an error without its content, since a call that stays open would run again.
   */
  const finish = (lane: LaneId, call: OpenCall, result: ToolResult) =>
    arbiter.commit({ type: "Result", lane, call_id: call.call_id, result }).pipe(
      Effect.catchIf(
        ({ unfit }) => unfit === true,
        ({ reason }) => {
          const summary = `the result of ${call.name.slice(0, 64)} cannot be kept: ${reason}`
          const told: ToolResult = { status: "error", summary, duration_ms: result.duration_ms }
          return arbiter.commit({ type: "Result", lane, call_id: call.call_id, result: told })
        }
      ),
      Effect.ignore
    )

  const refuse = (
    lane: LaneId,
    call: OpenCall,
    { allowed, exhausted, reason }: Pick<Refused, "reason" | "exhausted" | "allowed">
  ): Effect.Effect<void, Exhausted> =>
    exhausted === undefined
      ? finish(lane, call, rejected(reason, allowed === undefined ? {} : { allowed }))
      : Effect.fail({ _tag: "Exhausted", limit: exhausted } as const)

  const proposedBy = (call: OpenCall): ModelToolCall | undefined => {
    const output = log.get(call.output_rev)
    return output.event_type === "ModelOutput"
      ? output.payload.tool_calls.find(({ call_id }) => call_id === call.call_id)
      : undefined
  }

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
      effect: isControl(tool) ? "workspace" : tool.effect,
      locks: prepared?.locks ?? [],
      allowed_tools: free ? undefined : allowed
    })
  }

  /** D30: what edge writes is committed before a job begins to read it. A skill moves once the calls beside it have ended. */
  const control = Effect.fnUntraced(function* (
    lane: LaneId,
    call: OpenCall,
    tool: ControlTool,
    input: ModelToolCall["input"]
  ) {
    const proposal = yield* tool.propose(input, call.call_id, lane)
    if (call.stage === "proposed") yield* request(lane, call, tool, input)
    if (proposal.type === "Spawn") yield* arbiter.until((state) => edgeWrites(state).length === 0)
    if (proposal.type === "StartSkill" || proposal.type === "MoveSkill")
      yield* arbiter.until((state) => isSkillTurn(state, lane, call))
    yield* arbiter.commit(proposal)
  })

  const seen = (lane: LaneId) => (path: string) => {
    const memory = laneOf(arbiter.state(), lane)
    return memory === undefined ? undefined : Option.getOrUndefined(HashMap.get(memory.seen, path))
  }

  const underLocks = Effect.fnUntraced(function* (
    lane: LaneId,
    call: OpenCall,
    tool: Tool,
    prepared: PreparedCall,
    grant: Grant,
    approval_id: ApprovalId | undefined,
    deadline: CallDeadline
  ) {
    const [committed] = yield* arbiter.commit({
      type: "Grant",
      lane,
      call_id: call.call_id,
      locks: grant.locks,
      dirty: yield* grant.dirty,
      readOnly: tool.readOnly,
      approval_id
    })
    const started = yield* Clock.currentTimeMillis
    // The intent barrier: an effect outside the machine happens only once choird knows that it is meant to (D3).
    const barrier =
      tool.effect === "external" && committed !== undefined ? replication.reached(committed.rev) : Effect.void
    const durable = yield* barrier.pipe(
      Effect.as(true),
      Effect.timeoutOrElse({ duration: yield* deadline.left, orElse: () => Effect.succeed(false) })
    )
    if (!durable)
      return yield* finish(lane, call, yield* deadline.passed("was not started: choird did not confirm the intent"))
    const run = prepared.run({ lane, call_id: call.call_id, seen: seen(lane) }).pipe(
      Effect.flatMap((outcome) =>
        Effect.map(Effect.all([Clock.currentTimeMillis, grant.dirty]), ([now, dirty]) =>
          resultOf(withoutSecrets(outcome, secrets), started, now, dirty)
        )
      ),
      Effect.catchDefect((defect) =>
        Effect.as(Effect.logError("a tool broke", { tool: tool.llm.name, defect }), {
          status: "error",
          summary: `${tool.llm.name} broke; this is a fault of the tool, not of the call`,
          duration_ms: 0
        } satisfies ToolResult)
      ),
      Effect.timeoutOrElse({ duration: yield* deadline.left, orElse: () => deadline.passed("did not end") })
    )
    yield* finish(lane, call, yield* run)
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
    const inSlot = Effect.fnUntraced(function* (grant: Grant) {
      const deadline = yield* makeCallDeadline(found.llm.name, prepared.timeout_ms)
      yield* slots
        .run(prepared.timeout_ms, underLocks(lane, call, found, prepared, grant, confirmed?.approval_id, deadline))
        .pipe(
          Effect.catchTag("SlotRefused", ({ message, reason }) =>
            reason === "full"
              ? finish(lane, call, rejected(message))
              : Effect.flatMap(deadline.passed("was not started: it got no turn"), (late) => finish(lane, call, late))
          )
        )
    })
    yield* locks.withLocks(lane, prepared.locks, { wait_ms }, inSlot)
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
    if (typeof input === "string") return yield* unfit(`the arguments of ${call.name} are not a JSON object`)
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
    closeOpen: (lane, status, why) =>
      Effect.forEach(
        open(lane),
        (call) => {
          // What leaves the machine may have left it before the interrupt came.
          const doubt =
            call.stage === "committed" && call.effect === "external" ? "; whether it took effect is not known" : ""
          return finish(lane, call, { status, summary: `${why}${doubt}`, duration_ms: 0 })
        },
        { discard: true }
      ),
    closeInDoubt: Effect.suspend(() => {
      const state = arbiter.state()
      const lanes = [EDGE, ...[...state.cores.values()].map(({ lane }) => lane)]
      const inDoubt = lanes.flatMap((lane) =>
        open(lane)
          .filter(({ effect, stage }) => stage === "committed" && effect !== "none")
          .map((call) => ({ lane, call }))
      )
      const summary =
        "the agent went down while this ran; whether it took effect is not known: check before you do it again, and tell the user"
      return Effect.forEach(
        inDoubt,
        ({ call, lane }) => finish(lane, call, { status: "unknown_after_crash", summary, duration_ms: 0 }),
        { discard: true }
      )
    })
  })
})
