/**
 * The plans of agents: reminders so far. choird owns the clock. Each time of a plan is one row, which is claimed in the transaction that stores its
 * message, so that a crash neither loses a time nor says it twice.
 */
import { Clock, Context, DateTime, Effect, Exit, Layer, Option, Queue, Result, type Scope } from "effect"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import { PLANS_MADE_A_DAY_MAX, PLANS_OPEN_MAX, type PlanId, type PlanSummary } from "#schema/Plan.ts"
import type { Source } from "#schema/Source.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type DatabaseAway, inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { unaskedPlace } from "#src/choird/queues/unaskedPlace.ts"
import { restarted } from "#src/shared/background.ts"
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
  duePlans,
  endPlansBut,
  insertPlan,
  listPlans,
  movePlan,
  nextOfAll,
  planOfRequest,
  type PlanRow,
  readPlan,
  scheduleOf,
  sourcesOfPlans
} from "./planRows.ts"
import { makePlanSteps, nextOf } from "./planSteps.ts"

/** The longest time between two looks. A host that slept, and a clock that was set, are noticed within it. */
const PLAN_LOOK_MS = 15_000
/** Plans of one look. */
const PLANS_DUE_MAX = 200
/** Plans of one list. */
export const PLANS_LISTED_MAX = 500
/** Failures of one plan in a row after which it is paused. */
const PLAN_FAILURES_MAX = 5

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

type Order = "pause" | "resume" | "remove" | "skip"

