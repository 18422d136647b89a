/** What the fake choird answers to orders about workspaces. */
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
        trust: ({ params: { name } }) =>
          Effect.sync(() => {
            calls.push({ name: "trust", id: name })
            return {
              name,
              path: "/home/me/work",
              label: { received: true, written_from: ["web:evil.example"] }
            } as const
          }),
        reset: ({ params }) =>
          Effect.andThen(
            Effect.sync(() => calls.push({ name: "reset", id: params.name })),
            answer
          )
      })
    )
  )
