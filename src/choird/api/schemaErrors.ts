import { Effect, type Layer } from "effect"
import { HttpApiMiddleware } from "effect/http-api"
import { SchemaErrors } from "#schema/SchemaErrors.ts"
import { logDefect } from "#src/shared/defects.ts"
import { API_PROBLEM_CHARS_MAX } from "#src/shared/limits.ts"
import { badRequest, internal } from "#src/choird/api/refusals.ts"

/** A request that does not decode is 400, with the path and never the value; a reply that does not encode is a defect. */
export const layerSchemaErrors: Layer.Layer<SchemaErrors> = HttpApiMiddleware.layerSchemaErrorTransform(
  SchemaErrors,
  ({ cause, kind }, { endpoint }) =>
    kind === "Body" || kind === "ResponseHeaders"
      ? Effect.flatMap(logDefect(`the reply to ${endpoint.identifier} does not encode`, cause), (ref) =>
          Effect.fail(internal(ref))
        )
      : Effect.fail(badRequest(`${kind.toLowerCase()}: ${cause.message}`.slice(0, API_PROBLEM_CHARS_MAX)))
)
