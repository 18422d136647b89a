/** One session as its operator sees it: where it stands, what it is bound to, what its agent summed up. */
import { Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { EventStore, SessionUnknown } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { deletedText, SessionArchives } from "#src/choird/retention/SessionArchives.ts"
import { fromSessionUnknown, notFound } from "#src/choird/api/refusals.ts"

export const layerOperatorSessionDetail = HttpApiBuilder.group(
  OperatorApi,
  "session",
  Effect.fnUntraced(function* (handlers) {
    const archives = yield* SessionArchives
    const events = yield* EventStore
    const sessions = yield* SessionStore
    return handlers.handleAll({
      show: Effect.fn("OperatorApi.showSession")(function* ({ params: { id: session_id } }) {
        const row = yield* sessions.get(session_id)
        if (Option.isNone(row)) {
          const gone = Option.getOrUndefined(yield* archives.deleted(session_id))
          if (gone !== undefined) return yield* notFound("SESSION_DELETED", deletedText(gone), "choirctl session list")
          return yield* fromSessionUnknown(new SessionUnknown({ session_id }))
        }
        const { container: _, ...shown } = row.value
        const { hash: head, rev: last_rev } = yield* Effect.mapError(events.head(session_id), fromSessionUnknown)
        const newer = Option.map(yield* sessions.newer(session_id), ({ choird_version, event_type, rev, v }) => ({
          newer: { rev, v, event_type, choird_version }
        }))
        return {
          ...shown,
          ...Option.getOrUndefined(newer),
          last_rev,
          head,
          summary: Option.getOrNull(yield* sessions.summary(session_id))
        }
      })
    })
  })
)