export class Plans extends Context.Service<
  Plans,
  {
    /** Makes a plan. */
    make(asked: Asked): Effect.Effect<Made, PlanRefused | DatabaseAway>
    /** Makes a plan that says the words of another one once more, in some minutes. */
    again(plan: Named, minutes: number, by: { who: string; request: string }): Changed
    /** Pauses, resumes or removes a plan, or passes its next time over. */
    order(order: Order, plan: Named, who: string): Changed
    /** The plans of an agent, or of all; with `all` also those that are over. */
    list(agent_id: AgentId | undefined, all: boolean): Effect.Effect<ReadonlyArray<PlanSummary>, DatabaseAway>
    find(plan: Named): Changed
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

export interface Named {
  readonly agent_id: AgentId
  readonly plan_id: PlanId
}

type Changed = Effect.Effect<PlanSummary, PlanRefused | DatabaseAway>

const refused = (kind: PlanRefused["kind"], message: string) => new PlanRefused({ kind, message })

const unknown = ({ agent_id, plan_id }: Named) =>
  refused("UNKNOWN_PLAN", `there is no plan ${plan_id} of ${agent_id}; /next and choirctl plan list show them`)

const make = Effect.gen(function* () {
  const config = yield* ConfigStore
  const audit = yield* Audit
  const onDatabase = yield* useDatabase
  const steps = yield* makePlanSteps
  const woken = yield* Queue.sliding<void>(1)
  const wake = Queue.offer(woken, undefined)
  const failures = new Map<string, number>()

  const find = Effect.fnUntraced(function* (plan: Named) {
    const [row] = yield* listPlans(plan.agent_id, { all: true, plan_id: plan.plan_id, count_max: 1 })
    return row ?? (yield* unknown(plan))
  })

  const readTime = Effect.fnUntraced(function* ({ dm, text, words, zone }: Asked, now_ms: number) {
    const { dms } = (yield* config.current).config
    if (!Object.hasOwn(dms, dm)) return yield* refused("UNKNOWN_DM", `there is no chat ${dm} in config.json`)
    const name = zone ?? zoneOf((yield* config.current).config, dm) ?? hostZone()
    const named = Option.getOrElse(DateTime.zoneMakeNamed(name), () => DateTime.zoneMakeLocal())
    const read = readWhen(words, { now_ms, zone: named })
    if (Result.isFailure(read)) return yield* refused("UNCLEAR_TIME", read.failure)
    const { doubt, rest, when } = read.success
    const said = (text ?? rest).trim()
    if (said === "") return yield* refused("NO_TEXT", "write what to be reminded of beside the time")
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

  const made = Effect.fnUntraced(function* (plan: Named, who: string, action: string) {
    yield* wake
    const { agent_id, plan_id } = plan
    yield* audit.record({ who, action, agent_id, detail: { plan_id }, repeats: action })
    return yield* onDatabase(find(plan))
  })

  const makePlan = Effect.fn("Plans.make")(function* (asked: Asked) {
    const now_ms = yield* Clock.currentTimeMillis
    const { doubt, ...time } = yield* readTime(asked, now_ms)
    const row = yield* onDatabase(inTransaction(store(asked, time, now_ms)))
    const plan = yield* made(row, asked.made_by, "plan.make")
    return { plan, ...(doubt === undefined ? {} : { doubt }) } satisfies Made
  })

  const again = Effect.fn("Plans.again")(function* (
    plan: Named,
    minutes: number,
    by: { who: string; request: string }
  ) {
    const now_ms = yield* Clock.currentTimeMillis
    const at_ms = now_ms + minutes * 60_000
    const work = Effect.gen(function* () {
      const row = yield* readPlan(plan.agent_id, plan.plan_id)
      if (row === undefined) return yield* unknown(plan)
      const { agent_id, dm, labelled, sources, text, zone } = row
      const asked = { agent_id, dm, labelled, sources, made_by: by.who, request: by.request }
      return yield* store(asked, { when: { kind: "once", at_ms }, zone, said: text, next_ms: at_ms }, now_ms)
    })
    return yield* made(yield* onDatabase(inTransaction(work)), by.who, "plan.again")
  })

  /** The change of a plan that an order makes. */
  const change = Effect.fnUntraced(function* (order: Order, row: PlanRow, now_ms: number) {
    const isOpen = row.state === "open" || row.state === "paused"
    if (!isOpen) return yield* refused("NOT_OPEN", `plan ${row.plan_id} is over`)
    switch (order) {
      case "pause":
        return yield* movePlan(row, { state: "paused", next_ms: row.next_ms ?? undefined }, now_ms)
      case "remove":
        return yield* movePlan(row, { state: "removed", next_ms: undefined }, now_ms)
      case "resume": {
        const next_ms = row.kind === "once" ? (row.next_ms ?? undefined) : nextOf(row, now_ms)
        return yield* movePlan(row, { state: "open", next_ms }, now_ms)
      }
      case "skip": {
        const slot_ms = row.next_ms ?? now_ms
        yield* claimTime(row, slot_ms, "skipped", 0)
        const next_ms = row.kind === "once" ? undefined : nextOf(row, Math.max(slot_ms, now_ms))
        return yield* movePlan(row, { state: next_ms === undefined ? "ended" : row.state, next_ms }, now_ms)
      }
    }
  })

  const orderPlan = Effect.fn("Plans.order")(function* (order: Order, plan: Named, who: string) {
    const now_ms = yield* Clock.currentTimeMillis
    const work = Effect.flatMap(readPlan(plan.agent_id, plan.plan_id), (row) =>
      row === undefined ? Effect.fail(unknown(plan)) : change(order, row, now_ms)
    )
    yield* onDatabase(inTransaction(work))
    return yield* made(plan, who, `plan.${order}`)
  })

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
      Effect.andThen(Effect.logWarning("plans are looked at again later", cause), Effect.sleep(PLAN_LOOK_MS))
    )
  )

  return Plans.of({
    make: makePlan,
    again,
    order: orderPlan,
    list: Effect.fn("Plans.list")((agent_id: AgentId | undefined, all: boolean) =>
      onDatabase(listPlans(agent_id, { all, count_max: PLANS_LISTED_MAX }))
    ),
    find: (plan) => onDatabase(find(plan)),
    usualChat: Effect.fn("Plans.usualChat")(function* (agent_id, dms) {
      const { config: running } = yield* config.current
      return (yield* onDatabase(unaskedPlace(running, agent_id, dms)))?.dm
    }),
    sourcesOf: (agent_id) => onDatabase(sourcesOfPlans(agent_id)),
    realign: steps.realign,
    look,
    run: Effect.asVoid(Effect.forkScoped(restarted("the look at plans")(Effect.forever(once))))
  })
})
