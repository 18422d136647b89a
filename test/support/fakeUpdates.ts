/** What the fake choird answers to updates. */
import { Effect, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { ApiError } from "#schema/ApiError.ts"
import type { AgentId } from "#schema/Ids.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import type { UpdateProgress } from "#schema/AgentsApi.ts"

type Steps = Effect.Effect<ReadonlyArray<UpdateProgress>, ApiError>

export const oneRedeployed = (agent_id: AgentId): Steps =>
  Effect.succeed([
    { type: "step", text: "restart on 0123456" },
    { type: "done", result: [{ agent_id, outcome: "redeployed", image_version: "0123456", warnings: [] }] }
  ])

export const fakeUpdates = (calls: Array<{ readonly name: string; readonly id?: string }>, answer: Steps) =>
  HttpApiBuilder.group(OperatorApi, "updates", (handlers) => {
    const steps = (call: { readonly name: string; readonly id?: string }) =>
      Effect.andThen(
        Effect.sync(() => calls.push(call)),
        Effect.map(answer, Stream.fromIterable)
      )
    return Effect.succeed(
      handlers.handleAll({
        one: ({ params }) => steps({ name: "update", id: params.id }),
        all: () => steps({ name: "update-all" })
      })
    )
  })
