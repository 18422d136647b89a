/** Taps on the buttons below a reminder, by a person who may see it. */
import { Clock, Effect } from "effect"
import type { ResourceName } from "#schema/Ids.ts"
import { boundDms } from "#schema/ResourceBindings.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { isAdmin } from "#src/choird/approvals/decider.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { LATER_MS, type planTapped } from "#src/choird/plans/planButtons.ts"
import { sentence } from "./refusedAnswer.ts"
import { planLine } from "#src/choird/plans/planLine.ts"
import type { Named } from "#src/choird/plans/planOrders.ts"
import { Plans } from "#src/choird/plans/Plans.ts"
import type { SentAs } from "#src/choird/queues/Outbox.ts"
import { dmsOfPerson, isGroup } from "#src/shared/config/people.ts"

type PlanTap = Exclude<ReturnType<typeof planTapped>, undefined>

export const makePlanTaps = Effect.gen(function* () {
  const config = yield* ConfigStore
  const lifecycle = yield* Lifecycle
  const plans = yield* Plans

  /** Whether the plan goes to a chat of this person, or to the group in which they tapped, of an agent that talks with them. */
  const isSeen = Effect.fnUntraced(function* (
    { agent_id }: Named,
    chat: ResourceName,
    { dm, on }: { readonly dm: ResourceName; readonly on: SentAs | undefined }
  ) {
    const { config: running } = yield* config.current
    if (isAdmin(running, dm) || dmsOfPerson(running, dm).includes(chat)) return true
    // Anybody can send the data of a button.
    if (!isGroup(running, chat) || on?.chat_id !== running.dms[chat]?.user_id) return false
    const view = (yield* lifecycle.list).find((one) => one.agent_id === agent_id)
    return view?.bindings !== null && view !== undefined && boundDms(view.bindings).includes(dm)
  })

  return Effect.fnUntraced(function* (
    { action, agent_id, plan_id }: PlanTap,
    { dm, gateway }: { readonly dm: ResourceName; readonly gateway: ResourceName },
    { id, on }: { readonly id: string; readonly on: SentAs | undefined }
  ) {
    const named = { agent_id, plan_id }
    const found = yield* Effect.result(databaseDefect(plans.find(named)))
    if (found._tag === "Failure" || !(yield* isSeen(named, found.success.dm, { dm, on })))
      return { text: `There is no reminder ${plan_id} here.`, loud: true }
    const now_ms = yield* Clock.currentTimeMillis
    const who = `gateway:${gateway}/${dm}`
    const done = yield* Effect.result(
      databaseDefect(
        action === "stop"
          ? plans.order("remove", named, who)
          : plans.again(named, now_ms + LATER_MS, { who, request: `${gateway}:tap:${id}` })
      )
    )
    if (done._tag === "Failure") return { text: sentence(done.failure.message), loud: true }
    const { next = "" } = planLine(done.success, now_ms)
    const text = action === "stop" ? `Reminder ${plan_id} is removed.` : `I will remind you again ${next}.`
    return { text, loud: false }
  })
})
