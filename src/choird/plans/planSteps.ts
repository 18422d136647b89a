/** The step of a plan whose time has come: the claim of its time, its message and its next time are one transaction. */
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { insertOutbox, Outbox } from "#src/choird/queues/Outbox.ts"
import type { Button } from "#src/choird/queues/OutboxForm.ts"
import { nextTime } from "#src/shared/plans/planTimes.ts"
import { decidePlan } from "./decidePlan.ts"
import {
  claimTime,
  movePlan,
  type PlanRow,
  readPlan,
  repeatingPlans,
  skippedTimes,
  slotSource,
  whenOf
} from "./planRows.ts"
import { unknownZone, UTC, zoneOfPlan } from "./planZone.ts"
import { planButtons } from "./planButtons.ts"
import { reminderText } from "./planText.ts"

/** The next time of a plan after an instant that nobody left out; undefined where there is none, and where its zone is not known. */
export const nextOf = Effect.fnUntraced(function* (plan: PlanRow, after_ms: number) {
  const zone = zoneOfPlan(plan)
  if (zone === undefined) return undefined
  const skipped = yield* skippedTimes(plan, after_ms)
  let next_ms = nextTime(whenOf(plan), zone, plan.created_ms, after_ms)
  while (next_ms !== undefined && skipped.has(next_ms)) next_ms = nextTime(whenOf(plan), zone, plan.created_ms, next_ms)
  return next_ms
})

export const makePlanSteps = Effect.gen(function* () {
  const config = yield* ConfigStore
  const onDatabase = yield* useDatabase
  const outbox = yield* Outbox
  const sql = yield* SqlClient.SqlClient

  /** Says what is due of a plan. The row is read again, since another order may have changed it. */
  const say = Effect.fnUntraced(function* (name: Pick<PlanRow, "agent_id" | "plan_id">) {
    const now_ms = yield* Clock.currentTimeMillis
    const plan = yield* readPlan(name.agent_id, name.plan_id)
    if (plan?.state !== "open" || plan.next_ms === null) return
    const { agent_id, dm, labelled } = plan
    const known = zoneOfPlan(plan)
    if (known === undefined && plan.kind !== "once")
      return yield* movePlan(
        plan,
        { state: "paused", reason: `its ${unknownZone(plan)}`, next_ms: plan.next_ms },
        now_ms
      )
    const zone = known ?? UTC
    const waiting = { when: whenOf(plan), zone, from_ms: plan.created_ms, next_ms: plan.next_ms }
    const decision = decidePlan(waiting, now_ms)
    if (decision === undefined) return
    const { missed, next_ms, slot_ms, state } = decision
    const { config: running } = yield* config.current
    const place = Object.hasOwn(running.dms, dm) ? running.dms[dm] : undefined
    if (place === undefined) {
      const reason = `its chat ${dm} is not in config.json`
      return yield* movePlan(plan, { state: "paused", reason, next_ms: plan.next_ms }, now_ms)
    }
    yield* movePlan(plan, { state: next_ms === undefined ? "ended" : "open", next_ms }, now_ms)
    if (!(yield* claimTime(plan, slot_ms, state, missed))) return
    const buttons: ReadonlyArray<ReadonlyArray<Button>> = [planButtons(plan, next_ms !== undefined)]
    const message = {
      agent_id,
      dm,
      gateway: place.gateway,
      session_id: null,
      in_reply_to: null,
      kind: "notice",
      source: "choird",
      source_id: slotSource(plan, slot_ms),
      text: reminderText(plan, decision, zone, now_ms),
      form: { buttons },
      labelled
    } as const
    yield* insertOutbox(running, [message])
    yield* sql.afterCommit(outbox.wake(dm))
  })

  /** Plans that repeat count from now again, once the host's clock was set back. */
  const realign = Effect.gen(function* () {
    const now_ms = yield* Clock.currentTimeMillis
    for (const row of yield* repeatingPlans()) {
      const next_ms = yield* nextOf(row, now_ms)
      if (next_ms !== undefined && row.next_ms !== null && next_ms < row.next_ms)
        yield* movePlan(row, { state: "open", next_ms }, now_ms)
    }
  })

  return {
    say: (name: Pick<PlanRow, "agent_id" | "plan_id">) => onDatabase(inTransaction(say(name))),
    realign: onDatabase(inTransaction(realign))
  }
})
