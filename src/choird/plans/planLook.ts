/** The look at plans whose time has come, again and again. */
import { Clock, Effect, Exit, Queue } from "effect"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import type { Named } from "./planOrders.ts"
import { duePlans, endPlansBut, movePlan, nextOfAll, readPlan } from "./planRows.ts"
import { makePlanSteps } from "./planSteps.ts"

/** The longest time between two looks. A host that slept, and a clock that was set, are noticed within it. */
const PLAN_LOOK_MS = 15_000
/** Plans of one look. */
const PLANS_DUE_MAX = 200
/** Failures of one plan in a row after which it is paused. */
const PLAN_FAILURES_MAX = 5

const nameOf = ({ agent_id, plan_id }: Named) => `${agent_id}:${plan_id}`

/** @param woken by each order, since the next time may be another one then. */
export const makePlanLook = Effect.fnUntraced(function* (woken: Queue.Queue<void>) {
  const config = yield* ConfigStore
  const onDatabase = yield* useDatabase
  const steps = yield* makePlanSteps
  const failures = new Map<string, number>()

  /** One plan whose step fails again and again is paused, so that the others go on. */
  const failed = Effect.fnUntraced(function* ({ agent_id, plan_id }: Named) {
    const name = nameOf({ agent_id, plan_id })
    const count = (failures.get(name) ?? 0) + 1
    failures.set(name, count)
    if (count < PLAN_FAILURES_MAX) return
    failures.delete(name)
    const now_ms = yield* Clock.currentTimeMillis
    const reason = `it failed ${PLAN_FAILURES_MAX} times; choirctl logs choird says why`
    const pausePlan = Effect.gen(function* () {
      const plan = yield* readPlan(agent_id, plan_id)
      if (plan?.state === "open")
        yield* movePlan(plan, { state: "paused", reason, next_ms: plan.next_ms ?? undefined }, now_ms)
    })
    yield* onDatabase(inTransaction(pausePlan))
  })

  /** Answers the time after which it has to look again. */
  const look = Effect.gen(function* () {
    const now_ms = yield* Clock.currentTimeMillis
    yield* onDatabase(endPlansBut(Object.keys((yield* config.current).config.agents), now_ms))
    const due = yield* onDatabase(duePlans(now_ms, PLANS_DUE_MAX))
    let hasFailed = false
    for (const plan of due) {
      const said = yield* Effect.exit(steps.say(plan))
      if (Exit.isSuccess(said)) {
        failures.delete(nameOf(plan))
        continue
      }
      if (Exit.hasInterrupts(said)) return yield* Effect.interrupt
      if (Exit.hasFails(said)) return yield* Effect.failCause(said.cause)
      yield* Effect.logError(`plan ${plan.plan_id} of ${plan.agent_id} failed`, said.cause)
      hasFailed = true
      yield* failed(plan)
    }
    // What failed waits for the next look, so that a reason that passes soon pauses nothing.
    return due.length < PLANS_DUE_MAX || hasFailed ? now_ms : 0
  })

  /** Waits for the next time after an instant, an order, or PLAN_LOOK_MS. */
  const pause = Effect.fnUntraced(function* (after_ms: number) {
    const now_ms = yield* Clock.currentTimeMillis
    const next_ms = (yield* onDatabase(nextOfAll(after_ms))) ?? Infinity
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
    yield* pause(yield* look)
  }).pipe(
    Effect.catchTag("DatabaseAway", (cause) =>
      Effect.andThen(Effect.logWarning("plans are checked again later", cause), Effect.sleep(PLAN_LOOK_MS))
    )
  )

  return { look: Effect.asVoid(look), realign: steps.realign, once }
})
