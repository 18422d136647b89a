/** Bringing agents to the newest commits of their repositories. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { ApiErrors, ErrorDetail } from "./ApiError.ts"
import { AgentId } from "./Ids.ts"
import { Progress } from "./Progress.ts"

/**
 * What became of one agent. `redeployed`: it runs on the newest image now. `built`: it has a new image and does not run. `skipped`: it
 * was up to date. `failed`: `error` says why; the agent is as it was, and one that did not come up from its new image
 * runs on the last one that worked.
 */
export const UpdateOutcome = Schema.Struct({
  agent_id: AgentId,
  outcome: Schema.Literals(["built", "redeployed", "skipped", "failed"]),
  image_version: Schema.NullOr(Schema.String),
  warnings: Schema.Array(Schema.String),
  error: Schema.optionalKey(ErrorDetail)
})
export type UpdateOutcome = typeof UpdateOutcome.Type

/** Steps as they happen; the last line has a row for each agent that was asked for. */
export const UpdateProgress = Progress(Schema.Array(UpdateOutcome))
export type UpdateProgress = typeof UpdateProgress.Type

const success = HttpApiSchema.StreamNdjson({ schema: UpdateProgress })

export const UpdateApi = HttpApiGroup.make("updates").add(
  HttpApiEndpoint.post("one", "/agents/:id/update", { params: { id: AgentId }, success, error: ApiErrors }),
  HttpApiEndpoint.post("all", "/update-all", { success, error: ApiErrors })
)
