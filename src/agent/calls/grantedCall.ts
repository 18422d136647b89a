/**
 * A call that holds its locks: it is committed, waits for the intent barrier and for a slot, runs, and has its result before the locks
 * are released.
 */
import { Effect, Option } from "effect"
import type { ApprovalId, GrantId, LaneId } from "#schema/Ids.ts"
import { shownName, type ToolName } from "#schema/Tool.ts"
import type { WorkspaceLabel } from "#schema/WorkspaceLabel.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { OpenCall, SessionState } from "#src/shared/session/State.ts"
import { joinedOrigins, originOfLabel } from "#src/shared/session/workspaceLabel.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter, type Refused } from "#src/agent/arbiter/Arbiter.ts"
import type { Grant } from "./LockManager.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { finishCall, finishInterrupted, rejected, resultOf, type ToolResult } from "./callOutcomes.ts"
import { type SlotRefused, ToolSlots } from "./ToolSlots.ts"
import { Worktrees } from "#src/agent/git/Worktrees.ts"
import { type PreparedCall, type Tool, withoutSecrets } from "#src/agent/tools/Tool.ts"

/** The deadline of a tool call (E12): one span for the wait for a slot, the intent barrier and the run. */
interface CallDeadline {
  /** The remaining milliseconds, at least 0. */
  readonly left: Effect.Effect<number>
  /** The result of a call that exceeded it; `what` says in which stage. */
  passed(what: string): Effect.Effect<ToolResult>
}

/** A deadline that begins now. */
const makeCallDeadline = (tool: ToolName, timeout_ms: number): Effect.Effect<CallDeadline> =>
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

/** A checked call of a tool, with its approval where it needed one. */
export interface ReadyCall {
  readonly lane: LaneId
  readonly call: OpenCall
  readonly tool: Tool
  readonly prepared: PreparedCall
  readonly approval_id: ApprovalId | undefined
  readonly grant_id: GrantId | undefined
}

/** Whether it is worth to look at what a call changes: its lane is tainted, or may be at its end, and not all files have a label. */
const mayNarrow = (
  state: SessionState,
  lane: LaneId,
  label: WorkspaceLabel,
  { compares }: Pick<PreparedCall, "compares">
): boolean => {
  const known = joinedOrigins(originOfLabel(label), state)
  if (compares === undefined || known.workspace_tainted) return false
  const isLabelled = known.workspace_received || known.workspace_files.size > 0
  return compares.foreign || isLabelled || laneOf(state, lane)?.tainted === true
}

const commit = Effect.fnUntraced(function* ({ approval_id, call, grant_id, lane, prepared }: ReadyCall, grant: Grant) {
  const arbiter = yield* Arbiter
  const settings = yield* AgentSettings
  // What a job writes in a worktree comes to other paths by git.
  const isInTree = (yield* Worktrees).of(lane) !== undefined
  const [committed] = yield* arbiter.commit({
    type: "Grant",
    lane,
    call_id: call.call_id,
    locks: grant.locks,
    dirty: yield* grant.dirty,
    beside_jobs: prepared.besideJobs === true,
    approval_id,
    grant_id,
    writes: isInTree ? undefined : prepared.writes,
    compares: !isInTree && mayNarrow(arbiter.state(), lane, settings.situation().workspace_label, prepared)
  })
  return committed
})

const run = Effect.fnUntraced(function* (ready: ReadyCall, grant: Grant, deadline: CallDeadline, begin: () => void) {
  const { approval_id, call, lane, prepared, tool } = ready
  const arbiter = yield* Arbiter
  const secrets = yield* SecretStore
  const settings = yield* AgentSettings
  const memory = () => laneOf(arbiter.state(), lane)
  const doubt = (prepared.effect ?? tool.effect) === "external" ? ({ acted: "unknown" } as const) : {}
  const started = yield* monotonicMs
  const ended = Effect.suspend(() => {
    begin()
    const { confirm_external } = settings.current().config.approvals
    return prepared.run({
      lane,
      call_id: call.call_id,
      skill: memory()?.skill?.name,
      compares: memory()?.calls.find(({ call_id }) => call_id === call.call_id)?.compares === true,
      seen: (path) => memory()?.seen.get(path),
      network: approval_id !== undefined || confirm_external === "never" || memory()?.tainted === false
    })
  }).pipe(
    Effect.flatMap((outcome) =>
      Effect.map(Effect.all([monotonicMs, grant.dirty]), ([now, dirty]) => ({
        result: resultOf(withoutSecrets(outcome, secrets), started, now, dirty),
        sends: outcome.sends,
        files: outcome.files
      }))
    ),
    Effect.catchDefect((defect) =>
      Effect.as(Effect.logError("a tool crashed", { tool: tool.llm.name, defect }), {
        result: {
          status: "error",
          summary: `${shownName(tool.llm.name)} crashed; this is a fault of the tool, not of the call`,
          ...doubt,
          duration_ms: 0
        } satisfies ToolResult,
        sends: undefined,
        files: undefined
      })
    ),
    Effect.timeoutOrElse({
      duration: yield* deadline.left,
      orElse: () =>
        Effect.map(deadline.passed("did not end"), (late) => ({
          result: { ...late, ...doubt },
          sends: undefined,
          files: undefined
        }))
    })
  )
  const { result, ...more } = yield* ended
  return yield* finishCall(lane, call, result, more)
})

/** The intent barrier: an external effect happens only once choird has acknowledged its intent (D3). The wait occupies no slot. */
const behindBarrier = Effect.fnUntraced(function* <R>(
  ready: ReadyCall,
  grant: Grant,
  deadline: CallDeadline,
  use: Effect.Effect<void, SlotRefused | Refused, R>
) {
  const replication = yield* Replication
  const committed = yield* commit(ready, grant)
  const barrier = committed === undefined ? Effect.void : replication.reached(committed.rev)
  const durable = yield* Effect.timeoutOption(barrier, yield* deadline.left)
  if (Option.isSome(durable)) return yield* use
  const late = yield* deadline.passed("was not started: choird did not confirm the intent")
  return yield* finishCall(ready.lane, ready.call, late)
})

/** Takes a call from its locks to its result. */
export const runGranted = Effect.fnUntraced(function* (ready: ReadyCall, grant: Grant) {
  const { call, lane, prepared, tool } = ready
  const slots = yield* ToolSlots
  const deadline = yield* makeCallDeadline(tool.llm.name, prepared.timeout_ms)
  const inSlot = <A, E, R>(use: Effect.Effect<A, E, R>) =>
    Effect.flatMap(deadline.left, (left) => slots.run(lane, left, use))
  let began = false
  const begin = () => {
    began = true
  }
  const running = run(ready, grant, deadline, begin)
  const through =
    (prepared.effect ?? tool.effect) === "external"
      ? behindBarrier(ready, grant, deadline, inSlot(running))
      : inSlot(Effect.andThen(commit(ready, grant), running))
  return yield* through.pipe(
    Effect.onInterrupt(() => finishInterrupted(lane, call, began)),
    Effect.catchTag("SlotRefused", ({ message, reason }) =>
      reason === "full"
        ? finishCall(lane, call, rejected(message))
        : Effect.flatMap(deadline.passed("was not started: it got no slot"), (late) => finishCall(lane, call, late))
    )
  )
})
