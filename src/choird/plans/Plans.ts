/**
 * The plans of agents: reminders so far. choird owns the clock. Each time of a plan is one row, which is claimed in the transaction that stores its
 * message, so that a crash neither loses a time nor says it twice.
 */
import { Context, Effect, Layer, Queue, type Scope } from "effect"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import type { PlanSummary } from "#schema/Plan.ts"
import type { Source } from "#schema/Source.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import type { SentAs } from "#src/choird/queues/Outbox.ts"
import { unaskedPlace } from "#src/choird/queues/unaskedPlace.ts"
import { restarted } from "#src/shared/background.ts"
import {
  type Asked,
  findPlan,
  type Made,
  makePlanOrders,
  type Named,
  type Orderer,
  type PlanOrder
} from "./planOrders.ts"
import { makePlanLook } from "./planLook.ts"
import type { PlanRefused } from "./PlanRefused.ts"
import { listPlans, planAbout, sourcesOfPlans } from "./planRows.ts"

/** Plans of one list. */
const PLANS_LISTED_MAX = 500

type Changed = Effect.Effect<PlanSummary, PlanRefused | DatabaseAway>

export class Plans extends Context.Service<
  Plans,
  {
    /** Makes a plan. */
    make(asked: Asked): Effect.Effect<Made, PlanRefused | DatabaseAway>
    /** Makes a plan that says the words of another one once more. */
    again(plan: Named, at_ms: number, by: Orderer): Changed
    /** Pauses, resumes or removes a plan, or passes its next time over. */
    order(order: PlanOrder, plan: Named, who: string): Changed
    /** The plans of an agent, or of all; with `all` also those that are over. */
    list(agent_id: AgentId | undefined, all: boolean): Effect.Effect<ReadonlyArray<PlanSummary>, DatabaseAway>
    find(plan: Named): Changed
    /** The plan that a message in a chat was a time of. */
    about(gateway: ResourceName, message: SentAs): Effect.Effect<Named | undefined, DatabaseAway>
    /** The chat, of those that an agent is bound to, where nobody's message goes. */
    usualChat(
      agent_id: AgentId,
      dms: ReadonlyArray<ResourceName>
    ): Effect.Effect<ResourceName | undefined, DatabaseAway>
    /** Where text of an agent's plans came from, if that is outside. */
    sourcesOf(agent_id: AgentId): Effect.Effect<ReadonlyArray<Source>, DatabaseAway>
    /** Counts the times of repeating plans from now, as it has to be once the host's clock was set back. */
    readonly realign: Effect.Effect<void, DatabaseAway>
    /** Says what is due. */
    readonly look: Effect.Effect<void, DatabaseAway>
    /** Looks at each time, and every PLAN_LOOK_MS, for as long as the scope lives. */
    readonly run: Effect.Effect<void, never, Scope.Scope>
  }
>()("choir/choird/Plans") {
  static readonly layer = Layer.effect(
    Plans,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const config = yield* ConfigStore
  const onDatabase = yield* useDatabase
  const woken = yield* Queue.sliding<void>(1)
  const orders = yield* makePlanOrders(Queue.offer(woken, undefined))
  const { look, once, realign } = yield* makePlanLook(woken)
  return Plans.of({
    ...orders,
    list: Effect.fn("Plans.list")((agent_id: AgentId | undefined, all: boolean) =>
      onDatabase(listPlans(agent_id, { all, count_max: PLANS_LISTED_MAX }))
    ),
    about: Effect.fn("Plans.about")((gateway: ResourceName, message: SentAs) =>
      onDatabase(planAbout(gateway, message))
    ),
    find: (plan) => onDatabase(findPlan(plan)),
    usualChat: Effect.fn("Plans.usualChat")(function* (agent_id, dms) {
      const { config: running } = yield* config.current
      return (yield* onDatabase(unaskedPlace(running, agent_id, dms)))?.dm
    }),
    sourcesOf: (agent_id) => onDatabase(sourcesOfPlans(agent_id)),
    look,
    realign,
    run: Effect.asVoid(Effect.forkScoped(restarted("the look at plans")(Effect.forever(once))))
  })
})
