/** The plans of a choird that has one, and notes what it is asked. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { PlanId, type PlanSummary } from "#schema/Plan.ts"

export const PLAN: PlanSummary = {
  agent_id: AgentId.make("ada"),
  plan_id: PlanId.make(3),
  kind: "every",
  schedule: "weekdays at 08:00",
  zone: "Europe/Berlin",
  text: "stand-up",
  dm: ResourceName.make("phone"),
  state: "open",
  reason: null,
  next_at: "2026-01-05T07:00:00.000Z",
  made_by: "gateway:bot/phone",
  created_at: "2026-01-02T03:04:05.678Z",
  last: {
    at: "2026-01-02T07:00:00.000Z",
    state: "said",
    missed: 0,
    delivered_at: "2026-01-02T07:00:01.000Z",
    failure: null
  }
}

export const fakePlans = (calls: Array<{ readonly name: string; readonly input?: unknown }>) => {
  const noted = (name: string) => (input: { readonly params: unknown }) =>
    Effect.sync(() => {
      calls.push({ name, input: input.params })
      return PLAN
    })
  return HttpApiBuilder.group(OperatorApi, "plans", (handlers) =>
    Effect.succeed(
      handlers.handleAll({
        list: () => Effect.succeed([PLAN]),
        add: ({ params, payload }) =>
          Effect.sync(() => {
            calls.push({ name: "plan add", input: { ...params, ...payload } })
            return { plan: PLAN, doubt: null }
          }),
        show: () => Effect.succeed(PLAN),
        pause: noted("plan pause"),
        resume: noted("plan resume"),
        skip: noted("plan skip"),
        remove: noted("plan remove")
      })
    )
  )
}
