/** Where a message goes that belongs to nobody's message, such as of a crash, a full disk or a schedule. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { Config } from "#schema/Config.ts"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import { unaskedDms } from "#src/shared/config/people.ts"

export interface Place {
  readonly gateway: ResourceName
  readonly dm: ResourceName
}

/** The DM, of those that may get it, in which the agent's person wrote last; the first of them where nobody wrote. Undefined where config.json has none. */
export const unaskedPlace = Effect.fnUntraced(function* (
  config: Config,
  agent_id: AgentId,
  names: ReadonlyArray<ResourceName>
) {
  const dms = unaskedDms(config, names)
  const sql = yield* SqlClient.SqlClient
  const [last] =
    dms.length < 2
      ? []
      : yield* sql<Pick<Place, "dm">>`SELECT dm FROM choir_control.inbox
          WHERE agent_id = ${agent_id} AND dm = ANY(${dms}::text[]) ORDER BY inbox_id DESC LIMIT 1`
  const dm = last?.dm ?? dms[0]
  const gateway = dm === undefined ? undefined : config.dms[dm]?.gateway
  return dm === undefined || gateway === undefined ? undefined : ({ dm, gateway } satisfies Place)
})
