/** Standing grants as people see and revoke them. */
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { listGrants, revokeGrant } from "./grantRows.ts"

export interface Revocation {
  readonly grant_id: string
  /** Only a grant of this agent; without it of any. */
  readonly agent_id?: AgentId
  /** For the row and the audit: `operator`, `gateway:<name>/<dm>`. */
  readonly who: string
}

export const makeStandingGrants = Effect.gen(function* () {
  const audit = yield* Audit
  const sql = yield* SqlClient.SqlClient
  return {
    grants: Effect.fn("Approvals.grants")(function* ({
      agent_id,
      all
    }: {
      readonly agent_id?: AgentId
      readonly all: boolean
    }) {
      return yield* listGrants(sql, { agent_id, all, now_ms: yield* Clock.currentTimeMillis })
    }, Effect.orDie),
    revokeGrant: Effect.fn("Approvals.revokeGrant")(function* ({ agent_id, grant_id, who }: Revocation) {
      const now_ms = yield* Clock.currentTimeMillis
      const grant = yield* revokeGrant(sql, { agent_id, grant_id, who, now_ms })
      yield* audit.record({
        who,
        action: "grant.revoke",
        ...(grant === undefined ? {} : { agent_id: grant.agent_id }),
        detail: { grant_id: grant_id.slice(0, 20), ...(grant === undefined ? { refused: "UNKNOWN_GRANT" } : {}) }
      })
      return grant
    }, Effect.orDie)
  }
})
