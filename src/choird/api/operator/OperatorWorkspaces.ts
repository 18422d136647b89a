/** Resetting the folders that agents work in. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { Workspaces } from "#src/choird/agents/Workspaces.ts"
import { fromWorkspaceRefused } from "#src/choird/api/refusals.ts"

export const layerOperatorWorkspaces = HttpApiBuilder.group(
  OperatorApi,
  "workspaces",
  Effect.fnUntraced(function* (handlers) {
    const workspaces = yield* Workspaces
    return handlers.handleAll({
      reset: ({ params }) => Effect.mapError(workspaces.reset(params.name), fromWorkspaceRefused)
    })
  })
)
