/**
 * The wait of a tool call for a person (D31). choird keeps the decision; here a call only asks for it: again when choird says that it
 * was made, and from time to time, since a signal can be missed. A call that waits holds no lock and no turn.
 */
import { Context, Deferred, Effect, Layer, Result } from "effect"
import type { ConfirmTool } from "#schema/Approval.ts"
import type { ApprovalId, CallId, GrantId } from "#schema/Ids.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { type Denied, RPC_RETRY_MS } from "#src/agent/control/verbAnswer.ts"
import { makeRequestApproval } from "#src/agent/tools/requestApproval.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"

/** How often a call that waits for a person asks choird while no decision arrives. */
const APPROVAL_POLL_MS = 10_000
/** How long such a call waits beyond the time that a person has, for choird to come back and say so. */
export const APPROVAL_GRACE_MS = 60_000
/** Decisions that came before the call knew that it waits for them. */
const APPROVALS_REMEMBERED_MAX = 256

export type Confirmation =
  | { readonly type: "approved"; readonly approval_id: ApprovalId; readonly grant_id?: GrantId }
  /** The call must not run; `reason` is a sentence for the model. */
  | { readonly type: "refused"; readonly reason: string }
  /** The agent stops, so that nobody waits any more. */
  | { readonly type: "stopped" }

/** Asks choird for people's decisions. */
export class Confirmations extends Context.Service<
  Confirmations,
  {
    /**
     * Waits for the decision about a call whose request is committed. The same call gets the same decision in every epoch. Ends at
     * the latest APPROVAL_GRACE_MS after the time that a person has (`approvals.timeout_ms`).
     */
    ask(call_id: CallId, call: ConfirmTool): Effect.Effect<Confirmation>
    /** An approval was decided: the call that waits for it asks again. */
    resolved(approval_id: ApprovalId): Effect.Effect<void>
    /** Ends every wait, those that begin later included. */
    readonly stop: Effect.Effect<void>
  }
>()("choir/agent/Confirmations") {
  static readonly layer = Layer.effect(
    Confirmations,
    Effect.suspend(() => make())
  )
}

/** The reason is the person's own words. */
const rejected = (reason: string | undefined) =>
  `a person refused this call${reason === undefined ? "" : ` and said ${JSON.stringify(reason)}`}; do something else, or ask the user what to do`
const EXPIRED = "nobody approved this call in time, so it did not run; tell the user before you try it again"

const denied = ({ reason }: Denied): Confirmation => ({
  type: "refused",
  reason: `this call needs a person's approval, which could not be asked for: ${reason}`
})

const make = Effect.fnUntraced(function* () {
  const requestApproval = yield* makeRequestApproval
  const settings = yield* AgentSettings
  const stopped = yield* Deferred.make<void>()
  const waiting = new Map<ApprovalId, Deferred.Deferred<void>>()
  // A decision may arrive before the answer that the call has to wait for it.
  const told = new BoundedMap<ApprovalId, true>(APPROVALS_REMEMBERED_MAX)

  const change = (approval_id: ApprovalId) =>
    Effect.suspend(() => {
      if (told.delete(approval_id)) return Effect.sleep(RPC_RETRY_MS)
      const decided = Deferred.makeUnsafe<void>()
      waiting.set(approval_id, decided)
      return Effect.ensuring(
        Effect.timeoutOption(Deferred.await(decided), APPROVAL_POLL_MS),
        Effect.sync(() => waiting.delete(approval_id))
      )
    })

  const decision = Effect.fnUntraced(function* (call_id: CallId, call: ConfirmTool) {
    const request = { request_type: "confirm_tool", call_id, payload: call } as const
    const asked = yield* Effect.result(requestApproval(request, change))
    if (Result.isFailure(asked)) return denied(asked.failure)
    const { approval_id, grant_id, reason, status } = asked.success
    const granted = grant_id === undefined ? {} : { grant_id }
    if (status === "approved") return { type: "approved", approval_id, ...granted } as const
    return { type: "refused", reason: status === "rejected" ? rejected(reason) : EXPIRED } as const
  })

  return Confirmations.of({
    ask: Effect.fn("Confirmations.ask")(function* (call_id, call) {
      const { timeout_ms } = settings.current().config.approvals
      const ended: Effect.Effect<Confirmation> = Effect.as(Deferred.await(stopped), { type: "stopped" })
      return yield* Effect.raceFirst(decision(call_id, call), ended).pipe(
        Effect.timeoutOrElse({
          duration: timeout_ms + APPROVAL_GRACE_MS,
          orElse: () => Effect.succeed<Confirmation>({ type: "refused", reason: EXPIRED })
        })
      )
    }),
    resolved: (approval_id) =>
      Effect.suspend(() => {
        const decided = waiting.get(approval_id)
        if (decided !== undefined) return Effect.asVoid(Deferred.succeed(decided, undefined))
        told.setInPlace(approval_id, true)
        return Effect.void
      }),
    stop: Effect.asVoid(Deferred.succeed(stopped, undefined))
  })
})
