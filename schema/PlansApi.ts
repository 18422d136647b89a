/** The operator's endpoints about plans. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { ApiErrors } from "./ApiError.ts"
import { AgentId } from "./Ids.ts"
import { NewPlan, PlanId, PlanSummary } from "./Plan.ts"

const error = ApiErrors
const PlanOfPath = Schema.NumberFromString.pipe(Schema.decodeTo(PlanId))
const one = { params: { id: AgentId, plan: PlanOfPath }, success: PlanSummary, error } as const

/** A plan with the doubt about the words for its time, if there was one. */
export const PlanMade = Schema.Struct({ plan: PlanSummary, doubt: Schema.NullOr(Schema.String) })
export type PlanMade = typeof PlanMade.Type

export const PlansApi = HttpApiGroup.make("plans").add(
  HttpApiEndpoint.get("list", "/plans", {
    query: { agent_id: Schema.optionalKey(AgentId), all: Schema.optionalKey(Schema.Literals(["true", "false"])) },
    success: Schema.Array(PlanSummary),
    error
  }),
  HttpApiEndpoint.post("add", "/agents/:id/plans", {
    params: { id: AgentId },
    payload: NewPlan,
    success: PlanMade,
    error
  }),
  HttpApiEndpoint.get("show", "/agents/:id/plans/:plan", one),
  HttpApiEndpoint.post("pause", "/agents/:id/plans/:plan/pause", one),
  HttpApiEndpoint.post("resume", "/agents/:id/plans/:plan/resume", one),
  HttpApiEndpoint.post("skip", "/agents/:id/plans/:plan/skip", one),
  HttpApiEndpoint.post("remove", "/agents/:id/plans/:plan/remove", one)
)
