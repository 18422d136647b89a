/** Emptying the folders that agents work in. Their list is part of the system's. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { ApiErrors } from "./ApiError.ts"
import { AgentId, ResourceName } from "./Ids.ts"

/** A folder with nothing in it any more. */
export const WorkspaceReset = Schema.Struct({
  name: ResourceName,
  path: Schema.String,
  /** The agent that was stopped for it. */
  stopped: Schema.NullOr(AgentId)
})
export type WorkspaceReset = typeof WorkspaceReset.Type

export const WorkspaceApi = HttpApiGroup.make("workspaces").add(
  /** Stops the agent that holds the workspace first. */
  HttpApiEndpoint.post("reset", "/workspaces/:name/reset", {
    params: { name: ResourceName },
    success: WorkspaceReset,
    error: ApiErrors
  })
)
