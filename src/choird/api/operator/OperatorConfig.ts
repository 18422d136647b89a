/** The operator's endpoints about the configuration: load, diff, apply, rollback, history, and new secrets. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { Reconfiguration } from "#src/choird/reconfiguration/Reconfiguration.ts"
import { badRequest, fromConfigurationRefused } from "#src/choird/api/refusals.ts"
import { progressStream } from "./progressStream.ts"

const OPERATOR = "operator"

/** The integers of the database end at 2^31 - 1. */
const numbered = (version: number) =>
  Number.isInteger(version) && version > 0 && version < 2 ** 31
    ? Effect.succeed(version)
    : Effect.fail(badRequest("version must be a whole number from 1"))

/** The steps of a load. One whose client has left stages nothing. */
const makeLoad = Effect.map(Reconfiguration, (configuration) =>
  progressStream((step) =>
    Effect.match(configuration.load(OPERATOR, step), {
      onSuccess: (result) => ({ type: "done" as const, result }),
      onFailure: (refused) => ({
        type: "failed" as const,
        error: { type: refused.kind, message: refused.reason, hint: refused.hint },
        problems: refused.problems
      })
    })
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
