import type { PgClient } from "@effect/sql-pg"
import { Cause, Effect } from "effect"
import { SqlError } from "effect/sql"
import { isConnectionLost } from "./sqlState.ts"

const lostConnection = (cause: Cause.Cause<unknown>): SqlError.SqlError | undefined => {
  for (const reason of cause.reasons) {
    if (!Cause.isDieReason(reason)) continue
    const { defect } = reason
    if (SqlError.isSqlError(defect) && isConnectionLost(defect)) return defect
  }
  return undefined
}

/**
 * The client, whose transactions fail with the `SqlError` when their connection dies. By itself the client makes a defect of every
 * failure, the work's own too, since it cannot roll back on a dead connection; the server has long done so.
 */
export const withTypedTransactions = (client: PgClient.PgClient): PgClient.PgClient => {
  const { withTransaction } = client
  return Object.assign(client, {
    withTransaction: <R, E, A>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
      Effect.catchCause(withTransaction(work), (cause) => {
        const lost = lostConnection(cause)
        if (lost === undefined) return Effect.failCause(cause)
        const interrupts = cause.reasons.filter(Cause.isInterruptReason)
        return interrupts.length > 0 ? Effect.failCause(Cause.fromReasons(interrupts)) : Effect.fail(lost)
      })
  })
}
