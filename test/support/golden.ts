/** Golden histories: lines as `choirctl session events --json` prints them, and beside them the state that they fold to (R69). */
import { Result, type Schema } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import type { SessionId } from "#schema/Ids.ts"
import { type Replayed, replay, replayStart } from "#src/choird/sessions/storedEvents.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { type EventRow, rowOf } from "#src/shared/events/eventRow.ts"
import { encodeState } from "#src/shared/session/snapshot.ts"
import type { SessionState } from "#src/shared/session/State.ts"

/** What was recorded of a history. */
export interface GoldenRecord {
  readonly session_id: SessionId
  readonly fold_version: number
  readonly events: number
  readonly head: string
  readonly state: Schema.Json
}

/** An event's row as choird wrote it before migration 0009. */
export const oldRow = (event: ChoirEvent, hash: Buffer): EventRow => {
  const none = { v: null, salt: null, payload_digest: null, body: null }
  const { created_at, event_type, lane, rev } = event
  return { ...none, rev, event_type, lane, created_at, canonical: canonicalJson(event), hash }
}

/** The lines as choird has them stored, or as it had them before migration 0009. */
export const readGolden = (lines: string, form: "new" | "old" = "new"): ReadonlyArray<EventRow> =>
  lines
    .trimEnd()
    .split("\n")
    .map((line) => {
      const { hash: digest, ...event } = JSON.parse(line) as ChoirEvent & { readonly hash: string }
      const hash = Buffer.from(digest, "hex")
      return form === "old"
        ? oldRow(event, hash)
        : rowOf({ event, hash, payload: canonicalJson(event.payload), bytes: 0 })
    })

/** Proves the chain and folds it, as choird does after a restart. */
export const foldGolden = (session_id: SessionId, rows: ReadonlyArray<EventRow>): Replayed => {
  let at = replayStart(session_id)
  for (const row of rows)
    at = Result.getOrThrowWith(replay(at, row), ({ reason, rev }) => new Error(`event ${rev}: ${reason}`))
  return at
}

/** Files in the order of their paths, since a map has none of its own. */
const ordered = (key: string, value: unknown): unknown =>
  key === "seen" && Array.isArray(value) ? value.toSorted(([a], [b]) => (a < b ? -1 : 1)) : value

/** The state as a snapshot holds it. */
export const stateOf = (state: SessionState): Schema.Json =>
  JSON.parse(JSON.stringify(JSON.parse(Result.getOrThrow(encodeState(state))), ordered))
