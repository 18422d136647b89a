/** A row for each action that was refused, and for each that changed who may do what (R77). */
import { Context, Effect, Layer, type Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import { canonicalJson, storableJson } from "#src/shared/canonicalJson.ts"
import { AUDIT_DETAIL_BYTES_MAX, AUDIT_MS_MAX } from "#src/shared/limits.ts"

export interface AuditEntry {
  /** Who asked: `agent:<id>`, `operator`, `gateway:<name>`. */
  readonly who: string
  /** What was asked, such as `rpc.GET_SECRETS`. */
  readonly action: string
  readonly session_id?: SessionId
  readonly agent_id?: AgentId
  /** Names and reasons, never a secret's value. */
  readonly detail: Schema.Json
}

/** Writes audit rows; a failure is logged and never stops what is audited. */
export class Audit extends Context.Service<Audit, { record(entry: AuditEntry): Effect.Effect<void> }>()(
  "choir/choird/Audit"
) {
  static readonly layer = Layer.effect(
    Audit,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      return Audit.of({
        record: Effect.fn("Audit.record")(function* (entry) {
          const { action, agent_id, session_id, who } = entry
          yield* Effect.suspend(
            () => sql`INSERT INTO choir_control.audit (who, action, session_id, agent_id, detail)
              VALUES (${storableJson(who)}, ${storableJson(action)}, ${session_id ?? null}, ${agent_id ?? null},
                ${detailText(entry.detail)}::jsonb)`
          ).pipe(
            Effect.timeout(AUDIT_MS_MAX),
            Effect.catchCause((cause) => Effect.logError("an audit row was not written", { who, action }, cause))
          )
        })
      })
    })
  )
}

/** What was refused may hold anything, so that it is made storable and bounded before it is kept. */
const detailText = (detail: Schema.Json): string => {
  const text = canonicalJson(storableJson(detail))
  const bytes = Buffer.byteLength(text)
  return bytes <= AUDIT_DETAIL_BYTES_MAX ? text : canonicalJson({ left_out_bytes: bytes })
}
