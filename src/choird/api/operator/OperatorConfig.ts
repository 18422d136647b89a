/** The operator's endpoints about the configuration: load, diff, apply, rollback, history, and new secrets. */
import { Effect, Queue, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { LoadProgress } from "#schema/ConfigApi.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { Reconfiguration } from "#src/choird/reconfiguration/Reconfiguration.ts"
import { badRequest, fromConfigurationRefused } from "#src/choird/api/refusals.ts"

/** Steps of a load that an operator who reads slowly may be behind. */
const LOAD_STEPS_MAX = 16

const OPERATOR = "operator"

/** The integers of the database end at 2^31 - 1. */
const numbered = (version: number) =>
  Number.isInteger(version) && version > 0 && version < 2 ** 31
    ? Effect.succeed(version)
    : Effect.fail(badRequest("version must be a whole number from 1"))

/** The steps of a load as they happen. A load whose client has left is stopped, and stages nothing. */
const makeLoad = Effect.map(Reconfiguration, (configuration) =>
  Stream.callback<LoadProgress>(
    Effect.fnUntraced(function* (queue) {
      const progress = (text: string) => Effect.asVoid(Queue.offer(queue, { type: "step", text }))
      const last = yield* Effect.match(configuration.load(OPERATOR, progress), {
        onSuccess: (result): LoadProgress => ({ type: "done", result }),
        onFailure: (refused): LoadProgress => ({
          type: "failed",
          error: { type: refused.kind, message: refused.reason, hint: refused.hint },
          problems: refused.problems
        })
      })
      yield* Queue.offer(queue, last)
      yield* Queue.end(queue)
    }),
    { bufferSize: LOAD_STEPS_MAX, strategy: "suspend" }
  )
)

export const layerOperatorConfig = HttpApiBuilder.group(
  OperatorApi,
  "configuration",
  Effect.fnUntraced(function* (handlers) {
    const configuration = yield* Reconfiguration
    const load = yield* makeLoad
    return handlers.handleAll({
      load: () => Effect.succeed(load),
      diff: () => configuration.diff,
      apply: () => Effect.mapError(configuration.apply(OPERATOR), fromConfigurationRefused),
      plan: () => Effect.mapError(configuration.plan, fromConfigurationRefused),
      applyPlan: ({ payload }) =>
        Effect.mapError(configuration.applyPlan(OPERATOR, payload.plan), fromConfigurationRefused),
      rollback: Effect.fn("OperatorApi.rollback")(function* ({ payload }) {
        const version = yield* numbered(payload.version)
        return yield* Effect.mapError(configuration.rollback(OPERATOR, version), fromConfigurationRefused)
      }),
      history: () => configuration.history,
      version: Effect.fn("OperatorApi.version")(function* ({ params }) {
        const version = yield* numbered(params.version)
        return yield* Effect.mapError(configuration.version(version), fromConfigurationRefused)
      }),
      applySecrets: () => Effect.mapError(configuration.applySecrets(OPERATOR), fromConfigurationRefused)
    })
  })
)
