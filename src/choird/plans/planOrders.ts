/** The orders of people and agents about plans: one is made, said again later, paused, resumed, skipped or removed. */
import { Clock, DateTime, Effect, Option, Result } from "effect"
import type { Config } from "#schema/Config.ts"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import {
  PLAN_TEXT_CHARS_MAX,
  PLANS_MADE_A_DAY_MAX,
  PLANS_OPEN_MAX,
  type PlanId,
  type PlanSummary
} from "#schema/Plan.ts"
import type { Source } from "#schema/Source.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { zoneOf } from "#src/shared/config/people.ts"
import { DAY_MS } from "#src/shared/days.ts"
import { nextTime } from "#src/shared/plans/planTimes.ts"
import { readWhen } from "#src/shared/plans/readWhen.ts"
import type { When } from "#src/shared/plans/When.ts"
import { hostZone } from "#src/shared/text/localTime.ts"
import { PlanRefused } from "./PlanRefused.ts"
import {
  claimTime,
  countPlans,
  insertPlan,
  listPlans,
  movePlan,
  openOfRequests,
  planOfRequest,
  type PlanRow,
  readPlan,
  scheduleOf
} from "./planRows.ts"
import { nextOf } from "./planSteps.ts"
import { unknownZone, zoneOfPlan } from "./planZone.ts"

/** An order to remind somebody. */
export interface Asked {
  readonly agent_id: AgentId
  readonly dm: ResourceName
  /** The words for the time, with the text beside them where `text` is absent. */
  readonly words: string
  readonly text?: string
  readonly zone?: string
  /** Whether text from outside was in sight of the one who asks, and where that came from. */
  readonly labelled: boolean
  readonly sources?: ReadonlyArray<Source>
  readonly made_by: string
  /** The same request makes one plan. */
  readonly request: string
}

/** A plan as it was made, and what was unclear in the words for its time. */
export interface Made {
  readonly plan: PlanSummary
  readonly doubt?: string
}

export type PlanOrder = "pause" | "resume" | "remove" | "skip"

/** A plan by its agent and number. */
export interface Named {
  readonly agent_id: AgentId
  readonly plan_id: PlanId
}

/** The person who gives an order, and the request that does it once. */
export interface Orderer {
  readonly who: string
  readonly request: string
}

/** Two orders to say a plan again at times as close as this are one. */
const SAME_AGAIN_MS = 60_000

const refused = (kind: PlanRefused["kind"], message: string) => new PlanRefused({ kind, message })

const unknown = ({ agent_id, plan_id }: Named) =>
  refused("UNKNOWN_PLAN", `there is no plan ${plan_id} of ${agent_id}; /next and choirctl plan list show them`)

/** A plan as lists show it. */
export const findPlan = Effect.fnUntraced(function* (plan: Named) {
  const [row] = yield* listPlans(plan.agent_id, { all: true, plan_id: plan.plan_id, count_max: 1 })
  return row ?? (yield* unknown(plan))
})

/** The times and the words of an order, by the clock of its chat. */
const readTime = Effect.fnUntraced(function* (running: Config, { dm, text, words, zone }: Asked, now_ms: number) {
  if (!Object.hasOwn(running.dms, dm)) return yield* refused("UNKNOWN_DM", `there is no chat ${dm} in config.json`)
  const name = zone ?? zoneOf(running, dm) ?? hostZone()
  const named = Option.getOrElse(DateTime.zoneMakeNamed(name), () => DateTime.zoneMakeLocal())
  const read = readWhen(words, { now_ms, zone: named })
  if (Result.isFailure(read)) return yield* refused("UNCLEAR_TIME", read.failure)
  const { doubt, rest, when } = read.success
  // What the database cannot store.
  const said = (text ?? rest).toWellFormed().replaceAll("\u0000", "\uFFFD").trim()
  if (said === "") return yield* refused("NO_TEXT", "write what to be reminded of beside the time")
  if (said.length > PLAN_TEXT_CHARS_MAX)
    return yield* refused("NO_TEXT", `a reminder may have ${PLAN_TEXT_CHARS_MAX} characters`)
  if (text !== undefined && rest !== "")
    return yield* refused("UNCLEAR_TIME", `"${rest}" is not a part of a time; write the time alone`)
  const next_ms = nextTime(when, named, now_ms, now_ms)
  if (next_ms === undefined) return yield* refused("UNCLEAR_TIME", "this time has passed; write one that is to come")
  return { when, zone: name, said, next_ms, ...(doubt === undefined ? {} : { doubt }) }
})

