/** The host tools of plans. A plan goes to the chat of the message that its agent works for. */
import { Clock, Effect, Option, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, InboxId, ResourceName } from "#schema/Ids.ts"
import type { Caller } from "#schema/AgentApi.ts"
import type { PlanSummary } from "#schema/Plan.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { rowId } from "#src/choird/database/rowId.ts"
import { failed, type HostOutcome, makeHostTool } from "#src/choird/hosttools/HostTool.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import {
  PlanCancelAnswer,
  PlanCancelInput,
  PlanListAnswer,
  PlanListInput,
  PlanSetAnswer,
  PlanSetInput
} from "#src/shared/plans/hostPlans.ts"
import { boundDms } from "#schema/ResourceBindings.ts"
import { planLine } from "./planLine.ts"
import type { PlanRefused } from "./PlanRefused.ts"
import { Plans } from "./Plans.ts"
import { seesPlan } from "./seesPlan.ts"

const PLAN_TOOL_MS_MAX = 10_000

const success = (output: Schema.Json): HostOutcome => ({ status: "success", output })

const encodeSet = Schema.encodeSync(PlanSetAnswer)
const encodeList = Schema.encodeSync(PlanListAnswer)
const encodeCancel = Schema.encodeSync(PlanCancelAnswer)

/** The chat of a message of the agent, if it is bound to it; else where nobody's message goes. Undefined where there is none. */
const makeChatOf = Effect.gen(function* () {
  const config = yield* ConfigStore
  const onDatabase = yield* useDatabase
  const plans = yield* Plans
  const sessions = yield* SessionStore
  const rowOf = Effect.fnUntraced(function* (agent_id: AgentId, inbox_id: InboxId) {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{ readonly dm: ResourceName }>`SELECT dm FROM choir_control.inbox
      WHERE agent_id = ${agent_id} AND inbox_id = ${rowId(inbox_id) ?? 0n}`
    return row?.dm
  })
  return Effect.fnUntraced(function* ({ agent_id, session_id }: Caller, inbox_id: InboxId | undefined) {
    const { config: running } = yield* config.current
    const asked = inbox_id === undefined ? undefined : yield* onDatabase(rowOf(agent_id, inbox_id))
    const session = Option.getOrUndefined(yield* sessions.get(session_id))
    const dms = session === undefined ? [] : boundDms(session.resource_bindings)
    if (asked === undefined || !Object.hasOwn(running.dms, asked)) return yield* plans.usualChat(agent_id, dms)
    return dms.includes(asked) ? asked : undefined
  })
})

const lineOf = (plan: PlanSummary) => Effect.map(Clock.currentTimeMillis, (now_ms) => planLine(plan, now_ms))

/** An answer in words where an order is refused. */
const answered = Effect.fnUntraced(function* <A>(
  work: Effect.Effect<A, PlanRefused | DatabaseAway>,
  answer: (done: A) => Effect.Effect<Schema.Json>
): Effect.fn.Return<HostOutcome, DatabaseAway> {
  const done = yield* Effect.result(work)
  if (done._tag === "Success") return success(yield* answer(done.success))
  return done.failure._tag === "DatabaseAway" ? yield* done.failure : failed("error", done.failure.message)
})

const makeSet = Effect.gen(function* () {
  const chatOf = yield* makeChatOf
  const plans = yield* Plans
  return makeHostTool({
    name: "choir.plan.set",
    effect: "none",
    timeout_ms: PLAN_TOOL_MS_MAX,
    input: PlanSetInput,
    run: Effect.fn("planTools.set")(function* (input, caller): Effect.fn.Return<HostOutcome, DatabaseAway> {
      const { call_id, inbox_id, sources = [], text, untrusted, when, zone } = input
      const { agent_id, session_id } = caller
      const dm = yield* chatOf(caller, inbox_id)
      if (dm === undefined)
        return failed("error", "the message is of no chat that this agent is bound to, so nobody can be reminded")
      const by = { made_by: `agent:${agent_id}`, request: `${session_id}:${call_id}` }
      const place = zone === undefined ? {} : { zone }
      const order = { agent_id, dm, words: when, text, labelled: untrusted, sources, ...by, ...place }
      return yield* answered(plans.make(order), ({ doubt, plan }) =>
        Effect.map(lineOf(plan), (line) => encodeSet({ plan: line, ...(doubt === undefined ? {} : { doubt }) }))
      )
    })
  })
})

/** Whether a plan is shown in the chat of a message. */
const makeIsSeen = Effect.gen(function* () {
  const chatOf = yield* makeChatOf
  const config = yield* ConfigStore
  return Effect.fnUntraced(function* (caller: Caller, inbox_id: InboxId | undefined) {
    const chat = yield* chatOf(caller, inbox_id)
    const { config: running } = yield* config.current
    return ({ dm }: PlanSummary) => chat !== undefined && seesPlan(running, chat, dm)
  })
})

const makeList = Effect.gen(function* () {
  const plans = yield* Plans
  const isSeen = yield* makeIsSeen
  return makeHostTool({
    name: "choir.plan.list",
    effect: "none",
    timeout_ms: PLAN_TOOL_MS_MAX,
    input: PlanListInput,
    run: Effect.fn("planTools.list")(function* ({ inbox_id }, caller) {
      const rows = (yield* plans.list(caller.agent_id, false)).filter(yield* isSeen(caller, inbox_id))
      const sources = yield* plans.sourcesOf(caller.agent_id)
      return success(encodeList({ plans: yield* Effect.forEach(rows, lineOf), sources }))
    })
  })
})

const makeCancel = Effect.gen(function* () {
  const plans = yield* Plans
  const isSeen = yield* makeIsSeen
  return makeHostTool({
    name: "choir.plan.cancel",
    effect: "none",
    timeout_ms: PLAN_TOOL_MS_MAX,
    input: PlanCancelInput,
    run: Effect.fn("planTools.cancel")(function* (
      { inbox_id, plan_id, untrusted },
      caller
    ): Effect.fn.Return<HostOutcome, DatabaseAway> {
      const { agent_id } = caller
      const named = { agent_id, plan_id }
      const found = yield* Effect.result(plans.find(named))
      const plan = found._tag === "Success" ? found.success : undefined
      if (plan !== undefined && !(yield* isSeen(caller, inbox_id))(plan))
        return failed("error", `there is no reminder ${plan_id} in this chat; choir-plan-list shows those that are`)
      // A page that the agent has read may ask for anything.
      if (untrusted && plan !== undefined && !plan.made_by.startsWith("agent:")) {
        const why = `a person set reminder ${plan_id}, and you have read text from outside`
        return failed("error", `${why}; they can send /cancel plan ${plan_id}`)
      }
      const ended = plan?.state === "removed" ? Effect.succeed(plan) : plans.order("remove", named, `agent:${agent_id}`)
      return yield* answered(ended, (gone) => Effect.map(lineOf(gone), (line) => encodeCancel({ plan: line })))
    })
  })
})

/** All of them. */
export const planTools = Effect.all([makeSet, makeList, makeCancel])
