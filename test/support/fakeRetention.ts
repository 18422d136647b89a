/** What the fake choird answers to pruning, and to sessions that are named, archived and deleted. */
import { Effect, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { NotFound } from "#schema/ApiError.ts"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import type { PruneReport } from "#schema/SystemApi.ts"

const HEAD = "ab".repeat(32)

export const pruneReport: PruneReport = {
  dry_run: false,
  kinds: [
    { kind: "messages", removed: 12 },
    { kind: "logs", removed: 2, bytes: 3 * 1024 ** 2 },
    { kind: "audit", removed: 0 }
  ],
  disk_free_bytes: 5 * 1024 ** 3
}

export const fakeRetention = (
  calls: Array<{ readonly name: string; readonly id?: string; readonly input?: unknown }>,
  session_id: SessionId,
  agent_id: AgentId
) => {
  const noted = (call: (typeof calls)[number]) => Effect.sync(() => void calls.push(call))
  return HttpApiBuilder.group(OperatorApi, "retention", (handlers) =>
    Effect.succeed(
      handlers.handleAll({
        prune: ({ payload }) =>
          Effect.as(
            noted({ name: "prune", input: payload }),
            Stream.make(
              { type: "step", text: "messages" } as const,
              { type: "done", result: { ...pruneReport, dry_run: payload.dry_run } } as const
            )
          ),
        find: ({ params: { name } }) =>
          name === agent_id || session_id.startsWith(name)
            ? Effect.succeed({ session_id })
            : Effect.fail(new NotFound({ error: { type: "UNKNOWN_SESSION", message: `${name} is no session` } })),
        archive: ({ params }) =>
          Effect.as(noted({ name: "archive", id: params.id }), {
            session_id,
            agent_id,
            last_rev: 12,
            head: HEAD,
            path: "/home/archive/file",
            bytes: 2048
          }),
        delete: ({ params }) =>
          Effect.as(noted({ name: "delete", id: params.id }), {
            session_id,
            agent_id,
            last_rev: 12,
            head: HEAD,
            deleted_at: "2026-01-02T03:04:05.678Z"
          })
      })
    )
  )
}
