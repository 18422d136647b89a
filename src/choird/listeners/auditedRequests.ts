/** One audit row for each request that any part of an API refuses (R77). */
import { Effect, Option, Schema } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { AgentApi } from "#schema/AgentApi.ts"
import { ErrorDetail } from "#schema/ApiError.ts"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { answered, type HttpApp } from "#src/shared/wire/http.ts"
import { Audit, type AuditedRequest, type AuditEntry, CurrentAuditedRequest } from "#src/choird/logs/Audit.ts"

/** Characters of a refusal's message that its audit row keeps. */
const AUDIT_REASON_CHARS_MAX = 300

/** The asker and the action of a request, by its head alone. */
export type Asked = Pick<AuditEntry, "who" | "action" | "session_id" | "agent_id">

const decodeError = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ error: ErrorDetail })))

/** The reason that a refusal gives; it names no values of the request (schema/ApiError.ts). */
const why = ({ body, status }: HttpServerResponse.HttpServerResponse) => {
  const said =
    body._tag === "Uint8Array"
      ? decodeError(new TextDecoder().decode(body.body))
      : Option.none<{ error: ErrorDetail }>()
  return Option.match(said, {
    onNone: () => ({ refused: `HTTP_${status}` }),
    onSome: ({ error: { message, type } }) => ({
      refused: type,
      status,
      reason: message.slice(0, AUDIT_REASON_CHARS_MAX).toWellFormed().replaceAll(/\p{C}/gu, "?")
    })
  })
}

/** The function that audits an API. A part that refuses and records it with more detail has the only row. */
export const auditedRequests = Effect.map(
  Audit,
  (audit) =>
    (app: HttpApp, asked: (request: HttpServerRequest.HttpServerRequest, known: AuditedRequest) => Asked): HttpApp =>
      Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const known: AuditedRequest = { recorded: false, agent_id: undefined, session_id: undefined }
        const response = yield* Effect.provideService(answered(app), CurrentAuditedRequest, known)
        if (response.status >= 400 && !known.recorded)
          yield* audit.record({ ...asked(request, known), detail: why(response) })
        return response
      })
)

const PATH_PART = /^[a-z_-]{1,32}$/iu

/** The words of a request's path without its ids, which would make each refusal a kind of its own. */
const pathWords = (url: string) => {
  const [path = ""] = url.split("?", 1)
  const parts = path.split("/").filter((part) => part !== "")
  return { parts, words: parts.filter((part) => PATH_PART.test(part)).slice(0, 4) }
}

/** @param socket the session whose socket it is. The verbs of agents: `rpc.<VERB>`, `events`; anything else is one kind. */
export const askedByAgent =
  (socket: SessionId | undefined) =>
  ({ url }: HttpServerRequest.HttpServerRequest, known: AuditedRequest): Asked => {
    const { agent_id, session_id = socket } = known
    const { words } = pathWords(url)
    const [first, verb] = words
    const isVerb = first === "events" || (first === "rpc" && verb !== undefined && VERBS.has(verb))
    return {
      who: `agent:${agent_id ?? "unknown"}`,
      action: isVerb ? (first === "rpc" ? `rpc.${verb}` : "rpc.events") : "rpc.unknown",
      ...(session_id === undefined ? {} : { session_id }),
      ...(agent_id === undefined ? {} : { agent_id })
    }
  }
/** The verbs that exist: made-up ones would each be a kind of its own. */
const VERBS: ReadonlySet<string> = new Set(Object.keys(AgentApi.groups.rpc.endpoints))

const agentId = Schema.decodeUnknownOption(AgentId)
const sessionId = Schema.decodeUnknownOption(SessionId)

/** The request of an operator: `agents.start` with the agent, `sessions.inject` with the session. */
export const askedByOperator = ({ url }: HttpServerRequest.HttpServerRequest): Asked => {
  const { parts } = pathWords(url)
  const [group = "", id, verb] = parts
  const session_id = group === "sessions" ? Option.getOrUndefined(sessionId(id)) : undefined
  const agent_id = group === "agents" || group === "chat" ? Option.getOrUndefined(agentId(id)) : undefined
  const action = [group, verb].filter((part) => part !== undefined && PATH_PART.test(part)).join(".")
  return {
    who: "operator",
    action: action === "" ? "unknown" : action,
    ...(session_id === undefined ? {} : { session_id }),
    ...(agent_id === undefined ? {} : { agent_id })
  }
}
