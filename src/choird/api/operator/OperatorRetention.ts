/** The operator's endpoints about retention: prune now, archive or delete a session, and find one by a short name. */
import { Effect, Option, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { Retention } from "#src/choird/retention/Retention.ts"
import { SessionArchives, type SessionKept } from "#src/choird/retention/SessionArchives.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { badRequest, conflict, notFound } from "#src/choird/api/refusals.ts"
import { progressStream } from "./progressStream.ts"

const LIST = "choirctl session list"
const PREFIX = /^[0-9a-hjkmnp-tv-z]{1,16}$/u

const fromSessionKept = ({ hint, kind, reason }: SessionKept) =>
  kind === "UNKNOWN_SESSION" || kind === "SESSION_DELETED" ? notFound(kind, reason, hint) : conflict(kind, reason, hint)

const isSessionId = Schema.is(SessionId)
const isAgentId = Schema.is(AgentId)

/** Finds the session of an id, else of an agent's name, else of the beginning of an id. */
const makeFind = Effect.map(SessionStore, (sessions) =>
  Effect.fnUntraced(function* (name: string) {
    if (isSessionId(name)) return name
    const latest = isAgentId(name) ? Option.getOrUndefined(yield* sessions.latest(name)) : undefined
    if (latest !== undefined) return latest.session_id
    const [one, other] = PREFIX.test(name) ? yield* sessions.beginningWith(name) : []
    if (one === undefined)
      return yield* notFound(
        "UNKNOWN_SESSION",
        `${name} is not a session id, the start of one, or an agent with a session`,
        LIST
      )
    if (other !== undefined)
      return yield* conflict(
        "SESSION_AMBIGUOUS",
        `several sessions begin with ${name}: ${one}, ${other} and maybe more`,
        LIST
      )
    return one
  })
)

export const layerOperatorRetention = HttpApiBuilder.group(
  OperatorApi,
  "retention",
  Effect.fnUntraced(function* (handlers) {
    const archives = yield* SessionArchives
    const retention = yield* Retention
    const find = yield* makeFind
    return handlers.handleAll({
      prune: ({ payload: { dry_run } }) =>
        Effect.succeed(
          progressStream((step) =>
            Effect.map(databaseDefect(retention.prune({ dry_run, who: "operator", step })), (result) => ({
              type: "done" as const,
              result
            }))
          )
        ),
      find: Effect.fn("OperatorApi.findSession")(function* ({ params: { name } }) {
        if (name.length > 80) return yield* badRequest("a session's name is at most 80 characters")
        return { session_id: yield* databaseDefect(find(name)) }
      }),
      archive: ({ params }) =>
        Effect.mapError(databaseDefect(archives.archive(params.id, "operator")), fromSessionKept),
      delete: ({ params }) => Effect.mapError(databaseDefect(archives.remove(params.id, "operator")), fromSessionKept)
    })
  })
)
