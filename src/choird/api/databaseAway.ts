/** What an operator is told when the database alone keeps choird from an answer (R3). */
import { Cause, Effect } from "effect"
import { SqlError } from "effect/sql"
import { mayPass, sqlProblem } from "#src/choird/database/sqlState.ts"
import { type HttpApp, refusalResponse } from "#src/shared/wire/http.ts"
import { DATABASE_RETRY_MS_MAX } from "#src/choird/database/DatabaseLock.ts"

/** The stores make defects of what the database answers. */
const awayIn = (cause: Cause.Cause<unknown>): SqlError.SqlError | undefined => {
  for (const reason of cause.reasons) {
    const error = reason._tag === "Fail" ? reason.error : reason._tag === "Die" ? reason.defect : undefined
    if (SqlError.isSqlError(error) && mayPass(error)) return error
  }
  return undefined
}

/** Names a database that is away, busy or full, with the time to ask again, where a defect would only have a reference into the log. */
export const tellingOfDatabase = (app: HttpApp): HttpApp =>
  Effect.catchCause(app, (cause) => {
    const error = awayIn(cause)
    if (error === undefined || Cause.hasInterrupts(cause)) return Effect.failCause(cause)
    const problem = sqlProblem(error)
    return Effect.as(
      Effect.logWarning("a request failed for the database", { problem }),
      refusalResponse({
        status: 500,
        type: "DATABASE_AWAY",
        message: `the database cannot do it now: ${problem}`,
        hint: "see that it runs and has space on its disk, then ask again; choirctl status says whether it answers",
        retry_after_ms: DATABASE_RETRY_MS_MAX
      })
    )
  })
