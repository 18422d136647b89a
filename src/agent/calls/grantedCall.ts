/** A call that has its locks: it is committed, waits behind the intent barrier and for its turn, runs, and has its result before the locks are free. */
import { Effect, Option } from "effect"
import type { ApprovalId, LaneId } from "#schema/Ids.ts"
import { shownName, type ToolName } from "#schema/Tool.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { OpenCall } from "#src/shared/session/State.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter, type Refused } from "#src/agent/arbiter/Arbiter.ts"
import type { CallEnds } from "./callEnds.ts"
import type { Grant } from "./LockManager.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { resultOf, type ToolResult, withoutSecrets } from "#src/agent/tools/toolResult.ts"
import type { SlotRefused } from "./ToolSlots.ts"
import type { PreparedCall, Tool } from "#src/agent/tools/Tool.ts"
import type { PayloadOf } from "#schema/Event.ts"

/** The deadline of a tool call (E12): one span for the wait for its turn, the intent barrier and the run. */
interface CallDeadline {
  /** Milliseconds until then, at least 0. */
  readonly left: Effect.Effect<number>
  /** The result of a call that went past it; `what` says in what it was. */
  passed(what: string): Effect.Effect<Omit<PayloadOf<"ToolResultCommitted">, "call_id">>
}

/** A deadline that begins now. */
export const makeCallDeadline = (tool: ToolName, timeout_ms: number): Effect.Effect<CallDeadline> =>
  Effect.map(monotonicMs, (began) => {
    const gone_ms = Effect.map(monotonicMs, (now) => now - began)
    return {
      left: Effect.map(gone_ms, (ms) => Math.max(0, timeout_ms - ms)),
      passed: (what) =>
        Effect.map(gone_ms, (duration_ms) => ({
          status: "timeout",
          summary: `${shownName(tool)} ${what} within ${timeout_ms} ms`,
          duration_ms
        }))
    }
  })

/** A checked call of a tool, and the approval that it goes on by, where it needed one. */
export interface ReadyCall {
  readonly lane: LaneId
  readonly call: OpenCall
  readonly tool: Tool
  readonly prepared: PreparedCall
  readonly approval_id: ApprovalId | undefined
}

/** Runs something when it is the call's turn. */
export type InSlot = <A, E, R>(use: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SlotRefused, R>

export const makeGranted = Effect.fnUntraced(function* ({ finish, interrupted }: CallEnds) {
  const arbiter = yield* Arbiter
  const replication = yield* Replication
  const secrets = yield* SecretStore
  const settings = yield* AgentSettings

  const seen = (lane: LaneId) => (path: string) => laneOf(arbiter.state(), lane)?.seen.get(path)

  const mayReachNetwork = ({ approval_id, lane }: ReadyCall): boolean =>
    approval_id !== undefined ||
    settings.current().config.approvals.confirm_external === "never" ||
    laneOf(arbiter.state(), lane)?.tainted === false

  const commit = Effect.fnUntraced(function* ({ approval_id, call, lane, tool }: ReadyCall, grant: Grant) {
    const [committed] = yield* arbiter.commit({
      type: "Grant",
      lane,
      call_id: call.call_id,
      locks: grant.locks,
      dirty: yield* grant.dirty,
      readOnly: tool.readOnly,
      approval_id
    })
    return committed
  })

  const run = Effect.fnUntraced(function* (ready: ReadyCall, grant: Grant, deadline: CallDeadline, begin: () => void) {
    const { call, lane, prepared, tool } = ready
    const started = yield* monotonicMs
    const result = Effect.suspend(() => {
      begin()
      return prepared.run({ lane, call_id: call.call_id, seen: seen(lane), network: mayReachNetwork(ready) })
    }).pipe(
      Effect.flatMap((outcome) =>
        Effect.map(Effect.all([monotonicMs, grant.dirty]), ([now, dirty]) =>
          resultOf(withoutSecrets(outcome, secrets), started, now, dirty)
        )
      ),
      Effect.catchDefect((defect) =>
        Effect.as(Effect.logError("a tool broke", { tool: tool.llm.name, defect }), {
          status: "error",
          summary: `${shownName(tool.llm.name)} broke; this is a fault of the tool, not of the call`,
          duration_ms: 0
        } satisfies ToolResult)
      ),
      Effect.timeoutOrElse({ duration: yield* deadline.left, orElse: () => deadline.passed("did not end") })
    )
    return yield* finish(lane, call, yield* result)
  })

  /**
   * The intent barrier: an effect outside the machine happens only once choird knows that it is meant to (D3). No turn is taken up by the
   * wait for that.
   */
  const behindBarrier = Effect.fnUntraced(function* (
    ready: ReadyCall,
    grant: Grant,
    deadline: CallDeadline,
    use: Effect.Effect<void, SlotRefused | Refused>
  ) {
    const committed = yield* commit(ready, grant)
    const barrier = committed === undefined ? Effect.void : replication.reached(committed.rev)
    const durable = yield* Effect.timeoutOption(barrier, yield* deadline.left)
    if (Option.isSome(durable)) return yield* use
    const late = yield* deadline.passed("was not started: choird did not confirm the intent")
    return yield* finish(ready.lane, ready.call, late)
  })

  return (ready: ReadyCall, grant: Grant, deadline: CallDeadline, inSlot: InSlot) =>
    Effect.suspend(() => {
      let began = false
      const begin = () => {
        began = true
      }
      const running = run(ready, grant, deadline, begin)
      const through =
        (ready.prepared.effect ?? ready.tool.effect) === "external"
          ? behindBarrier(ready, grant, deadline, inSlot(running))
          : inSlot(Effect.andThen(commit(ready, grant), running))
      return through.pipe(Effect.onInterrupt(() => interrupted(ready.lane, ready.call, began)))
    })
})
