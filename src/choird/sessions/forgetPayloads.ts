/** The reduction of stored payloads to what the fold needs, once a chained event lists them (D52). The chain keeps the earlier digests. */
import { Effect, Result, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { type ChoirEvent, Salt } from "#schema/Event.ts"
import { Rev, type SessionId } from "#schema/Ids.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { eventOf, type EventRow, readRow, type RowText } from "#src/shared/events/eventRow.ts"
import { payloadDigest } from "#src/shared/events/hashChain.ts"
import { reducedPayload } from "./reducedPayload.ts"
import { packPayload } from "#src/shared/events/storedPayload.ts"
import { archiveOf } from "./archivedLog.ts"
import { EVENT_COLUMNS, lockSession } from "./storedEvents.ts"

/** An event that is to be reduced, and the salt with which its new digest was made. */
export const Reduction = Schema.Struct({ rev: Rev, salt: Salt })
export type Reduction = typeof Reduction.Type

/** A payload that is not reduced; nor are the others of the request. */
export class ForgetRefused extends Schema.TaggedError<ForgetRefused>()("ForgetRefused", {
  rev: Rev,
  reason: Schema.String
}) {
  override get message() {
    return `event ${this.rev} is not reduced: ${this.reason}`
  }
}

/** The reduced event: its text, and the digest that a later event has to list. Undefined for an event without free text. */
export const reductionOf = (event: ChoirEvent, salt: string) => {
  const payload = canonicalJson(reducedPayload(event))
  return payload === canonicalJson(event.payload)
    ? undefined
    : { rev: event.rev, payload, salt, new_digest: payloadDigest(salt, payload) }
}

const read = (row: EventRow) =>
  Result.flatMap(
    Result.mapError(readRow(row), (reason) => ({ reason })),
    (text) => Result.map(eventOf(text), (event) => ({ event, text }))
  )

/** The digests that events of the session list, as `rev digest`. */
const listedDigests = Effect.fnUntraced(function* (session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<EventRow>`SELECT ${sql.literal(EVENT_COLUMNS)} FROM choir_control.session_events
    WHERE session_id = ${session_id} AND event_type = 'MemoryWriteCommitted'`
  return new Set(
    rows.flatMap((row) => {
      const found = read(row)
      if (Result.isFailure(found) || found.success.event.event_type !== "MemoryWriteCommitted") return []
      const { payload, rev: listing } = found.success.event
      if (payload.action !== "forget") return []
      return (payload.forgotten ?? []).flatMap(({ new_digest, rev }) => (rev < listing ? [`${rev} ${new_digest}`] : []))
    })
  )
})

/** The digest that the chain has. */
const chainedDigest = ({ envelope, payload }: RowText): string | undefined =>
  envelope?.salt === undefined || payload === undefined
    ? undefined
    : (envelope.payload_digest ?? payloadDigest(envelope.salt, payload))

/**
 * Reduces all of them or none, in one transaction. The rest is always `reducedPayload`, and its digest under the new
 * salt has to be listed by a later event that is stored. Snapshots go with it, since they hold digests of calls without a salt.
 */
export const forgetPayloads = Effect.fnUntraced(function* (
  session_id: SessionId,
  reductions: ReadonlyArray<Reduction>
) {
  const sql = yield* SqlClient.SqlClient
  yield* lockSession(session_id)
  const archive = yield* archiveOf(session_id)
  const listed = yield* listedDigests(session_id)
  let count = 0
  for (const { rev, salt } of reductions) {
    const refuse = (reason: string) => new ForgetRefused({ rev, reason })
    // Rows that are still in the table are no longer the ones that are read.
    if (archive !== undefined) return yield* refuse("its session is archived")
    const [row] = yield* sql<EventRow>`SELECT ${sql.literal(EVENT_COLUMNS)} FROM choir_control.session_events
      WHERE session_id = ${session_id} AND rev = ${rev}`
    const found = row === undefined ? Result.fail({ reason: "there is no such event" }) : read(row)
    if (Result.isFailure(found)) return yield* refuse(found.failure.reason)
    const { event, text } = found.success
    const digest = chainedDigest(text)
    if (digest === undefined) return yield* refuse("the chain covers the payload of an event of version 1 itself")
    const reduced = reductionOf(event, salt)
    // Done by an earlier request, whose answer was lost.
    if (reduced === undefined) continue
    if (!listed.has(`${rev} ${reduced.new_digest}`))
      return yield* refuse("no later event lists what would be left of it")
    const bytes = Buffer.byteLength(reduced.payload)
    yield* sql`UPDATE choir_control.session_events
      SET body = ${packPayload(reduced.payload)}, bytes = ${bytes}, salt = ${Buffer.from(salt, "hex")},
        payload_digest = ${Buffer.from(digest, "hex")}
      WHERE session_id = ${session_id} AND rev = ${rev}`
    count += 1
  }
  if (count > 0) yield* sql`DELETE FROM choir_control.session_snapshots WHERE session_id = ${session_id}`
  return count
})
