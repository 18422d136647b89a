/** The beginnings of answers that models are still writing: passed on to the people who wait, and never stored (docs/protocol.md, REPORT_STATUS). */
import { Context, Effect, Layer, PubSub, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { Draft } from "#schema/AgentApi.ts"
import type { AgentId, InboxId, ResourceName } from "#schema/Ids.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { rowId } from "#src/choird/database/rowId.ts"

/** Drafts that wait for a slow reader; it loses the oldest, and each is longer than the one before. */
const DRAFTS_BUFFERED_MAX = 64

/** A draft with the person whom it is for. */
export interface ShownDraft extends Draft {
  readonly agent_id: AgentId
  readonly dm: ResourceName
}

/** Passes drafts on. */
export class Drafts extends Context.Service<
  Drafts,
  {
    /** Passes a draft on to the DM that its message came from. A draft for a message that is not this agent's is dropped. */
    put(agent_id: AgentId, draft: Draft): Effect.Effect<void, DatabaseAway>
    /** The DM that a message of the agent came from; `undefined` for a message that is not its own. */
    dmOf(agent_id: AgentId, inbox_id: InboxId): Effect.Effect<ResourceName | undefined, DatabaseAway>
    /** The drafts from now on. */
    readonly changes: Stream.Stream<ShownDraft>
  }
>()("choir/choird/Drafts") {
  static readonly layer = Layer.effect(
    Drafts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const onDatabase = yield* useDatabase
      const shown = yield* PubSub.sliding<ShownDraft>(DRAFTS_BUFFERED_MAX)
      // The place of each agent's newest message, since a draft comes several times a second.
      const places = new Map<AgentId, { readonly inbox_id: InboxId; readonly dm: ResourceName }>()

      const place = Effect.fnUntraced(function* (agent_id: AgentId, inbox_id: InboxId) {
        const known = places.get(agent_id)
        if (known?.inbox_id === inbox_id) return known
        const [row] = yield* sql<{ readonly dm: ResourceName }>`SELECT dm FROM choir_control.inbox
          WHERE agent_id = ${agent_id} AND inbox_id = ${rowId(inbox_id) ?? 0n}`
        if (row === undefined) return undefined
        const found = { inbox_id, dm: row.dm }
        places.set(agent_id, found)
        return found
      }, onDatabase)

      return Drafts.of({
        put: Effect.fn("Drafts.put")(function* (agent_id, draft) {
          const found = yield* place(agent_id, draft.inbox_id)
          if (found !== undefined) yield* PubSub.publish(shown, { ...draft, agent_id, dm: found.dm })
        }),
        dmOf: (agent_id, inbox_id) => Effect.map(place(agent_id, inbox_id), (found) => found?.dm),
        changes: Stream.fromPubSub(shown)
      })
    })
  )
}
