/** What the fake choird answers to a reset. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { ApiError } from "#schema/ApiError.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import type { WorkspaceReset } from "#schema/SystemApi.ts"

export const fakeWorkspaces = (
  calls: Array<{ readonly name: string; readonly id?: string; readonly input?: unknown }>,
  answer: Effect.Effect<WorkspaceReset, ApiError>
) =>
  HttpApiBuilder.group(OperatorApi, "workspaces", (handlers) =>
    Effect.succeed(
      handlers.handleAll({
        reset: ({ params }) =>
          Effect.andThen(
            Effect.sync(() => calls.push({ name: "reset", id: params.name })),
            answer
          )
      })
    )
  )
