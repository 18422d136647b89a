/** The operator's endpoints about plans. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { randomUUID } from "node:crypto"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { boundDms } from "#schema/ResourceBindings.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { fromAgentRefused, conflict, notFound } from "#src/choird/api/refusals.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import type { Named } from "#src/choird/plans/planOrders.ts"
import { Plans } from "#src/choird/plans/Plans.ts"
import type { PlanRefused } from "#src/choird/plans/PlanRefused.ts"
import { usualDms } from "#src/choird/gateway/Pairings.ts"

const WHO = "operator"

const fromPlanRefused = ({ kind, message }: PlanRefused) => {
  if (kind === "UNKNOWN_PLAN") return notFound(kind, message, "choirctl plan list")
  return kind === "UNKNOWN_DM"
    ? notFound(kind, message, "choirctl dm list")
    : conflict(kind, message, "choirctl plan add --help shows how times are written")
}

export const layerOperatorPlans = HttpApiBuilder.group(
  OperatorApi,
  "plans",
  Effect.fnUntraced(function* (handlers) {
    const config = yield* ConfigStore
    const lifecycle = yield* Lifecycle
    const plans = yield* Plans

    const order =
      (what: "pause" | "resume" | "remove" | "skip") =>
      ({
        params: { id, plan }
      }: {
        readonly params: { readonly id: Named["agent_id"]; readonly plan: Named["plan_id"] }
      }) =>
        Effect.mapError(databaseDefect(plans.order(what, { agent_id: id, plan_id: plan }, WHO)), fromPlanRefused)

    return handlers.handleAll({
      list: ({ query: { agent_id, all } }) => databaseDefect(plans.list(agent_id, all === "true")),
      add: Effect.fn("OperatorApi.addPlan")(function* ({ params: { id }, payload: { dm, text, when, zone } }) {
        const { bindings } = yield* Effect.mapError(lifecycle.view(id), fromAgentRefused)
        const { config: running } = yield* config.current
        const bound = bindings === null ? usualDms(running, id) : boundDms(bindings)
        const chat = dm ?? (yield* databaseDefect(plans.usualChat(id, bound)))
        if (chat === undefined)
          return yield* notFound("UNKNOWN_DM", `${id} has no chat, so nobody can be reminded`, "choirctl dm list")
        const by = { made_by: WHO, request: `${WHO}:${randomUUID()}` }
        const asked = { agent_id: id, dm: chat, words: when, text, labelled: false, ...by }
        const made = databaseDefect(plans.make(zone === undefined ? asked : { ...asked, zone }))
        const { doubt = null, plan } = yield* Effect.mapError(made, fromPlanRefused)
        return { plan, doubt }
      }),
      show: ({ params: { id, plan } }) =>
        Effect.mapError(databaseDefect(plans.find({ agent_id: id, plan_id: plan })), fromPlanRefused),
      pause: order("pause"),
      resume: order("resume"),
      skip: order("skip"),
      remove: order("remove")
    })
  })
)
