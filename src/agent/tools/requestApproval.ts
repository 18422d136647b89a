/** The one way to ask choird for a person's decision about a call: a call to be confirmed and a proposal ask alike. */
import { Effect, Result } from "effect"
import type { ApprovalId } from "#schema/Ids.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { type ApprovalRequest, ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { Replication } from "#src/agent/control/Replication.ts"

/**
 * Asks until choird answers, at its pace while it is away: the same call is one approval however often it asks (D17). With `change`, which ends
 * when it is time to ask again, it asks until the approval is decided.
 */
export const makeRequestApproval = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const plane = yield* ControlPlane
  const replication = yield* Replication
  return Effect.fn("requestApproval")(function* (
    request: ApprovalRequest,
    change?: (approval_id: ApprovalId) => Effect.Effect<unknown>
  ) {
    // choird compares what it is asked about with the log that it has.
    yield* replication.reached(arbiter.state().rev)
    while (true) {
      const asked = yield* Effect.result(plane.approval(request))
      if (Result.isFailure(asked)) {
        if (asked.failure._tag === "Denied") return yield* asked.failure
        yield* Effect.sleep(asked.failure.wait_ms)
        continue
      }
      if (change === undefined || asked.success.status !== "pending") return asked.success
      yield* change(asked.success.approval_id)
    }
  })
})
