/** What was refused, and what changed who may do what, for the operator to read. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { AUDIT_LISTED_MAX } from "#src/shared/limits.ts"
import { badRequest } from "#src/choird/api/refusals.ts"

/** Rows of a listing that does not say how many. */
const LISTED = 100

export const layerOperatorAudit = HttpApiBuilder.group(
  OperatorApi,
  "audit",
  Effect.fnUntraced(function* (handlers) {
    const audit = yield* Audit
    return handlers.handleAll({
      list: Effect.fn("OperatorApi.audit")(function* ({ query: { agent_id, last = LISTED } }) {
        if (!Number.isInteger(last) || last < 0 || last > AUDIT_LISTED_MAX)
          return yield* badRequest(`last is a whole number from 0 to ${AUDIT_LISTED_MAX}`)
        return yield* audit.last({ count: last, ...(agent_id === undefined ? {} : { agent_id }) })
      })
    })
  })
)
