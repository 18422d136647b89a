/** The look at plans whose time has come, again and again. */
import { Clock, Effect, Exit, Queue } from "effect"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import type { Named } from "./planOrders.ts"
import { duePlans, endPlansBut, movePlan, nextOfAll } from "./planRows.ts"
import { makePlanSteps } from "./planSteps.ts"

/** The longest time between two looks. A host that slept, and a clock that was set, are noticed within it. */
const PLAN_LOOK_MS = 15_000
/** Plans of one look. */
const PLANS_DUE_MAX = 200
/** Failures of one plan in a row after which it is paused. */
const PLAN_FAILURES_MAX = 5

/** @param woken by each order, since the next time may be another one then. */
export const makePlanLook = Effect.fnUntraced(function* (woken: Queue.Queue<void>) {
  const config = yield* ConfigStore
  const onDatabase = yield* useDatabase
  const steps = yield* makePlanSteps
  const failures = new Map<string, number>()

  /** One plan whose step fails again and again is paused, so that the others go on. */
  const failed = Effect.fnUntraced(function* ({ agent_id, plan_id }: Named) {
    const name = `${agent_id}:${plan_id}`
    const count = (failures.get(name) ?? 0) + 1
    failures.set(name, count)
    if (count < PLAN_FAILURES_MAX) return
    failures.delete(name)
    const now_ms = yield* Clock.currentTimeMillis
    const reason = `it failed ${PLAN_FAILURES_MAX} times; choirctl logs choird says why`
    yield* onDatabase(
      inTransaction(movePlan({ agent_id, plan_id }, { state: "paused", reason, next_ms: now_ms }, now_ms))
    )
  })

  const look = Effect.gen(function* () {
    const now_ms = yield* Clock.currentTimeMillis
    yield* onDatabase(endPlansBut(Object.keys((yield* config.current).config.agents), now_ms))
    for (const plan of yield* onDatabase(duePlans(now_ms, PLANS_DUE_MAX))) {
      const said = yield* Effect.exit(steps.say(plan))
      if (Exit.isSuccess(said)) continue
      if (Exit.hasInterrupts(said)) return yield* Effect.interrupt
      if (Exit.hasFails(said)) return yield* said
      yield* Effect.logError(`plan ${plan.plan_id} of ${plan.agent_id} failed`, said.cause)
      yield* failed(plan)
    }
  })

  /** Waits for the next time, an order, or PLAN_LOOK_MS. */
  const pause = Effect.gen(function* () {
    const now_ms = yield* Clock.currentTimeMillis
    const next_ms = (yield* onDatabase(nextOfAll())) ?? Infinity
    yield* Effect.timeoutOption(Queue.take(woken), Math.min(PLAN_LOOK_MS, Math.max(0, next_ms - now_ms)))
  })

  let last_ms = 0
  const watchClock = Effect.gen(function* () {
    const now_ms = yield* Clock.currentTimeMillis
    if (now_ms < last_ms || last_ms === 0) yield* steps.realign
    last_ms = now_ms
  })

  const once = Effect.gen(function* () {
    yield* watchClock
    yield* look
    yield* pause
  }).pipe(
    Effect.catchTag("DatabaseAway", (cause) =>
      Effect.andThen(Effect.logWarning("plans are checked again later", cause), Effect.sleep(PLAN_LOOK_MS))
    )
  )

  return { look, realign: steps.realign, once }
})
