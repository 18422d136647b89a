import type { SqlError } from "effect/sql"

const field = ({ reason }: SqlError.SqlError, name: string): string | undefined => {
  const value: unknown = Reflect.get(Object(reason.cause), name)
  return typeof value === "string" ? value : undefined
}

/** The server's five-character code of an error, or `undefined` when the error is not the server's. */
export const sqlState = (error: SqlError.SqlError): string | undefined => field(error, "code")

/** Whether the connection ended with the error. */
export const isConnectionLost = (error: SqlError.SqlError): boolean =>
  error.reason._tag === "ConnectionError" || field(error, "severityUnlocalized") === "FATAL"

const SHUTTING_DOWN_OR_FULL = /^(53|57|58)/u

/** Whether the same request may succeed later: the database is away, busy, starting or full. */
export const mayPass = (error: SqlError.SqlError): boolean =>
  error.isRetryable || SHUTTING_DOWN_OR_FULL.test(sqlState(error) ?? "")

/** The problem in the words of the server, the network or the client. */
export const sqlProblem = ({ message, reason }: SqlError.SqlError): string =>
  reason.cause instanceof Error && reason.cause.message !== "" ? reason.cause.message : message
