/** A call that has its locks: it is committed, waits behind the intent barrier, runs, and has its result before the locks are free. */
import { Clock, Effect } from "effect"
import type { ApprovalId, LaneId } from "#schema/Ids.ts"
import { shownName } from "#schema/Tool.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { OpenCall } from "#src/shared/session/State.ts"
import { Arbiter } from "./Arbiter.ts"
import type { CallDeadline } from "./callDeadline.ts"
import type { CallEnds } from "./callEnds.ts"
import type { Grant } from "./LockManager.ts"
import { Replication } from "./Replication.ts"
import { SecretStore } from "./SecretStore.ts"
import { resultOf, type ToolResult, withoutSecrets } from "./toolResult.ts"
import type { PreparedCall, Tool } from "./tools/Tool.ts"

/** A checked call of a tool, and the approval that it goes on by, where it needed one. */
export interface ReadyCall {
  readonly lane: LaneId
  readonly call: OpenCall
  readonly tool: Tool
  readonly prepared: PreparedCall
  readonly approval_id: ApprovalId | undefined
}

export const makeGranted = Effect.fnUntraced(function* ({ finish, interrupted }: CallEnds) {
  const arbiter = yield* Arbiter
  const replication = yield* Replication
  const secrets = yield* SecretStore

  const seen = (lane: LaneId) => (path: string) => laneOf(arbiter.state(), lane)?.seen.get(path)

  const through = Effect.fnUntraced(function* (
    { approval_id, call, lane, prepared, tool }: ReadyCall,
    grant: Grant,
    deadline: CallDeadline,
    begin: () => void
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
    const run = Effect.suspend(() => {
      begin()
      return prepared.run({ lane, call_id: call.call_id, seen: seen(lane) })
    }).pipe(
      Effect.flatMap((outcome) =>
        Effect.map(Effect.all([Clock.currentTimeMillis, grant.dirty]), ([now, dirty]) =>
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
    return yield* finish(lane, call, yield* run)
  })

  return (ready: ReadyCall, grant: Grant, deadline: CallDeadline) =>
    Effect.suspend(() => {
      let began = false
      const begin = () => {
        began = true
      }
      return through(ready, grant, deadline, begin).pipe(
        Effect.onInterrupt(() => interrupted(ready.lane, ready.call, began))
      )
    })
})
