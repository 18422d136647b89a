/**
 * Outcomes of host tools with an effect, by call_id (D3). The row is inserted before the run and completed after it, so a call that a
 * crash cut off is recognised and never runs again.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { ToolStatus } from "#schema/Event.ts"
import type { CallId, SessionId } from "#schema/Ids.ts"
import { type DatabaseAway, inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import type { HostOutcome } from "./HostTool.ts"

/** One call of a session, and the digest of what it asks for. */
export interface HostCallKey {
  readonly session_id: SessionId
  readonly call_id: CallId
  readonly digest: string
}

export type Claim =
  /** A call that has not run: the caller must run it. */
  | { readonly type: "mine" }
  | { readonly type: "done"; readonly outcome: HostOutcome }
  /** It was begun, and its outcome was not kept. */
  | { readonly type: "in doubt" }
  /** The same call_id asked for something else. */
  | { readonly type: "reused" }

/** Claims calls and keeps their outcomes, for as long as `retention.call_results_days` says. */
export class CallResults extends Context.Service<
  CallResults,
  {
    claim(call: HostCallKey): Effect.Effect<Claim, DatabaseAway>
    /** Completes a claim. */
    keep(call: HostCallKey, outcome: HostOutcome): Effect.Effect<void, DatabaseAway>
  }
>()("choir/choird/CallResults") {
  static readonly layer = Layer.effect(
    CallResults,
    Effect.gen(function* () {
      const onDatabase = yield* useDatabase
      return CallResults.of({
        claim: Effect.fn("CallResults.claim")(function* ({ call_id, digest, session_id }) {
          const sql = yield* SqlClient.SqlClient
          const hash = Buffer.from(digest, "hex")
          // In a transaction, which a choird cannot commit that lost the database: the effect would come twice.
          const inserted = yield* inTransaction(
            sql`INSERT INTO choir_control.call_results (session_id, call_id, request_hash, response)
            VALUES (${session_id}, ${call_id}, ${hash}, 'null'::jsonb) ON CONFLICT DO NOTHING RETURNING call_id`
          )
          if (inserted.length > 0) return { type: "mine" } as const
          const [row] = yield* sql<StoredCall>`SELECT request_hash, response FROM choir_control.call_results
            WHERE session_id = ${session_id} AND call_id = ${call_id}`
          return claimed(row, hash)
        }, onDatabase),
        keep: Effect.fn("CallResults.keep")(function* ({ call_id, session_id }, outcome) {
          const sql = yield* SqlClient.SqlClient
          yield* inTransaction(
            sql`UPDATE choir_control.call_results SET response = ${canonicalJson(outcome)}::jsonb
            WHERE session_id = ${session_id} AND call_id = ${call_id}`
          )
        }, onDatabase)
      })
    })
  )
}

interface StoredCall {
  readonly request_hash: Uint8Array
  /** `null` until the run has ended. */
  readonly response: unknown
}

const decodeOutcome = Schema.decodeUnknownSync(Schema.Struct({ status: ToolStatus, output: Schema.Json }))

const claimed = (row: StoredCall | undefined, hash: Buffer): Claim => {
  if (row === undefined || !hash.equals(row.request_hash)) return { type: "reused" }
  if (row.response === null) return { type: "in doubt" }
  return { type: "done", outcome: decodeOutcome(row.response) }
}