/** Stores a plan once for its request. */
const store = Effect.fnUntraced(function* (
  asked: Omit<Asked, "words" | "text" | "zone">,
  time: { readonly when: When; readonly zone: string; readonly said: string; readonly next_ms: number },
  now_ms: number
) {
  const { agent_id, dm, labelled, made_by, request, sources = [] } = asked
  const known = yield* planOfRequest(agent_id, request)
  if (known !== undefined) return known
  const { made, open } = yield* countPlans(agent_id, now_ms - DAY_MS)
  if (open >= PLANS_OPEN_MAX)
    return yield* refused(
      "TOO_MANY",
      `${agent_id} has ${PLANS_OPEN_MAX} plans already; /next lists them, and one that is removed makes room`
    )
  if (made >= PLANS_MADE_A_DAY_MAX)
    return yield* refused(
      "TOO_MANY",
      `${PLANS_MADE_A_DAY_MAX} plans were made for ${agent_id} within a day, which is the limit`
    )
  const { next_ms, said, when, zone } = time
  const schedule = scheduleOf(when)
  const row = { agent_id, dm, kind: when.kind, schedule, zone, text: said, labelled, sources, made_by, request }
  return yield* insertPlan({ ...row, next_ms, created_ms: now_ms })
})

/** The plan of a request that comes again once its time has passed. */
const planMade = ({ agent_id, request }: Asked, refusal: PlanRefused) =>
  Effect.flatMap(planOfRequest(agent_id, request), (known) =>
    known === undefined ? Effect.fail(refusal) : Effect.succeed(known)
  )

/** The change of a plan that an order makes. */
const change = Effect.fnUntraced(function* (order: PlanOrder, row: PlanRow, now_ms: number) {
  const isOpen = row.state === "open" || row.state === "paused"
  if (!isOpen) return yield* refused("NOT_OPEN", `plan ${row.plan_id} is over`)
  if ((order === "resume" || order === "skip") && row.kind !== "once" && zoneOfPlan(row) === undefined)
    return yield* refused("UNCLEAR_TIME", `the ${unknownZone(row)}; remove the plan, and set it again in another zone`)
  switch (order) {
    case "pause":
      return yield* movePlan(row, { state: "paused", next_ms: row.next_ms ?? undefined }, now_ms)
    case "remove":
      return yield* movePlan(row, { state: "removed", next_ms: undefined }, now_ms)
    case "resume": {
      const next_ms = row.kind === "once" ? (row.next_ms ?? undefined) : yield* nextOf(row, now_ms)
      return yield* movePlan(row, { state: "open", next_ms }, now_ms)
    }
    case "skip": {
      const slot_ms = row.next_ms ?? now_ms
      yield* claimTime(row, slot_ms, "skipped", 0)
      const next_ms = row.kind === "once" ? undefined : yield* nextOf(row, Math.max(slot_ms, now_ms))
      return yield* movePlan(row, { state: next_ms === undefined ? "ended" : row.state, next_ms }, now_ms)
    }
  }
})

export const makePlanOrders = (wake: Effect.Effect<unknown>) =>
  Effect.gen(function* () {
    const config = yield* ConfigStore
    const audit = yield* Audit
    const onDatabase = yield* useDatabase

    const made = Effect.fnUntraced(function* (plan: Named, who: string, action: string) {
      yield* wake
      const { agent_id, plan_id } = plan
      yield* audit.record({ who, action, agent_id, detail: { plan_id }, repeats: action })
      return yield* onDatabase(findPlan(plan))
    })

    const makePlan = Effect.fn("Plans.make")(function* (asked: Asked) {
      const now_ms = yield* Clock.currentTimeMillis
      const read = yield* Effect.result(readTime((yield* config.current).config, asked, now_ms))
      const row = yield* onDatabase(
        inTransaction(Result.isSuccess(read) ? store(asked, read.success, now_ms) : planMade(asked, read.failure))
      )
      const doubt = Result.isSuccess(read) ? read.success.doubt : undefined
      const plan = yield* made(row, asked.made_by, "plan.make")
      return { plan, ...(doubt === undefined ? {} : { doubt }) } satisfies Made
    })

    const again = Effect.fn("Plans.again")(function* (plan: Named, at_ms: number, by: Orderer) {
      const now_ms = yield* Clock.currentTimeMillis
      const work = Effect.gen(function* () {
        const row = yield* readPlan(plan.agent_id, plan.plan_id)
        if (row === undefined) return yield* unknown(plan)
        const { agent_id, dm, labelled, sources, text, zone } = row
        const prefix = `again:${row.plan_id}:`
        // A second tap in a row means the same.
        const waiting = yield* openOfRequests(agent_id, prefix, at_ms - SAME_AGAIN_MS, at_ms)
        if (waiting !== undefined) return waiting
        const asked = { agent_id, dm, labelled, sources, made_by: by.who, request: `${prefix}${by.request}` }
        return yield* store(asked, { when: { kind: "once", at_ms }, zone, said: text, next_ms: at_ms }, now_ms)
      })
      return yield* made(yield* onDatabase(inTransaction(work)), by.who, "plan.again")
    })

    const orderPlan = Effect.fn("Plans.order")(function* (order: PlanOrder, plan: Named, who: string) {
      const now_ms = yield* Clock.currentTimeMillis
      const work = Effect.flatMap(readPlan(plan.agent_id, plan.plan_id), (row) =>
        row === undefined ? Effect.fail(unknown(plan)) : change(order, row, now_ms)
      )
      yield* onDatabase(inTransaction(work))
      return yield* made(plan, who, `plan.${order}`)
    })

    return { make: makePlan, again, order: orderPlan }
  })
