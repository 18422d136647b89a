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

/**
 * The classes of a row too many, of data, of a constraint and of a limit of the server: statements that are otherwise taken fail so by what they
 * hold alone. A table or a right that is missing (42), a database that is read-only (25) or damaged (XX) is not the fault of an event.
 */
const CONTENT = /^(21|22|23|54)/u

/** Whether the server refuses the content of a request: it would refuse it each time. */
export const refusesContent = (error: SqlError.SqlError): boolean => CONTENT.test(sqlState(error) ?? "")

/** Whether only a change of the database ends the error: neither waiting nor another request does. */
export const isLasting = (error: SqlError.SqlError): boolean =>
  !isConnectionLost(error) && !mayPass(error) && !refusesContent(error)

const WITHOUT_TLS = /does not support (?:TLS|SSL)/u
const CERTIFICATE = /certificate|CERT|self.signed|unable to verify|altnames/u

/**
 * Why a connection fails that the client takes for one to try again: each try would end the same way. `tls` is a server without it,
 * `certificate` one whose certificate is not accepted, `url` an address with a word that the client does not know.
 */
export const lastingConnectionProblem = (error: SqlError.SqlError): "tls" | "certificate" | "url" | undefined => {
  if (error.reason._tag !== "ConnectionError") return undefined
  const words = `${sqlProblem(error)} ${sqlState(error) ?? ""}`
  if (WITHOUT_TLS.test(words)) return "tls"
  if (CERTIFICATE.test(words)) return "certificate"
  return words.includes("Unrecognized") ? "url" : undefined
}

/** The problem in the words of the server, the network or the client. */
export const sqlProblem = ({ message, reason }: SqlError.SqlError): string =>
  reason.cause instanceof Error && reason.cause.message !== "" ? reason.cause.message : message
