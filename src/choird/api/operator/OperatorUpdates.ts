/** Updates of agents, with their steps as they happen. */
import { Effect, Queue, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { OperatorApi } from "#schema/OperatorApi.ts"
import type { UpdateOutcome, UpdateProgress } from "#schema/UpdateApi.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { type Updated, Updates } from "#src/choird/agents/Updates.ts"
import { fromAgentRefused, refusedBuild } from "#src/choird/api/refusals.ts"

/** Steps of a build that wait for a slow reader. */
export const BUILD_STEPS_MAX = 16

const outcomeOf = ({ error, ...updated }: Updated): UpdateOutcome => {
  if (error === undefined) return updated
  if (error._tag !== "AgentRefused") return { ...updated, error: refusedBuild(error) }
  return { ...updated, error: { type: error.kind, message: error.reason, hint: error.hint } }
}

/** An update of which nobody wants to hear any more is stopped between two agents, or within a build. */
const steps = <E>(
  work: (progress: (line: string) => Effect.Effect<void>) => Effect.Effect<ReadonlyArray<Updated>, E>,
  refusal: (error: E) => Extract<UpdateProgress, { type: "failed" }>["error"]
) =>
  Stream.callback<UpdateProgress>(
    Effect.fnUntraced(function* (queue) {
      const last = yield* work((text) => Effect.asVoid(Queue.offer(queue, { type: "step", text }))).pipe(
        Effect.match({
          onSuccess: (rows) => ({ type: "done" as const, result: rows.map(outcomeOf) }),
          onFailure: (error) => ({ type: "failed" as const, error: refusal(error) })
        })
      )
      yield* Queue.offer(queue, last)
      yield* Queue.end(queue)
    }),
    { bufferSize: BUILD_STEPS_MAX, strategy: "suspend" }
  )

export const layerOperatorUpdates = HttpApiBuilder.group(
  OperatorApi,
  "updates",
  Effect.fnUntraced(function* (handlers) {
    const updates = yield* Updates
    const lifecycle = yield* Lifecycle
    return handlers.handleAll({
      one: ({ params }) =>
        Effect.mapError(lifecycle.view(params.id), fromAgentRefused).pipe(
          Effect.as(
            steps(
              (progress) => Effect.map(updates.one(params.id, progress), (row) => [row]),
              ({ hint, kind, reason }) => ({ type: kind, message: reason, hint })
            )
          )
        ),
      all: () =>
        Effect.succeed(
          steps(
            (progress) => updates.all(progress),
            (never: never) => never
          )
        )
    })
  })
)
